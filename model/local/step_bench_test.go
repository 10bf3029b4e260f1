//go:build cgo && !nonative

package local

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkStep is one step by its shape: n tokens of one sequence, and one
// token each of n sequences, behind 60 tokens that are there already; with our
// kernels and with llama.cpp's alone, by turns.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64, 128} {
		for _, together := range []bool{true, false} {
			if !together && (n > 16 || n == 1) {
				continue
			}
			name := fmt.Sprintf("tokens=%d", n)
			if !together {
				name = fmt.Sprintf("sequences=%d", n)
			}
			b.Run(name, func(b *testing.B) {
				var steps [2]*stepper
				for i, without := range []Without{{Pace: true}, {Pace: true, Kernels: true}} {
					l, err := open(Config{Path: testModel(b), Context: 512, Parallel: 16, Without: without})
					if err != nil {
						b.Fatal(err)
					}
					defer l.Close()
					steps[i] = newStepper(b, l.engine.cells, n, together)
					steps[i].step(b)
				}
				var took [2][]float64
				for b.Loop() {
					for i, s := range steps {
						took[i] = append(took[i], s.step(b).Seconds()*1000)
					}
				}
				b.ReportMetric(median(took[0]), "ms/step")
				b.ReportMetric(median(took[1]), "ms/step-llama.cpp")
			})
		}
	}
}

// stepper repeats one step.
type stepper struct {
	c        *cells
	n        int
	together bool
	bt       batch
}

const stepBehind = 60 // tokens before the step

func newStepper(b *testing.B, c *cells, n int, together bool) *stepper {
	s := &stepper{c: c, n: n, together: together}
	for seq := range s.seqs() {
		s.bt.clear()
		for i := range stepBehind {
			s.bt.add(int32(500+i), i, seq, false)
		}
		if err := c.decode(&s.bt); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func (s *stepper) seqs() int {
	if s.together {
		return 1
	}
	return s.n
}

func (s *stepper) step(b *testing.B) time.Duration {
	s.bt.clear()
	for i := range s.n {
		if s.together {
			s.bt.add(int32(700+i), stepBehind+i, 0, i == s.n-1)
		} else {
			s.bt.add(int32(700+i), stepBehind, i, true)
		}
	}
	began := time.Now()
	if err := s.c.decode(&s.bt); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	for seq := range s.seqs() {
		s.c.remove(seq, stepBehind)
	}
	return took
}
