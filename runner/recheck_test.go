package runner

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// A new input does not wait until a great many old ones are compared with
// their turns, and what has changed among them gets its turn.
func TestOldInputsHoldNothingUp(t *testing.T) {
	for name, change := range map[string]func(g *testGraph){
		"the ledger is gone": func(g *testGraph) { g.must(os.RemoveAll(g.path(".agentgraph"))) },
		"every file was touched": func(g *testGraph) {
			for i := range 2 * manyFiles {
				later := time.Now().Add(time.Duration(i) * time.Second)
				g.must(os.Chtimes(g.path(fmt.Sprintf("agents/a/input/%03d", i)), later, later))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(t, "agents/a/system/role.md", "You answer.")
			for i := range 2 * manyFiles {
				g.write(fmt.Sprintf("agents/a/input/%03d", i), fmt.Sprintf("old %d", i))
			}
			g.once(echo)
			change(g)
			g.write("agents/a/input/007", "another")

			log := newLog()
			r, err := New(g.config(echo, log))
			g.must(err)
			for range recheckWorkers {
				r.recheckSlots <- struct{}{} // nothing is compared now
			}
			ctx, cancel := context.WithCancel(context.Background())
			l := &live{log, g, r, cancel, make(chan error, 1)}
			go func() { l.done <- r.Run(ctx) }()
			t.Cleanup(l.stop)
			l.until("ready", func() bool { return log.count(Ready) > 0 })
			g.write("agents/a/input/new", "new")
			l.until("the new input has its answer", func() bool { return log.count(TurnFinished) == 1 })
			for range recheckWorkers {
				<-r.recheckSlots
			}
			l.until("the changed input has its answer", func() bool { return log.count(TurnFinished) == 2 })
			l.quiet()
			if n := log.count(TurnStarted); n != 2 {
				t.Errorf("%d turns instead of 2; events:\n%s", n, log)
			}
		})
	}
}
