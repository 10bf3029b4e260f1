package output

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// The cost of one more answer among many old ones, with every sync. "cached"
// is a Folder that is kept, "listed" one that is opened for each answer.
func BenchmarkPublish(b *testing.B) {
	for _, old := range []int{0, 1_000, 10_000, 100_000} {
		dir := b.TempDir()
		for i := range old {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("rating_%d.json", i)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
		data := []byte(`{"rating":4,"reasoning":"short and clear"}`)
		ctx := context.Background()
		b.Run(fmt.Sprintf("cached/old=%d", old), func(b *testing.B) {
			f := Open(dir)
			if _, err := f.Publish(ctx, rating, start, data); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := f.Publish(ctx, rating, start, data); err != nil {
					b.Fatal(err)
				}
			}
			if f.scans != 1 {
				b.Errorf("the folder was listed %d times", f.scans)
			}
		})
		b.Run(fmt.Sprintf("listed/old=%d", old), func(b *testing.B) {
			for b.Loop() {
				if _, err := Publish(ctx, dir, rating, start, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Eight goroutines share one folder.
func BenchmarkPublishParallel(b *testing.B) {
	f := Open(b.TempDir())
	data := []byte(`{"rating":4}`)
	var wait sync.WaitGroup
	work := make(chan struct{})
	for range 8 {
		wait.Go(func() {
			for range work {
				if _, err := f.Publish(context.Background(), rating, start, data); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	wait.Wait()
}
