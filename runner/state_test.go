package runner

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"agentgraph/record"
	"agentgraph/turn"
)

// A runner whose state folder is taken away ends: a second one could start.
// What it leaves to the next is whole, and nothing of the next is touched.
func TestStateFolderTakenAway(t *testing.T) {
	for name, take := range map[string]func(g *testGraph){
		"deleted":  func(g *testGraph) { g.must(os.RemoveAll(g.path(".agentgraph"))) },
		"moved":    func(g *testGraph) { g.must(os.Rename(g.path(".agentgraph"), g.path("elsewhere"))) },
		"the lock": func(g *testGraph) { g.must(os.Remove(g.path(".agentgraph/lock"))) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(t, "agentgraph.yaml", "rescan: 100ms\n", "agents/a/input/x", "one", "agents/b/input/y", "two")
			log, hold := newLog(), newGate()
			r, err := New(g.config(func(ctx context.Context, req *turn.Request) *record.Record {
				if req.Agent == "b" {
					return hold.run(ctx, req)
				}
				return echo(ctx, req)
			}, log))
			g.must(err)
			done := make(chan error, 1)
			go func() { done <- r.Run(t.Context()) }()
			l := &live{log, g, r, func() {}, done}
			l.until("one answer, one turn at work", func() bool { return log.count(TurnFinished) == 1 && log.count(TurnStarted) == 2 })
			take(g)
			// The next one starts as soon as it may, while the first ends.
			log2 := newLog()
			var r2 *Runner
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
				if r2, err = New(g.config(echo, log2)); err == nil || time.Now().After(deadline) {
					break
				}
			}
			g.must(err)
			select {
			case err := <-done:
				if !errors.Is(err, ErrStateGone) {
					t.Errorf("the first ended with %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the first runner does not end")
			}
			s, err := r2.Once(t.Context())
			if err != nil || s != (Summary{Completed: 1}) {
				t.Errorf("the second: %+v, %v; events:\n%s", s, err, log2)
			}
			for _, a := range []string{"a", "b"} {
				if n := len(g.outputs("agents/" + a + "/output")); n != 1 || len(records(g, a)) != 1 {
					t.Errorf("%s: %d answers, %d records", a, n, len(records(g, a)))
				}
			}
			if s, log := g.once(echo); s != (Summary{}) {
				t.Errorf("again: %+v; events:\n%s", s, log)
			}
		})
	}
}
