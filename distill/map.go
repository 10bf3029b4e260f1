package distill

import (
	"context"
	"iter"
	"runtime"
	"sync"
)

// Map runs do on the answers of a walk, on all processors at once, and yields
// the results in the order of the answers. Errors of the walk keep their
// place. A bounded number of answers is under way, so memory does not grow
// with the data.
func Map[T any](ctx context.Context, answers iter.Seq2[*Answer, error], do func(context.Context, *Answer) T) iter.Seq2[T, error] {
	return mapWith(ctx, runtime.GOMAXPROCS(0), answers, do)
}

// mapWith is Map for jobs of any kind and a number of workers. When ctx ends,
// what is under way is waited for and yielded before the error, which always
// comes: no result is lost that was made, and a part is never taken for all.
func mapWith[J, T any](ctx context.Context, workers int, jobs iter.Seq2[J, error], do func(context.Context, J) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		type item struct {
			job  J
			err  error
			done chan T
		}
		work, inOrder := make(chan item), make(chan item, 16*workers)
		running.Go(func() {
			defer close(inOrder)
			defer close(work)
			for j, err := range jobs {
				it := item{job: j, err: err, done: make(chan T, 1)}
				select {
				case inOrder <- it:
				case <-ctx.Done():
					return
				}
				if err != nil {
					continue
				}
				select {
				case work <- it:
				case <-ctx.Done():
					return
				}
			}
		})
		for range workers {
			running.Go(func() {
				for it := range work {
					it.done <- do(ctx, it.job)
				}
			})
		}
		for it := range inOrder {
			var v T
			if it.err == nil {
				select {
				case v = <-it.done:
				case <-ctx.Done():
					running.Wait()
					select {
					case v = <-it.done:
					default: // nobody had begun it
						yield(v, ctx.Err())
						return
					}
				}
			}
			if !yield(v, it.err) {
				return
			}
		}
		// Jobs that were never begun are missing, and nothing above says so.
		if err := ctx.Err(); err != nil {
			var none T
			yield(none, err)
		}
	}
}
