package distill

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
)

// jaccard is the exact similarity that sketches estimate.
func jaccard(a, b string) float64 {
	shingles := func(s string) map[string]bool {
		r := []rune(normal(s))
		m := map[string]bool{}
		for i := 0; i+shingleRunes <= len(r); i++ {
			m[string(r[i:i+shingleRunes])] = true
		}
		return m
	}
	x, y := shingles(a), shingles(b)
	both := 0
	for s := range x {
		if y[s] {
			both++
		}
	}
	return float64(both) / float64(len(x)+len(y)-both)
}

func randomText(r *rand.Rand, words int) []string {
	list := make([]string, words)
	for i := range list {
		list[i] = fmt.Sprintf("w%xé", r.Intn(5000))
	}
	return list
}

// Estimates come near the exact similarity, for short and long texts.
func TestSimilarity(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	worst, total := 0.0, 0.0
	const tests = 400
	for range tests {
		a := randomText(r, 20+r.Intn(300))
		b := append([]string{}, a...)
		for range r.Intn(len(a)) {
			b[r.Intn(len(b))] = fmt.Sprintf("x%x", r.Intn(5000))
		}
		x, y := strings.Join(a, " "), strings.Join(b, " ")
		got := sketchOf(x).bytes.similarity(&sketchOf(y).bytes)
		off := math.Abs(got - jaccard(x, y))
		worst, total = max(worst, off), total+off
	}
	if worst > 0.2 || total/tests > 0.04 {
		t.Errorf("off by %.3f at worst, %.3f on average", worst, total/tests)
	}
}

func TestDuplicates(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	d := newDeduper(0.9)
	found, false_ := 0, 0
	const n = 500
	for i := range n {
		words := randomText(r, 60)
		if d.duplicate(1, sketchOf(strings.Join(words, " "))) {
			false_++
		}
		// Another case and other spaces: the same text.
		if !d.duplicate(1, sketchOf("  "+strings.ToUpper(strings.Join(words, " \n")))) {
			t.Fatalf("text %d: its copy is not found", i)
		}
		if d.duplicate(2, sketchOf(strings.Join(words, " "))) {
			t.Fatalf("text %d: found in another group", i)
		}
		words[30] = "another"
		if s := jaccard(strings.Join(words, " "), strings.Join(append(words[:30:30], words[31:]...), " ")); s < 0.9 {
			t.Fatalf("the test's own texts are %v alike", s)
		}
		if d.duplicate(1, sketchOf(strings.Join(words, " "))) {
			found++
		}
	}
	if found < n*95/100 || false_ > 0 {
		t.Errorf("%d of %d near copies found, %d texts taken for others", found, n, false_)
	}
	// Short texts are only alike when they are equal.
	for _, s := range []string{"", "a", "ab", "yes", "no", "日本"} {
		if d.duplicate(3, sketchOf(s)) {
			t.Errorf("%q is taken for another", s)
		}
		if !d.duplicate(3, sketchOf(s)) {
			t.Errorf("%q is not found again", s)
		}
	}
}

// The hashes are part of what an export is: the same rows must fall out of it
// in every version.
func TestSketchNeverChanges(t *testing.T) {
	s := sketchOf("The quick brown fox jumps over the lazy dog. Ça va, 日本?")
	sum := uint64(0)
	for i, v := range s.values {
		sum = mix(sum ^ uint64(v) ^ uint64(s.bytes[i])<<32)
	}
	const want = 0x11789a507126d8db
	if sum != want {
		t.Errorf("the sketch is %#x, not %#x", sum, uint64(want))
	}
}

func BenchmarkSketch(b *testing.B) {
	text := strings.Join(randomText(rand.New(rand.NewSource(3)), 200), " ")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		sketchOf(text)
	}
}

// A crowd of texts that are half alike neither hides a copy nor makes it slow.
func TestDuplicatesInACrowd(t *testing.T) {
	d := newDeduper(0.97)
	text := func(i int) string {
		return strings.Repeat("the same for all of them, ", 8) + fmt.Sprint("but ", i*7919)
	}
	const n = 4000
	var kept []int
	for i := range n {
		if !d.duplicate(1, sketchOf(text(i))) {
			kept = append(kept, i)
		}
	}
	for _, i := range kept {
		if !d.duplicate(1, sketchOf(text(i))) {
			t.Fatalf("the copy of text %d is not found", i)
		}
	}
	if len(kept) < n/10 {
		t.Errorf("the test's texts are too alike: %d kept", len(kept))
	}
}
