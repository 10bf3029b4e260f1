package runner

import (
	"os"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"agentgraph/internal/watch"
)

// silentSource watches everything and reports nothing, as some file systems
// do.
type silentSource struct{}

func (silentSource) Add(string) error              { return nil }
func (silentSource) Remove(string) error           { return nil }
func (silentSource) Events() <-chan fsnotify.Event { return nil }
func (silentSource) Errors() <-chan error          { return nil }
func (silentSource) Close() error                  { return nil }

// What nobody reports is found by the next rescan: inputs, changes in place,
// agents and settings.
func TestRescan(t *testing.T) {
	g := newGraph(t, "agentgraph.yaml", "rescan: 100ms\n", "agents/a/input/", "", "agents/b/agent.yaml", "modle: x\n", "agents/b/input/x", "waits")
	log := newLog()
	cfg := g.config(echo, log)
	cfg.Watch = watch.Notify
	cfg.source = func() (watch.Source, error) { return silentSource{}, nil }
	l := g.run(cfg, log)
	finished := func(n int) func() bool { return func() bool { return log.count(TurnFinished) == n } }
	g.write("agents/a/input/x", "new")
	l.until("a new file", finished(1))
	g.write("agents/a/input/x", "changed in place")
	l.until("a change in place", finished(2))
	g.write("agents/c/input/x", "hello")
	l.until("a new agent", finished(3))
	g.write("agents/b/agent.yaml", "retries: 0\n")
	l.until("settings that are right again", finished(4))
	g.must(os.RemoveAll(g.path("agents/c")))
	l.until("an agent that goes", func() bool { return log.count(AgentRemoved) == 1 })
}

// A change of settings touches the agent it is about: a turn of another goes
// on as if nothing had been.
func TestReloadLeavesOthersAlone(t *testing.T) {
	g := newGraph(t, "agents/a/input/", "", "agents/b/input/x", "slow")
	log, hold := newLog(), newGate()
	l := g.run(g.config(hold.run, newReady(log)), log)
	l.until("b works", func() bool { return log.count(TurnStarted) == 1 })
	for _, text := range []string{"retries: 1\n", "modle: x\n", "concurrency: 2\n"} {
		n := len(log.all())
		g.write("agents/a/agent.yaml", text)
		l.until("a is told about", func() bool { return len(log.all()) > n })
	}
	close(hold.open)
	l.until("b's answer", func() bool { return log.count(TurnFinished) == 1 })
	for _, e := range log.all() {
		if e.Agent == "b" && e.Kind != TurnStarted && e.Kind != TurnFinished && e.Kind != TurnProgress {
			t.Errorf("b: %+v", e)
		}
	}
	if log.count(TurnStarted) != 1 {
		t.Errorf("events:\n%s", log)
	}
}

// Pauses between attempts double up to a bound.
func TestBackoff(t *testing.T) {
	r := &Runner{cfg: Config{RetryBase: 500 * time.Millisecond}}
	for attempts, want := range map[int]time.Duration{1: 500 * time.Millisecond, 2: time.Second, 3: 2 * time.Second, 7: 32 * time.Second, 8: time.Minute, 1000: time.Minute} {
		if got := r.pause(attempts); got != want {
			t.Errorf("after %d attempts: %v, want %v", attempts, got, want)
		}
	}
}
