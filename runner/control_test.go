package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentgraph/internal/watch"
	"agentgraph/record"
	"agentgraph/turn"
)

// gate holds turns until it is opened.
type gate struct{ open chan struct{} }

func newGate() *gate { return &gate{make(chan struct{})} }

func (x *gate) run(ctx context.Context, req *turn.Request) *record.Record {
	if req.Progress != nil {
		req.Progress(progressOf(7))
	}
	select {
	case <-x.open:
		return echo(ctx, req)
	case <-ctx.Done():
		rec := failed(req, record.CodeCancelled, true)
		rec.Outcome.Status = record.Cancelled
		return rec
	}
}

func TestControl(t *testing.T) {
	g := newGraph(t, "agents/a/agent.yaml", "retries: 0\n", "agents/a/input/", "", "agents/b/input/", "")
	if _, err := Dial(g.root); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("Dial without a runner: %v", err)
	}
	hold := newGate()
	bad := map[string]bool{"bad": true}
	log := newLog()
	l := g.run(g.config(func(ctx context.Context, req *turn.Request) *record.Record {
		genMu.Lock()
		isBad := bad[req.User]
		genMu.Unlock()
		if isBad {
			return failed(req, record.OutputValidationFailed, false)
		}
		return hold.run(ctx, req)
	}, log), log)

	info, err := os.Stat(socketPath(g.root))
	g.must(err)
	dir, err := os.Stat(filepath.Dir(socketPath(g.root)))
	g.must(err)
	if info.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700 {
		t.Errorf("socket %v in a folder %v", info.Mode(), dir.Mode())
	}
	c, err := Dial(g.root)
	g.must(err)
	defer c.Close()
	ask := func(req Request) Response {
		t.Helper()
		resp, err := c.Do(req)
		g.must(err)
		return resp
	}
	agent := func(name string) AgentStatus {
		t.Helper()
		s, err := c.Status()
		g.must(err)
		for _, a := range s.Agents {
			if a.Name == name {
				return a
			}
		}
		t.Fatalf("no agent %s in %+v", name, s)
		return AgentStatus{}
	}

	g.write("agents/a/input/x", "one")
	l.until("a runs", func() bool { a := agent("a"); return len(a.Running) == 1 && a.Running[0].Tokens == 7 })
	g.write("agents/a/input/y", "two")
	l.until("a has one pending", func() bool { return agent("a").Pending == 1 })
	if a := agent("a"); a.State != "running" || a.Running[0].Inputs[0] != "agents/a/input/x" {
		t.Errorf("status: %+v", a)
	}

	// Stop an agent: its turn is not lost, and nothing runs until resume.
	ask(Request{Command: CmdStop, Agent: "a"})
	l.until("a is paused", func() bool { a := agent("a"); return a.State == "paused" && len(a.Running) == 0 && a.Pending == 2 })
	close(hold.open)
	g.write("agents/b/input/x", "other")
	l.until("b goes on", func() bool { return agent("b").Done == 1 })
	ask(Request{Command: CmdResume, Agent: "a"})
	l.until("a is done", func() bool { return agent("a").Done == 2 })
	if a := agent("a"); a.TurnsPerMinute != 2 {
		t.Errorf("rate: %+v", a)
	}

	// A failure is retried when asked, under its own name.
	g.write("agents/a/input/z", "bad")
	l.until("it failed", func() bool { return agent("a").Failed == 1 })
	genMu.Lock()
	clear(bad)
	genMu.Unlock()
	if r := ask(Request{Command: CmdRetry, Retry: RetryOptions{Target: "a"}}).Retry; len(r.Turns) != 1 {
		t.Errorf("retry: %+v", r)
	}
	l.until("it is done", func() bool { a := agent("a"); return a.Done == 3 && a.Failed == 0 })
	records := len(records(g, "a"))
	if records != 3 {
		t.Errorf("%d records, want 3", records)
	}
	// Completed turns are repeated only by force, as turns of their own.
	id := ""
	for _, e := range log.all() {
		if e.Kind == TurnFinished && e.Agent == "a" {
			id = e.Turn
		}
	}
	if _, err := c.Do(Request{Command: CmdRetry, Retry: RetryOptions{Target: id}}); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("retry of a completed turn: %v", err)
	}
	ask(Request{Command: CmdRetry, Retry: RetryOptions{Target: id, Force: true}})
	l.until("it is repeated", func() bool { return agent("a").Done == 4 })
	if n := len(g.outputs("agents/a/output")); n != 4 {
		t.Errorf("%d answers, want 4", n)
	}
	for name, req := range map[string]Request{
		"no such agent": {Command: CmdPause, Agent: "nobody"},
		"no such turn":  {Command: CmdRetry, Retry: RetryOptions{Target: "nothing"}},
		"no target":     {Command: CmdRetry},
		"no command":    {Command: "dance"},
	} {
		if _, err := c.Do(req); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ask(Request{Command: CmdReload})
	ask(Request{Command: CmdFinish})
	select {
	case err := <-l.done:
		l.done <- err
	case <-time.After(time.Minute):
		t.Fatal("finish does not end the runner")
	}
	if _, err := os.Stat(socketPath(g.root)); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

func records(g *testGraph, agent string) []string {
	g.t.Helper()
	names, err := filepath.Glob(g.path("agents/" + agent + "/turns/*.json"))
	g.must(err)
	return names
}

func TestRetryOffline(t *testing.T) {
	g := newGraph(t, "agents/a/agent.yaml", "retries: 0\n", "agents/a/input/x", "one", "agents/a/input/y", "two", "agents/a/input/z", "three")
	fail := func(_ context.Context, req *turn.Request) *record.Record {
		return failed(req, record.ModelError, false)
	}
	if s, _ := g.once(fail); s.Failed != 3 {
		t.Fatalf("%+v", s)
	}
	g.write("agents/a/input/y", "changed")
	g.must(os.Remove(g.path("agents/a/input/z")))
	res, err := RetryOffline(g.root, RetryOptions{All: true})
	g.must(err)
	if len(res.Turns) != 1 || len(res.Skipped) != 2 {
		t.Fatalf("%+v", res)
	}
	if s, log := g.once(echo); s != (Summary{Completed: 2}) {
		t.Fatalf("%+v; events:\n%s", s, log)
	}
	if res, err = RetryOffline(g.root, RetryOptions{Target: "a", Force: true}); err != nil || len(res.Turns) != 2 {
		t.Fatalf("force: %+v, %v", res, err)
	}
	if s, _ := g.once(echo); s.Completed != 2 || len(g.outputs("agents/a/output")) != 4 {
		t.Fatalf("%+v, %v", s, g.outputs("agents/a/output"))
	}
}

func TestPauseHoldsOverRestarts(t *testing.T) {
	g := newGraph(t, "agents/a/input/x", "one")
	r, err := New(g.config(echo, nil))
	g.must(err)
	g.must(r.ledger.Pause("a", true).Wait(t.Context()))
	g.must(r.Close())
	if s, _ := g.once(echo); s != (Summary{Paused: 1}) {
		t.Errorf("%+v", s)
	}
}

func TestOneRunnerPerGraph(t *testing.T) {
	// The path is longer than a socket's may be.
	deep := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
	g := newGraph(t)
	g.root = deep
	g.write("agents/a/input/x", "one")
	log := newLog()
	l := g.run(g.config(echo, log), log)
	_, err := New(g.config(echo, nil))
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "process ") || !strings.Contains(err.Error(), ", since 20") {
		t.Errorf("the second runner: %v", err)
	}
	c, err := Dial(g.root)
	g.must(err)
	defer c.Close()
	if s, err := c.Status(); err != nil || s.PID != os.Getpid() || s.Root != g.root {
		t.Errorf("status over a long path: %+v, %v", s, err)
	}
	l.stop()
	// A lock that a dead process left is free.
	g.must(os.WriteFile(g.path(".agentgraph/lock"), []byte(`{"pid": 1, "started": "2020-01-01T00:00:00Z"}`), 0o600))
	g.once(echo)
}

func TestStopping(t *testing.T) {
	t.Run("finish lets running turns end", func(t *testing.T) {
		g := newGraph(t, "agents/a/input/x", "one", "agents/a/input/y", "two")
		hold, log := newGate(), newLog()
		l := g.run(g.config(hold.run, newReady(log)), log)
		l.until("a turn runs", func() bool { return log.count(TurnStarted) == 1 })
		l.r.Finish()
		close(hold.open)
		if err := <-l.done; err != nil {
			t.Fatal(err)
		}
		l.done <- nil
		if n := len(g.outputs("agents/a/output")); n != 1 || log.count(TurnStarted) != 1 {
			t.Errorf("%d answers, %d started", n, log.count(TurnStarted))
		}
		if s, _ := g.once(echo); s.Completed != 1 {
			t.Errorf("afterwards: %+v", s)
		}
	})
	t.Run("a cancelled run stops at once and loses nothing", func(t *testing.T) {
		g := newGraph(t, "agents/a/agent.yaml", "concurrency: 4\n", "agents/a/input/x", "one", "agents/a/input/y", "two")
		hold := newGate()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cfg := g.config(hold.run, nil)
		cfg.Events = func(e Event) {
			if e.Kind == TurnStarted {
				cancel()
			}
		}
		r, err := New(cfg)
		g.must(err)
		s, err := r.Once(ctx)
		if err != nil || s.ExitCode() != 130 {
			t.Errorf("%+v, %v", s, err)
		}
		if s, _ := g.once(echo); s != (Summary{Completed: 2}) || len(records(g, "a")) != 2 {
			t.Errorf("afterwards: %+v, %d records", s, len(records(g, "a")))
		}
	})
}

// newReady is a log that is ready from the start, for graphs that do not
// become idle.
func newReady(l *eventLog) *eventLog {
	l.add(Event{Kind: Ready})
	return l
}

func TestWatchLimit(t *testing.T) {
	g := newGraph(t, "agents/a/input/", "")
	log := newLog()
	cfg := g.config(echo, log)
	cfg.source = func() (watch.Source, error) { return fullSource{}, nil }
	l := g.run(cfg, log)
	g.write("agents/a/input/x", "one")
	l.until("its turn", func() bool { return log.count(TurnFinished) == 1 })
	told := 0
	for _, e := range log.all() {
		if e.Kind == Problem && strings.Contains(e.Hint, "sysctl -w fs.inotify.max_user_watches=") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the limit was told %d times; events:\n%s", told, log)
	}
}
