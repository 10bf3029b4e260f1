//go:build cgo && !nonative

package local

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

// TestAttention holds our attention against exact arithmetic, for the shapes
// of heads that models have, few keys and many, and rows that see few of them,
// none, or those of several conversations. What a row comes to does not depend
// on the threads or on the rows beside it.
func TestAttention(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	numbers := func(n int, scale float64) []float32 {
		out := make([]float32, n)
		for i := range out {
			// Half floats hold them, so that rounding plays no part.
			out[i] = float32(math.Round(rng.NormFloat64()*scale*64) / 64)
		}
		return out
	}
	for _, s := range []attentionShape{
		{rows: 1, heads: 9, keyHeads: 3, keys: 256, size: 64},
		{rows: 2, heads: 9, keyHeads: 3, keys: 256, size: 64},
		{rows: 8, heads: 9, keyHeads: 3, keys: 1024, size: 64},
		{rows: 7, heads: 4, keyHeads: 4, keys: 768, size: 64},
		{rows: 5, heads: 14, keyHeads: 2, keys: 512, size: 64}, // seven share a head of keys
		{rows: 16, heads: 8, keyHeads: 1, keys: 256, size: 128},
		{rows: 3, heads: 32, keyHeads: 8, keys: 5120, size: 128},
		{rows: 63, heads: 4, keyHeads: 2, keys: 512, size: 128},
		{rows: 4, heads: 4, keyHeads: 1, keys: 512, size: 256},
		{rows: 4, heads: 3, keyHeads: 3, keys: 256, size: 96}, // llama.cpp's own
		{rows: 64, heads: 2, keyHeads: 1, keys: 256, size: 64},
		{rows: 200, heads: 6, keyHeads: 2, keys: 1280, size: 64},
	} {
		t.Run(fmt.Sprintf("%dx%d/%d of %d over %d", s.rows, s.heads, s.keyHeads, s.size, s.keys), func(t *testing.T) {
			s.scale = float32(1 / math.Sqrt(float64(s.size)))
			q := numbers(s.heads*s.rows*s.size, 1)
			k := numbers(s.keyHeads*s.keys*s.size, 1)
			v := numbers(s.keyHeads*s.keys*s.size, 1)
			mask := make([]float32, s.rows*s.keys)
			for r := range s.rows {
				for i := range s.keys {
					// Conversations lie in stripes; row 0 sees one key alone.
					if i%(r%3+1) != 0 || i > s.keys-10*(r+1) || r == 0 && i != 17 {
						mask[r*s.keys+i] = float32(math.Inf(-1))
					}
				}
			}
			want := exactAttention(s, q, k, v, mask)
			worst := func(own bool, threads int) (float64, []float32) {
				s.own, s.threads = own, threads
				got, err := s.attention(q, k, v, mask)
				if err != nil {
					t.Fatal(err)
				}
				far := 0.0
				for i := range got {
					far = max(far, math.Abs(float64(got[i])-want[i]))
				}
				return far, got
			}
			before, _ := kernelRuns()
			ours, one := worst(true, 1)
			after, _ := kernelRuns()
			fits := before >= 0 && s.size != 96
			if fits != (after > before) {
				t.Errorf("our kernel ran %d times", after-before)
			}
			theirs, _ := worst(false, 1)
			t.Logf("furthest from exact: ours %.2g, llama.cpp's %.2g", ours, theirs)
			if !fits {
				return
			}
			if !(ours <= 1e-5) {
				t.Errorf("off by %g, llama.cpp's by %g", ours, theirs)
			}
			for _, threads := range []int{2, 3} {
				if _, got := worst(true, threads); !slices.Equal(got, one) {
					t.Errorf("%d threads come to something else than one", threads)
				}
			}
			// The last row alone.
			if s.rows < 2 {
				return
			}
			last, r := s, s.rows-1
			last.rows, last.own, last.threads = 1, true, 2
			var lq []float32
			for h := range s.heads {
				lq = append(lq, q[(h*s.rows+r)*s.size:][:s.size]...)
			}
			got, err := last.attention(lq, k, v, mask[r*s.keys:])
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, one[r*s.heads*s.size:]) {
				t.Error("a row alone comes to something else than among others")
			}
		})
	}
}

// exactAttention is attention by its definition, in float64.
func exactAttention(s attentionShape, q, k, v, mask []float32) []float64 {
	out := make([]float64, len(q))
	weights := make([]float64, s.keys)
	for r := range s.rows {
		for h := range s.heads {
			kh := h / (s.heads / s.keyHeads)
			top := math.Inf(-1)
			for i := range s.keys {
				dot := 0.0
				for x := range s.size {
					dot += float64(q[(h*s.rows+r)*s.size+x]) * float64(k[(kh*s.keys+i)*s.size+x])
				}
				weights[i] = dot*float64(s.scale) + float64(mask[r*s.keys+i])
				top = max(top, weights[i])
			}
			if math.IsInf(top, -1) {
				continue // sees nothing: zero
			}
			sum := 0.0
			for i, w := range weights {
				weights[i] = math.Exp(w - top)
				sum += weights[i]
			}
			for i, w := range weights {
				for x := range s.size {
					out[(r*s.heads+h)*s.size+x] += w / sum * float64(v[(kh*s.keys+i)*s.size+x])
				}
			}
		}
	}
	return out
}

// TestFewRowsAreExact: the products of few rows are those of llama.cpp's own
// kernels, to the bit, whatever the number of rows. The small model has Q4_1 and
// Q8_0; as Q4_0 it is written anew.
func TestFewRowsAreExact(t *testing.T) {
	t.Run("Q4_1", func(t *testing.T) { fewRowsAreExact(t, testModel(t)) })
	t.Run("Q4_0", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "q4_0.gguf")
		i := slices.IndexFunc(Layouts, func(l Layout) bool { return l.Name == "Q4_0" })
		if err := Requantize(testModel(t), path, Layouts[i], 2); err != nil {
			t.Fatal(err)
		}
		fewRowsAreExact(t, path)
	})
}

func fewRowsAreExact(t *testing.T, path string) {
	type seen struct {
		ids   []int32
		probs []float32
	}
	run := func(kernels bool) (all []seen) {
		w, err := loadWeights(path, loadOptions{repack: true, kernels: kernels})
		if err != nil {
			t.Fatal(err)
		}
		defer w.free()
		for _, threads := range []int{1, 2} {
			c, err := newCells(w, cellOptions{total: 1024, batch: 256, chunk: 256, seqs: 2, outputs: 80, threads: threads, flash: true, unified: true})
			if err != nil {
				t.Fatal(err)
			}
			at := 0
			for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 17, 31, 63, 64, 65} {
				var b batch
				for i := range n {
					b.add(int32(700+37*i+n), at+i, 0, true)
				}
				if err := c.decode(&b); err != nil {
					t.Fatal(err)
				}
				at += n
				for i := range n {
					_, ids, probs := c.logprobs(i, 1, 20)
					all = append(all, seen{ids, probs})
				}
			}
			c.free()
		}
		return all
	}
	want := run(false)
	_, before := kernelRuns()
	got := run(true)
	// Each of the layers has seven products; what is in other layouts has fewer
	// in all.
	if _, after := kernelRuns(); before >= 0 && after-before < 100*30 {
		t.Errorf("our kernel ran %d times in 30 steps", after-before)
	}
	for i := range want {
		if !slices.Equal(got[i].ids, want[i].ids) || !slices.Equal(got[i].probs, want[i].probs) {
			t.Fatalf("row %d: %v %v, llama.cpp has %v %v", i, got[i].ids[:3], got[i].probs[:3], want[i].ids[:3], want[i].probs[:3])
		}
	}
}
