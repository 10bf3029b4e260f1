package runner

import (
	"os"
	"testing"

	"agentgraph/runner/internal/ledger"
)

// A refused turn is opened again also when its input is being compared with
// the ledger at the moment in which the reason for the refusal goes away.
func TestReopenedWhileCompared(t *testing.T) {
	g := newGraph(t, "agentgraph.yaml", "settle: 0s\nrescan: 1h\n",
		"agents/a/system/.schema-r.unknown", "x", "agents/a/input/x", "1")
	log := newLog()
	l := g.run(g.config(echo, log), log)
	l.until("the refusal", func() bool { return log.count(TurnRefused) == 1 })
	g.must(l.r.ledger.Flush(t.Context()))
	refused, err := l.r.ledger.Over(ledger.Refused, "a")
	g.must(err)
	if len(refused) != 1 {
		t.Fatalf("%d turns are refused", len(refused))
	}
	take := func(on bool) (st *agentState) {
		l.r.mu.Lock()
		defer l.r.mu.Unlock()
		delete(l.r.openKeys, refused[0].Key)
		if on {
			l.r.openKeys[refused[0].Key] = true
		}
		return l.r.agents["a"]
	}
	st := take(true)
	if !l.r.reopenRefused(st, func(ledger.Turn) bool { return true }) {
		t.Error("the turn was missed, and nobody is told")
	}
	before := st.current().Fingerprint()
	g.must(os.Remove(g.path("agents/a/system/.schema-r.unknown")))
	l.until("a look at it", func() bool {
		l.r.mu.Lock()
		defer l.r.mu.Unlock()
		return st.checking && st.checked != "" && st.checked != before
	})
	take(false)
	l.until("the answer", func() bool { return log.count(TurnFinished) == 1 })
}
