package runner

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/turn"
)

func TestJoinAll(t *testing.T) {
	const sets = 5
	g := newGraph(t,
		"agents/left/agent.yaml", "inputs: [../../in]\n", "agents/left/system/.schema-l.txt@regex", "(.|\n)*",
		"agents/right/agent.yaml", "inputs: [../../in]\nconcurrency: 4\n", "agents/right/system/.schema-r.txt@regex", "(.|\n)*",
		"agents/both/agent.yaml", "inputs: [../left/output, ../right/output, ../../in]\njoin: all\n", "agents/both/system/.schema-b.txt@regex", "(.|\n)*",
	)
	for i := range sets {
		g.write(fmt.Sprintf("in/%d", i), fmt.Sprintf("text %d\n", i))
	}
	var got []string
	gen := func(ctx context.Context, req *turn.Request) *record.Record {
		if req.Agent == "both" {
			genMu.Lock()
			got = append(got, req.User)
			genMu.Unlock()
			return completed(req, "joined")
		}
		return echo(ctx, req)
	}
	s, log := g.once(gen)
	if s != (Summary{Completed: 3 * sets}) {
		t.Fatalf("%+v; events:\n%s", s, log)
	}
	seen := map[string]bool{}
	for _, user := range got {
		var l, r, i int
		n, err := fmt.Sscanf(strings.ReplaceAll(user, "\n", "|"),
			"## agents/left/output/l_%d.txt||left(text %d)||## agents/right/output/r_%d.txt||right(text %d)||## in/%d||text %d", &l, &i, &r, new(int), new(int), new(int))
		if n != 6 || err != nil {
			t.Fatalf("the joined message is %q (%d, %v)", user, n, err)
		}
		want := fmt.Sprintf("left(text %d)", i)
		if !strings.Contains(user, want) || !strings.Contains(user, fmt.Sprintf("right(text %d)", i)) || !strings.Contains(user, fmt.Sprintf("## in/%d\n\ntext %d", i, i)) || seen[want] {
			t.Errorf("mixed lineages: %q", user)
		}
		seen[want] = true
	}
	// Nothing is joined twice, also when the ledger is rebuilt.
	for _, lost := range []bool{false, true} {
		if lost {
			g.must(os.RemoveAll(g.path(".agentgraph")))
		}
		if s, log := g.once(gen); s != (Summary{}) {
			t.Errorf("again (ledger lost: %v): %+v; events:\n%s", lost, s, log)
		}
	}
	// A set that lacks a part is not pending, and the run says so.
	g.write("agents/left/output/stray.txt", "from nowhere")
	s, _ = g.once(gen)
	if s != (Summary{Incomplete: 1}) || s.ExitCode() != 1 {
		t.Errorf("an incomplete set: %+v", s)
	}
	log2 := newLog()
	l := g.run(g.config(gen, log2), log2)
	l.quiet()
	for _, a := range l.r.Status().Agents {
		if want := []string{"agents/left/output/stray.txt: nothing yet in agents/right/output, in"}; a.Name == "both" && !cmp.Equal(a.Incomplete, want) {
			t.Errorf("status lists %q, want %q", a.Incomplete, want)
		}
	}
}

func TestHistory(t *testing.T) {
	g := newGraph(t, "agents/a/agent.yaml", "history: 2\nconcurrency: 1\n")
	var seen []string
	gen := func(ctx context.Context, req *turn.Request) *record.Record {
		var h []string
		for _, e := range req.History {
			h = append(h, e.User+"→"+e.Answer)
		}
		seen = append(seen, strings.Join(h, " ")+" | "+req.User)
		if req.User == "bad" {
			return failed(req, record.OutputValidationFailed, false)
		}
		return completed(req, strings.ToUpper(req.User))
	}
	drop := func(name, text string, age int) {
		g.write("agents/a/input/"+name, text)
		at := time.Now().Add(-time.Duration(age) * time.Minute)
		g.must(os.Chtimes(g.path("agents/a/input/"+name), at, at))
	}
	drop("1", "a", 9)
	drop("2", "b", 8)
	drop("3", "bad", 7)
	drop("4", "c", 6)
	g.once(gen)
	drop("5", "d", 5) // after a restart, from the records
	drop("6", "e", 4)
	g.once(gen)
	want := []string{" | a", "a→A | b", "a→A b→B | bad", "a→A b→B | c", "b→B c→C | d", "c→C d→D | e"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("histories (-want +got):\n%s", diff)
	}
}

// A flood in one agent does not hold up another on the same model.
func TestFairness(t *testing.T) {
	g := newGraph(t, "agentgraph.yaml", "models: {m: {script: x, parallel: 1}}\ndefaults: {model: m}\n", "agents/flood/agent.yaml", "concurrency: 4\n", "agents/quiet/system/", "")
	for i := range 200 {
		g.write(fmt.Sprintf("agents/flood/input/%d", i), fmt.Sprint(i))
	}
	g.write("agents/quiet/input/x", "please")
	var order []string
	running, most := 0, 0
	log := newLog()
	var r *Runner
	var first sync.Once
	r, err := New(g.config(func(ctx context.Context, req *turn.Request) *record.Record {
		first.Do(func() { // until both have their inputs
			for req.Agent == "flood" && !slices.ContainsFunc(r.Status().Agents, func(a AgentStatus) bool { return a.Name == "quiet" && a.Pending == 1 }) && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		})
		genMu.Lock()
		order = append(order, req.Agent)
		running++
		most = max(most, running)
		genMu.Unlock()
		time.Sleep(time.Millisecond)
		genMu.Lock()
		running--
		genMu.Unlock()
		return echo(ctx, req)
	}, log))
	g.must(err)
	s, err := r.Once(t.Context())
	g.must(err)
	g.clean()
	if most != 1 {
		t.Errorf("the model has parallel: 1 and had %d turns at once", most)
	}
	at := -1
	for i, a := range order {
		if a == "quiet" {
			at = i
		}
	}
	if s.Completed != 201 || at < 0 || at > 20 {
		t.Errorf("%+v; the quiet agent was served as number %d of %d; events:\n%s", s, at, len(order), log)
	}
}

func TestCycleIsBounded(t *testing.T) {
	g := newGraph(t,
		"agents/ping/agent.yaml", "inputs: [input, ../pong/output]\nmax_hops: 3\n", "agents/ping/input/x", "go",
		"agents/pong/agent.yaml", "inputs: [../ping/output]\n",
	)
	s, log := g.once(echo)
	// ping 0, pong 1, ping 2, pong 3; ping does not take what has passed 4.
	if s != (Summary{Completed: 4}) || log.count(HopsReached) != 1 {
		t.Fatalf("%+v; events:\n%s", s, log)
	}
	hops := map[int]bool{}
	for _, a := range []string{"ping", "pong"} {
		g.must(store.Open(g.path("agents/" + a + "/turns")).Each(func(_ string, r *record.Record) error {
			hops[r.Lineage.Hops] = true
			if r.Lineage.Roots[0].Path != "agents/ping/input/x" {
				t.Errorf("root %+v", r.Lineage.Roots)
			}
			return nil
		}))
	}
	if diff := cmp.Diff(map[int]bool{0: true, 1: true, 2: true, 3: true}, hops); diff != "" {
		t.Errorf("hops (-want +got):\n%s", diff)
	}
	if s, _ := g.once(echo); s != (Summary{}) {
		t.Errorf("again: %+v", s)
	}
	// More hops are given live or at the next start.
	g.write("agents/ping/agent.yaml", "inputs: [input, ../pong/output]\nmax_hops: 5\n")
	if s, _ := g.once(echo); s != (Summary{Completed: 2}) {
		t.Errorf("with more hops: %+v", s)
	}
}
