package runner

import (
	"context"
	"testing"

	"agentgraph/record"
	"agentgraph/turn"
)

// A runner that is asked to finish says how much it leaves, and does not speak
// of attempts that it will not make.
func TestFinishLeavesTheRest(t *testing.T) {
	for _, once := range []bool{false, true} {
		g := newGraph(t, "agents/a/input/x", "one", "agents/a/input/y", "two", "agents/a/input/z", "three",
			"agents/p/input/x", "paused", "agents/b/agent.yaml", "modle: x\n", "agents/b/input/x", "stopped")
		log := newLog()
		var r *Runner
		gen := func(ctx context.Context, req *turn.Request) *record.Record {
			r.Finish()
			return failed(req, record.ModelError, true)
		}
		cfg := g.config(gen, log)
		r, err := New(cfg)
		g.must(err)
		g.must(r.ledger.Pause("p", true).Wait(t.Context()))
		if once {
			_, err = r.Once(t.Context())
		} else {
			err = r.Run(t.Context())
		}
		g.must(err)
		if r.Left() != 3 {
			t.Errorf("once %v: %d turns are left, want 3; events:\n%s", once, r.Left(), log)
		}
		for _, e := range log.all() {
			if e.Kind == TurnRetrying && (e.After != 0 || e.Message != "left for the next run") {
				t.Errorf("%+v", e)
			}
		}
		if n := log.count(TurnRetrying); n != 1 {
			t.Errorf("%d retries were told, want 1", n)
		}

		// The next run does them, and leaves nothing.
		r, err = New(g.config(echo, log))
		g.must(err)
		s, err := r.Once(t.Context())
		if err != nil || s.Completed != 3 || r.Left() != 0 {
			t.Errorf("the next run: %+v, %v, %d left", s, err, r.Left())
		}
	}
}
