package distill

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A walk that is cut short is never taken for a whole one: the error comes also
// where each job that was begun is done.
func TestMapCancelled(t *testing.T) {
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			jobs := func(yield func(int, error) bool) {
				for i := range 3 {
					if !yield(i, nil) {
						return
					}
				}
				cancel() // and the walk ends, without a word
			}
			var got []int
			var last error
			for v, err := range mapWith(ctx, workers, jobs, func(_ context.Context, j int) int { return j * j }) {
				if last = err; err == nil {
					got = append(got, v)
				}
			}
			if !errors.Is(last, context.Canceled) {
				t.Errorf("the last error is %v", last)
			}
			if d := cmp.Diff([]int{0, 1, 4}, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A consumer that has enough ends the jobs, and hears no more.
func TestMapStopped(t *testing.T) {
	made := 0
	jobs := func(yield func(int, error) bool) {
		for i := range 1_000_000 {
			if made++; !yield(i, nil) {
				return
			}
		}
	}
	n := 0
	for range mapWith(t.Context(), 2, jobs, func(_ context.Context, j int) int { return j }) {
		if n++; n == 5 {
			break
		}
	}
	if n != 5 || made > 1000 {
		t.Errorf("%d results of %d jobs", n, made)
	}
}
