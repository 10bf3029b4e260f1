package runner

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/turn"
)

func TestOnceWorksAChain(t *testing.T) {
	g := newGraph(t,
		"agents/writer/system/.schema-draft.txt@regex", ".*",
		"agents/writer/input/a.txt", "one",
		"agents/writer/input/b.txt", "two",
		"agents/editor/agent.yaml", "inputs: [../writer/output]\n",
	)
	s, log := g.once(echo)
	if want := (Summary{Completed: 4}); s != want {
		t.Fatalf("summary %+v, want %+v; events:\n%s", s, want, log)
	}
	if diff := cmp.Diff(map[string]string{"draft_0.txt": "writer(one)", "draft_1.txt": "writer(two)"}, g.outputs("agents/writer/output")); diff != "" {
		t.Errorf("writer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"editor(writer(one))", "editor(writer(two))"}, g.contents("agents/editor/output")); diff != "" {
		t.Errorf("editor (-want +got):\n%s", diff)
	}

	// Nothing is done twice, also when the ledger is gone.
	for _, lost := range []bool{false, true} {
		if lost {
			g.must(os.RemoveAll(g.path(".agentgraph")))
		}
		if s, log := g.once(echo); s != (Summary{}) {
			t.Errorf("again (ledger lost: %v): %+v; events:\n%s", lost, s, log)
		}
	}

	// The lineage says where an answer came from.
	var hops []int
	err := store.Open(g.path("agents/editor/turns")).Each(func(_ string, r *record.Record) error {
		hops = append(hops, r.Lineage.Hops)
		if len(r.Lineage.Roots) != 1 || !strings.HasPrefix(r.Lineage.Roots[0].Path, "agents/writer/input/") {
			t.Errorf("roots: %+v", r.Lineage.Roots)
		}
		return nil
	})
	if diff := cmp.Diff([]int{1, 1}, hops); err != nil || diff != "" {
		t.Errorf("hops: %v, %v", hops, err)
	}
}

func TestIdentity(t *testing.T) {
	g := newGraph(t, "agents/a/system/", "", "agents/a/input/x.txt", "1")
	g.once(echo)
	old := time.Now().Add(-time.Hour)
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"touch", func() { g.must(os.Chtimes(g.path("agents/a/input/x.txt"), old, old)) }, 1},
		{"chmod", func() { g.must(os.Chmod(g.path("agents/a/input/x.txt"), 0o600)) }, 1},
		{"the same bytes saved again", func() { g.write("agents/a/input/x.txt", "1") }, 1},
		{"new content", func() { g.write("agents/a/input/x.txt", "2") }, 2},
		{"old content again", func() { g.write("agents/a/input/x.txt", "1") }, 2},
		{"the same content elsewhere", func() { g.write("agents/a/input/y.txt", "1") }, 3},
		{"settings changed", func() { g.write("agents/a/agent.yaml", "prompt: other\n") }, 3},
		{"the same size and time", func() {
			g.write("agents/a/input/y.txt", "3")
			info, err := os.Stat(g.path("agents/a/input/x.txt"))
			g.must(err)
			g.must(os.Chtimes(g.path("agents/a/input/y.txt"), info.ModTime(), info.ModTime()))
		}, 4},
	} {
		step.do()
		if _, log := g.once(echo); len(g.outputs("agents/a/output")) != step.want {
			t.Errorf("%s: %d answers, want %d; events:\n%s", step.name, len(g.outputs("agents/a/output")), step.want, log)
		}
	}
}

func TestFailures(t *testing.T) {
	g := newGraph(t,
		"agents/flaky/agent.yaml", "retries: 2\n", "agents/flaky/input/x", "1",
		"agents/dead/agent.yaml", "retries: 2\n", "agents/dead/input/x", "1",
		"agents/bad/system/", "", "agents/bad/input/x", "1",
		"agents/fine/system/", "", "agents/fine/input/x", "1",
		"agents/binary/system/", "", "agents/binary/input/x", "a\x00b",
	)
	calls := map[string]int{}
	gen := func(ctx context.Context, req *turn.Request) *record.Record {
		calls[req.Agent]++
		switch {
		case req.Agent == "flaky" && req.Attempt < 3, req.Agent == "dead":
			return failed(req, record.ModelError, true)
		case req.Agent == "bad":
			return failed(req, record.OutputValidationFailed, false)
		}
		return echo(ctx, req)
	}
	serial := func(ctx context.Context, req *turn.Request) *record.Record {
		genMu.Lock()
		defer genMu.Unlock()
		return gen(ctx, req)
	}
	s, log := g.once(serial)
	if want := (Summary{Completed: 2, Failed: 2, Refused: 1}); s != want || s.ExitCode() != 1 {
		t.Fatalf("summary %+v, want %+v; events:\n%s", s, want, log)
	}
	if diff := cmp.Diff(map[string]int{"flaky": 3, "dead": 3, "bad": 1, "fine": 1}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if n := log.count(TurnRetrying); n != 4 {
		t.Errorf("%d retries were told, want 4", n)
	}
	for agent, code := range map[string]record.Code{"dead": record.ModelError, "bad": record.OutputValidationFailed, "binary": record.InputNotText} {
		n := 0
		err := store.Open(g.path("agents/" + agent + "/turns")).Each(func(_ string, r *record.Record) error {
			n++
			if r.Error == nil || r.Error.Code != code {
				t.Errorf("%s: error %+v, want %s", agent, r.Error, code)
			}
			if agent != "binary" && (r.Outcome.Output == nil || *r.Outcome.Output != "half an ans") {
				t.Errorf("%s: the raw answer is not in the record", agent)
			}
			return nil
		})
		if n != 1 || err != nil {
			t.Errorf("%s has %d records, want 1 (%v)", agent, n, err)
		}
		if len(g.outputs("agents/"+agent+"/output")) != 0 {
			t.Errorf("%s published something", agent)
		}
	}
	// The same bad input never loops; the refused one still counts.
	clear(calls)
	if s, _ := g.once(serial); s != (Summary{Refused: 1}) || len(calls) != 0 {
		t.Errorf("again: %+v, calls %v", s, calls)
	}
	// A refused turn is pending again when its prompt or schema changes.
	g.write("agents/binary/input/y", "text")
	g.write("agents/binary/system/p.txt", "changed")
	if s, log := g.once(serial); s != (Summary{Completed: 1, Refused: 1}) || log.count(TurnRefused) != 1 {
		t.Errorf("after the change: %+v; events:\n%s", s, log)
	}
}

func TestOrderAndConcurrency(t *testing.T) {
	const n = 60
	g := newGraph(t, "agents/a/agent.yaml", "concurrency: 8\n", "agents/a/system/.schema-r.txt@regex", ".*")
	for i := range n {
		name := fmt.Sprintf("agents/a/input/%03d", i)
		g.write(name, fmt.Sprint(i))
		at := time.Now().Add(time.Duration(i-1000) * time.Second)
		g.must(os.Chtimes(g.path(name), at, at))
	}
	var running, most int
	gen := func(ctx context.Context, req *turn.Request) *record.Record {
		genMu.Lock()
		running++
		most = max(most, running)
		genMu.Unlock()
		var i int
		fmt.Sscan(req.User, &i)
		time.Sleep(time.Duration(i*7%11) * time.Millisecond) // later ones finish first
		genMu.Lock()
		running--
		genMu.Unlock()
		return echo(ctx, req)
	}
	s, log := g.once(gen)
	if s != (Summary{Completed: n}) {
		t.Fatalf("%+v; events:\n%s", s, log)
	}
	want := map[string]string{}
	for i := range n {
		want[fmt.Sprintf("r_%d.txt", i)] = fmt.Sprintf("a(%d)", i)
	}
	if diff := cmp.Diff(want, g.outputs("agents/a/output")); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if most < 2 || most > 8 {
		t.Errorf("%d turns ran at once, want 2 to 8", most)
	}
}

// A turn that has all of its timeout is over, with a record, and is not tried
// again; the next one has its own time.
func TestTimeout(t *testing.T) {
	g := newGraph(t, "agents/a/agent.yaml", "timeout: 3s\nretries: 3\n", "agents/a/input/x", "slow", "agents/a/input/y", "quick")
	s, log := g.once(byScript(t, "replies:\n  - {match: slow, prefer: 'on and ', token_delay: 10ms}\ndefault: {text: done}\n"))
	if s != (Summary{Completed: 1, Failed: 1}) || log.count(TurnRetrying) != 0 {
		t.Fatalf("%+v; events:\n%s", s, log)
	}
	n := 0
	g.must(store.Open(g.path("agents/a/turns")).Each(func(_ string, r *record.Record) error {
		if r.Error != nil {
			n++
			if r.Error.Code != record.CodeTimedOut || r.Outcome.Status != record.TimedOut || r.Outcome.Output == nil || *r.Outcome.Output == "" {
				t.Errorf("%+v, %+v", r.Error, r.Outcome)
			}
		}
		return nil
	}))
	if n != 1 {
		t.Errorf("%d records of failures", n)
	}
}

// A turn that waits for another attempt gives up its place: those after it
// publish, and it takes the number that is next when it is done.
func TestRetryGivesUpItsPlace(t *testing.T) {
	g := newGraph(t, "agents/a/agent.yaml", "concurrency: 2\nretries: 1\n", "agents/a/system/.schema-r.txt@regex", ".*")
	for i, name := range []string{"first", "second", "third"} {
		g.write("agents/a/input/"+name, name)
		at := time.Now().Add(time.Duration(i-100) * time.Second)
		g.must(os.Chtimes(g.path("agents/a/input/"+name), at, at))
	}
	log := newLog()
	cfg := g.config(func(ctx context.Context, req *turn.Request) *record.Record {
		if req.User == "first" && req.Attempt == 1 {
			return failed(req, record.ModelError, true)
		}
		return echo(ctx, req)
	}, log)
	cfg.RetryBase = time.Hour
	l := g.run(cfg, newReady(log))
	l.until("the others", func() bool { return log.count(TurnFinished) == 2 })
	l.stop()
	g.sql(".agentgraph/ledger.db", "UPDATE turns SET next_at=1 WHERE state=2")
	if s, log := g.once(echo); s != (Summary{Completed: 1}) {
		t.Fatalf("%+v; events:\n%s", s, log)
	}
	want := map[string]string{"r_0.txt": "a(second)", "r_1.txt": "a(third)", "r_2.txt": "a(first)"}
	if diff := cmp.Diff(want, g.outputs("agents/a/output")); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}
