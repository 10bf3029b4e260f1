package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"agentgraph/internal/watch"
	"agentgraph/record"
	"agentgraph/turn"
)

// A burst overflows a tiny queue of events; every file gets its turn all the
// same, and memory stays bounded. Answers are refusals here: they cost the
// least and keep what is measured to inputs, claims and the ledger.
func TestBurst(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("too many files for this kind of run")
	}
	for _, tt := range []struct {
		name  string
		files int
		set   func(*Config)
	}{
		{"50,000 files and a queue of 16", 50000, func(c *Config) {
			c.Watch = watch.Notify
			c.source = func() (watch.Source, error) { return newLossy(16) }
		}},
		{"5,000 files, polled", 5000, func(c *Config) { c.Watch = watch.Poll }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGraphIn(t, memoryDir(t), "agents/a/agent.yaml", "concurrency: 32\n", "agents/a/input/", "")
			log := newLog()
			var turns, wrong atomic.Int64
			seen := make([]atomic.Bool, tt.files)
			cfg := g.config(func(_ context.Context, req *turn.Request) *record.Record {
				var n int
				if _, err := fmt.Sscanf(req.User, "input %d", &n); err != nil || seen[n].Swap(true) {
					wrong.Add(1)
				}
				turns.Add(1)
				return turn.Refuse(req, &record.Error{Code: record.CapabilityMissing, Message: "not now"})
			}, nil)
			cfg.Events = func(e Event) {
				if e.Kind == Ready || e.Kind == Problem {
					log.add(e)
				}
			}
			tt.set(&cfg)
			l := g.run(cfg, log)
			start := time.Now()
			dir := g.path("agents/a/input")
			for i := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), fmt.Appendf(nil, "input %d", i), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			dropped := time.Since(start)
			var peak uint64
			deadline := time.Now().Add(3 * time.Minute)
			for turns.Load() < int64(tt.files) {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapInuse)
				if time.Now().After(deadline) {
					t.Fatalf("%d of %d files had their turn; %s; events:\n%s", turns.Load(), tt.files, l.r.describe(), log)
				}
				time.Sleep(50 * time.Millisecond)
			}
			l.quiet()
			if wrong.Load() > 0 || turns.Load() != int64(tt.files) {
				t.Errorf("%d turns for %d files, %d of them wrong", turns.Load(), tt.files, wrong.Load())
			}
			if peak > 256<<20 {
				t.Errorf("the heap grew to %d MiB", peak>>20)
			}
			t.Logf("dropped in %v, done in %v, heap at most %d MiB", dropped, time.Since(start), peak>>20)
		})
	}
}

// memoryDir is a folder in memory where there is one: a burst is not about
// how fast a disk syncs.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "agentgraph-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
