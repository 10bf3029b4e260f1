package runner

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentgraph/internal/watch"
)

// A disk that becomes full at each step of a turn, by name, and has space
// again after a while: every input has its one answer.
func TestFullDiskAtEachStep(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	defer func() { crashPoint = nil }()
	for _, step := range []string{"start", "claimed", "generated", "prepared", "intended", "named", "committed", "recorded", "closed"} {
		t.Run(step, func(t *testing.T) {
			root := filepath.Join(dir, "graph")
			t.Cleanup(func() { os.RemoveAll(root) })
			g := &testGraph{t, root}
			g.write("agents/a/agent.yaml", "retries: 1\n")
			g.write("agents/a/system/.schema-r.txt@regex", "(.|\n)*")
			g.write("agents/a/input/", "")
			g.write("aside", "1"+strings.Repeat(".", inlineSnapshot))
			filler := filepath.Join(dir, "filler")
			var full atomic.Bool
			crashPoint = func(s string) {
				if s == step && full.CompareAndSwap(false, true) {
					fill(t, filler, 0)
				}
			}
			log := newLog()
			cfg := g.config(echo, log)
			cfg.Watch = watch.Notify
			l := g.run(cfg, log)
			if step == "start" {
				crashPoint("start")
			}
			g.must(os.Rename(g.path("aside"), g.path("agents/a/input/x")))
			l.until("the disk is full", full.Load)
			time.Sleep(250 * time.Millisecond) // let things fail
			g.must(os.Remove(filler))
			l.until("the answer and its record", func() bool {
				l.r.tick(true) // as the next rescan
				return len(g.outputs("agents/a/output")) == 1 && len(records(g, "a")) == 1
			})
			l.quiet()
			l.stop()
			if s, log := g.once(echo); s != (Summary{}) || len(g.outputs("agents/a/output")) != 1 || len(records(g, "a")) != 1 {
				t.Errorf("again: %+v; events:\n%s", s, log)
			}
		})
	}
}
