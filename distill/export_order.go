package distill

import (
	"context"
	"iter"
	"runtime"
)

// inOrder calls do for each answer, several at once, and yields what comes of
// them in the order of the answers. A few answers more than there are
// goroutines are in memory at a time.
func inOrder[T any](ctx context.Context, answers iter.Seq2[*Answer, error], do func(*Answer, error) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		workers := max(2, runtime.GOMAXPROCS(0))
		type job struct {
			a    *Answer
			err  error
			done chan T
		}
		work := make(chan job)
		order := make(chan chan T, 4*workers)
		for range workers {
			go func() {
				for j := range work {
					j.done <- do(j.a, j.err)
				}
			}()
		}
		walked := make(chan struct{})
		go func() {
			defer close(walked)
			defer close(order)
			defer close(work)
			for a, err := range answers {
				j := job{a, err, make(chan T, 1)}
				select {
				case order <- j.done:
				case <-ctx.Done():
					return
				}
				select {
				case work <- j:
				case <-ctx.Done():
					close(j.done)
					return
				}
			}
		}()
		defer func() { <-walked }()
		defer cancel()
		for done := range order {
			v, ok := <-done
			if !ok || !yield(v) {
				return
			}
		}
	}
}
