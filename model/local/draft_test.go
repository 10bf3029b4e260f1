package local

import (
	"slices"
	"testing"
	"time"
)

func TestLookUp(t *testing.T) {
	for _, tt := range []struct {
		what string
		seen []int32
		n    int
		want []int32
	}{
		{"nothing", nil, 9, nil},
		{"one token", []int32{1}, 9, nil},
		{"nothing agrees", []int32{1, 2, 3, 4}, 9, nil},
		{"one token agrees", []int32{1, 2, 1}, 9, nil},
		{"two agree: two follow", []int32{1, 2, 3, 4, 5, 1, 2}, 9, []int32{3, 4}},
		{"three agree: three follow", []int32{0, 1, 2, 3, 4, 5, 0, 1, 2}, 9, []int32{3, 4, 5}},
		{"the longest goes before the last", []int32{7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2}, 9, []int32{3, 8, 1}},
		{"of equal ones the last", []int32{1, 2, 3, 1, 2, 4, 1, 2}, 9, []int32{4, 1}},
		{"no more than is wanted", []int32{1, 2, 3, 4, 5, 1, 2}, 1, []int32{3}},
		{"none wanted", []int32{1, 2, 3, 4, 5, 1, 2}, 0, nil},
		{"no more than there are", []int32{1, 1, 1, 1}, 9, []int32{1}},
		{"never more than draftMost", append(count(0, 20), count(0, 10)...), 99, count(10, 10+draftMost)},
	} {
		if got := lookUp(nil, tt.seen, tt.n); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.what, got, tt.want)
		}
	}
	far := append(append([]int32{1, 2, 3}, make([]int32, draftReach)...), 1, 2)
	if got := lookUp(nil, far, 9); len(got) > 0 {
		t.Errorf("%v is looked up too far back", got)
	}
}

func count(from, to int32) (out []int32) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// Drafts go on where a longer step costs little and they are right, and stop
// where it costs much or they are wrong; where they stopped, one is tried now
// and then.
func TestDrafterPays(t *testing.T) {
	learn := func(short, long time.Duration, right int) *drafter {
		d := newDrafter()
		if !d.pays(1, 1, 4) {
			t.Error("what is not known is not tried")
		}
		for range 200 {
			d.took(1, short)
			d.took(5, long)
			d.judged(4, right)
		}
		return &d
	}
	for _, tt := range []struct {
		what        string
		short, long time.Duration
		right       int
		want        bool
	}{
		{"cheap and right", 4 * time.Millisecond, 7 * time.Millisecond, 3, true},
		{"cheap and wrong", 4 * time.Millisecond, 7 * time.Millisecond, 0, false},
		{"dear and right", 4 * time.Millisecond, 21 * time.Millisecond, 4, false},
		{"dear, but it pays", 4 * time.Millisecond, 19 * time.Millisecond, 4, true},
	} {
		d := learn(tt.short, tt.long, tt.right)
		tried := 0
		for range 10_000 {
			if d.pays(1, 1, 4) {
				tried++
			}
		}
		if tt.want && tried != 10_000 || !tt.want && (tried < 20 || tried > 60) {
			t.Errorf("%s: %d of 10,000 steps have drafts", tt.what, tried)
		}
	}

	// The machine becomes faster: the trials show it.
	d := learn(4*time.Millisecond, 30*time.Millisecond, 3)
	for range 3_000 {
		if d.pays(1, 1, 4) {
			d.took(5, 7*time.Millisecond)
		}
	}
	if !d.pays(1, 1, 4) || !d.pays(1, 1, 4) {
		t.Error("drafts that have become cheap are still left out")
	}
	if d.pays(draftStep, 1, 1) {
		t.Error("a step grows over its bound")
	}
	// Several answers share a step: a draft of one holds up all.
	d = learn(4*time.Millisecond, 5*time.Millisecond, 1)
	if !d.pays(1, 1, 4) {
		t.Error("a draft that pays alone does not")
	}
	if d.pays(1, 8, 4) && d.pays(1, 8, 4) {
		t.Error("eight answers wait for a draft that gains one of them a token")
	}
}
