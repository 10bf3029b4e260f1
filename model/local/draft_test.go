package local

import (
	"slices"
	"testing"
	"time"
)

func TestLookBack(t *testing.T) {
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
		if got := lookBack(nil, tt.seen, tt.n); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.what, got, tt.want)
		}
	}
	far := append(append([]int32{1, 2, 3}, make([]int32, draftReach)...), 1, 2)
	if got := lookBack(nil, far, 9); len(got) > 0 {
		t.Errorf("%v is looked up too far back", got)
	}
}

func count(from, to int32) (out []int32) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// A draft is as long as pays by what steps cost and how often drafts are right;
// where none does, one is tried now and then.
func TestDraftLengths(t *testing.T) {
	const step = 4 * time.Millisecond
	for _, tt := range []struct {
		what   string
		token  time.Duration // what one more token costs a step
		right  int           // of each draft
		n      int
		drafts []int
		want   int
	}{
		{"cheap and right", step / 8, 6, 1, []int{6}, 6},
		{"cheap, and half of it right", step / 8, 3, 1, []int{6}, 3},
		{"cheap and wrong", step / 8, 0, 1, []int{6}, 0},
		{"dear and right", step, 6, 1, []int{6}, 0},
		{"dear, but it pays", step / 2, 6, 1, []int{6}, 6},
		{"there is no more", step / 8, 6, 1, []int{2}, 2},
		{"three together, to the bound", step / 16, 6, 3, []int{6, 6, 6}, (draftStep - 3) / 3},
		{"a draft of one holds up eight", 2 * step, 2, 8, []int{2}, 0},
		{"eight together", step / 16, 1, 8, []int{1, 1, 1, 1, 1, 1, 1, 1}, 1},
		{"no room", step / 8, 6, draftStep, []int{6}, 0},
		{"no room at all", step / 8, 6, 5 * draftStep, []int{6}, 0},
	} {
		d := newDrafter()
		lengths := map[int]int{}
		const steps = 20_000
		for i := range steps {
			l := d.length(tt.n, tt.n, tt.drafts)
			if i >= steps/2 {
				lengths[l]++
			}
			more := 0
			for _, have := range tt.drafts {
				if k := min(l, have); k > 0 {
					more += k
					d.judged(k, min(tt.right, k))
				}
			}
			d.took(tt.n+more, step+time.Duration(tt.n+more-1)*tt.token)
		}
		others := steps/2 - lengths[tt.want]
		if others > steps/2/draftTrialFirst {
			t.Errorf("%s: want %d, and of so many tokens are so many drafts: %v", tt.what, tt.want, lengths)
		}
		if tt.want == 0 && tt.n < draftStep && others == 0 {
			t.Errorf("%s: none was tried again", tt.what)
		}
	}
}

// What was slow once, by chance or beside another program, is found out.
func TestDraftsBecomeCheap(t *testing.T) {
	d := newDrafter()
	cost := func(n int, slow bool) time.Duration {
		if slow && n > 3 {
			return 40 * time.Millisecond
		}
		return 4*time.Millisecond + time.Duration(n)*time.Millisecond/4
	}
	last := 0
	for i := range 10_000 {
		last = d.length(1, 1, []int{6})
		d.took(1+last, cost(1+last, i < 1000))
		if last > 0 {
			d.judged(last, last)
		}
		if i == 999 && last > 2 {
			t.Errorf("%d tokens are drafted while that is slow", last)
		}
	}
	if last != 6 {
		t.Errorf("%d tokens are drafted when it is fast again", last)
	}
}
