//go:build cgo && !nonative

package local

import (
	"fmt"
	"testing"
)

// BenchmarkStep is one step by its shape: n tokens of one sequence, and one
// token each of n sequences, behind 60 tokens that are there already.
func BenchmarkStep(b *testing.B) {
	const behind = 60
	for _, n := range []int{1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64, 128} {
		for _, together := range []bool{true, false} {
			if !together && (n > 8 || n == 1) {
				continue
			}
			name := fmt.Sprintf("tokens=%d", n)
			if !together {
				name = fmt.Sprintf("sequences=%d", n)
			}
			b.Run(name, func(b *testing.B) {
				l, err := open(Config{Path: testModel(b), Context: 512, Parallel: 16, Without: Without{Pace: true}})
				if err != nil {
					b.Fatal(err)
				}
				defer l.Close()
				c := l.engine.cells
				seqs := 1
				if !together {
					seqs = n
				}
				var bt batch
				for s := range seqs {
					bt.clear()
					for i := range behind {
						bt.add(int32(500+i), i, s, false)
					}
					if err := c.decode(&bt); err != nil {
						b.Fatal(err)
					}
				}
				for b.Loop() {
					bt.clear()
					for i := range n {
						if together {
							bt.add(int32(700+i), behind+i, 0, i == n-1)
						} else {
							bt.add(int32(700+i), behind, i, true)
						}
					}
					if err := c.decode(&bt); err != nil {
						b.Fatal(err)
					}
					for s := range seqs {
						c.remove(s, behind)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/step")
			})
		}
	}
}
