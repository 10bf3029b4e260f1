package runner

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/turn"
)

// genMu guards what generators of tests count.
var genMu sync.Mutex

// testGraph is a graph on disk with a generator of its own.
type testGraph struct {
	t    *testing.T
	root string
}

// newGraph makes a graph of agents; files are path, content pairs.
func newGraph(t *testing.T, files ...string) *testGraph {
	t.Helper()
	return newGraphIn(t, t.TempDir(), files...)
}

func newGraphIn(t *testing.T, dir string, files ...string) *testGraph {
	t.Helper()
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	g := &testGraph{t, root}
	for i := 0; i < len(files); i += 2 {
		g.write(files[i], files[i+1])
	}
	return g
}

func (g *testGraph) path(rel string) string { return filepath.Join(g.root, filepath.FromSlash(rel)) }

func (g *testGraph) write(rel, content string) {
	g.t.Helper()
	path := g.path(rel)
	if strings.HasSuffix(rel, "/") {
		g.must(os.MkdirAll(path, 0o755))
		return
	}
	g.must(os.MkdirAll(filepath.Dir(path), 0o755))
	g.must(os.WriteFile(path, []byte(content), 0o644))
}

func (g *testGraph) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// outputs are the answers in a folder, name → content, without dotfiles.
func (g *testGraph) outputs(rel string) map[string]string {
	g.t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(g.path(rel))
	if os.IsNotExist(err) {
		return out
	}
	g.must(err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // being written, or checked by clean
		}
		data, err := os.ReadFile(filepath.Join(g.path(rel), e.Name()))
		g.must(err)
		out[e.Name()] = string(data)
	}
	return out
}

// clean checks that nothing temporary is left.
func (g *testGraph) clean() {
	g.t.Helper()
	g.must(filepath.WalkDir(g.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".tmp") && strings.HasPrefix(d.Name(), ".") {
			g.t.Errorf("%s was left behind", path)
		}
		return err
	}))
	if names, err := os.ReadDir(g.path(".agentgraph/snapshots")); err == nil && len(names) > 0 {
		g.t.Errorf("%d snapshots were left behind", len(names))
	}
}

// contents are the answers in a folder, sorted.
func (g *testGraph) contents(rel string) []string {
	list := []string{}
	for _, c := range g.outputs(rel) {
		list = append(list, c)
	}
	sort.Strings(list)
	return list
}

// echo answers with the agent's name and the input.
func echo(_ context.Context, req *turn.Request) *record.Record {
	return completed(req, req.Agent+"("+strings.TrimSpace(req.User)+")")
}

func completed(req *turn.Request, text string) *record.Record {
	now := time.Now()
	if req.Clock != nil {
		now = req.Clock()
	}
	stop := model.Stop
	run := req.RunID
	return record.Normal(&record.Record{
		SchemaVersion: record.SchemaVersion, TurnID: &req.TurnID, RunID: &run, TraceID: &req.TraceID, SessionID: &req.SessionID, Agent: &req.Agent, Attempt: req.Attempt,
		Outcome:          &record.Outcome{Status: record.Completed, Output: &text, FinishReason: &stop},
		OutputValidation: record.Validation{Status: record.NotRequested},
		Inputs:           req.Inputs, Lineage: req.Lineage, Timing: &record.Timing{Started: now, Finished: now},
		Request: &record.Request{Messages: turn.Messages(req)},
	})
}

func failed(req *turn.Request, code record.Code, retry bool) *record.Record {
	rec := completed(req, "half an ans")
	rec.Outcome.Status, rec.Outcome.Code, rec.Outcome.Delivery = record.Failed, code, model.ResponseReceived
	rec.Error = &record.Error{Code: code, Message: "it did not work", Retry: retry}
	return rec
}

// log keeps events.
type eventLog struct {
	mu     sync.Mutex
	events []Event
	seen   chan struct{}
}

func newLog() *eventLog { return &eventLog{seen: make(chan struct{}, 1)} }

func (l *eventLog) add(e Event) {
	l.mu.Lock()
	l.events = append(l.events, e)
	l.mu.Unlock()
	select {
	case l.seen <- struct{}{}:
	default:
	}
}

func (l *eventLog) all() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Event(nil), l.events...)
}

func (l *eventLog) count(kind EventKind) int {
	n := 0
	for _, e := range l.all() {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func (l *eventLog) String() string {
	var b strings.Builder
	for _, e := range l.all() {
		if e.Kind == TurnProgress {
			continue
		}
		fmt.Fprintf(&b, "%s %s %v %s %s", e.Kind, e.Agent, e.Inputs, e.Output, e.Message)
		if e.Error != nil {
			fmt.Fprintf(&b, " [%s: %s]", e.Error.Code, e.Error.Message)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (g *testGraph) config(gen GeneratorFunc, log *eventLog) Config {
	cfg := Config{Root: g.root, Load: agents.LoadOptions{DefaultModel: "script:none"}, Generator: gen, RetryBase: time.Millisecond, PollEvery: 20 * time.Millisecond}
	if log != nil {
		cfg.Events = log.add
	}
	return cfg
}

// once runs the graph until nothing is pending.
func (g *testGraph) once(gen GeneratorFunc) (Summary, *eventLog) {
	g.t.Helper()
	log := newLog()
	r, err := New(g.config(gen, log))
	g.must(err)
	ctx, cancel := context.WithTimeout(g.t.Context(), 3*time.Minute)
	defer cancel()
	s, err := r.Once(ctx)
	g.must(err)
	g.clean()
	return s, log
}

// live is a runner at work.
type live struct {
	*eventLog
	g      *testGraph
	r      *Runner
	cancel context.CancelFunc
	done   chan error
}

// run starts the graph and returns when all folders were read once.
func (g *testGraph) run(cfg Config, log *eventLog) *live {
	g.t.Helper()
	r, err := New(cfg)
	g.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	l := &live{log, g, r, cancel, make(chan error, 1)}
	go func() { l.done <- r.Run(ctx) }()
	g.t.Cleanup(func() { l.stop() })
	l.until("ready", func() bool { return log.count(Ready) > 0 })
	return l
}

func (l *live) stop() {
	l.cancel()
	select {
	case err := <-l.done:
		l.done <- nil
		if err != nil {
			l.g.t.Error(err)
		}
		l.g.clean()
	case <-time.After(time.Minute):
		l.g.t.Fatalf("the runner does not stop; events:\n%s", l.eventLog)
	}
}

// until waits for something to become true, and looks again after each event.
func (l *live) until(what string, ok func() bool) {
	l.g.t.Helper()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case <-l.seen:
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			l.g.t.Fatalf("waited in vain for: %s; events:\n%s", what, l.eventLog)
		}
	}
}

// quiet waits until the runner has nothing to do.
func (l *live) quiet() {
	l.g.t.Helper()
	l.until("nothing to do", func() bool {
		l.r.mu.Lock()
		defer l.r.mu.Unlock()
		return !l.r.busy()
	})
}

// describe says what a runner is busy with.
func (r *Runner) describe() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := fmt.Sprintf("jobs %d, looking %d, files waiting %d, turns waiting %d", r.jobs, r.looking, r.waitingFiles, r.waitingTurns)
	for _, st := range r.agents {
		s += fmt.Sprintf("; %s: queue %d, ready %d, stuck %d, running %d, places %d", st.name, len(st.queue), len(st.ready), len(st.stuck), st.running, len(st.order.places))
		for _, in := range st.intakes {
			in.mu.Lock()
			s += fmt.Sprintf(", %s: known %d, settling %d, queued %d, blocked %d", in.rel, len(in.prints), len(in.settling), len(in.queued), len(in.blocked))
			in.mu.Unlock()
		}
	}
	return s
}

func progressOf(tokens int) model.Progress { return model.Progress{Tokens: tokens} }
