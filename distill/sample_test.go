package distill_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/agents"
	"agentgraph/distill"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/record/recordtest"
	"agentgraph/record/store"
	"agentgraph/turn"
)

// seeded answers with the seed it is given, so that tests see which answer is
// which.
type seeded struct{ model.Model }

func (s seeded) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	last := req.Messages[len(req.Messages)-1].Content
	if strings.Contains(last, "fail") && *req.Sampling.Seed%2 == 1 {
		return nil, &model.Error{Kind: model.Failed, Err: fmt.Errorf("odd seeds fail")}
	}
	return &model.Response{Text: fmt.Sprintf(`{"rating":%d}`, *req.Sampling.Seed), Finish: model.Stop, Seed: req.Sampling.Seed}, nil
}

func sampleGraph(t *testing.T, g *graphDir) *agents.Graph {
	t.Helper()
	g.write("agentgraph.yaml", "defaults: {model: 'script:s.yaml', output: {enforce: validate}}\n")
	g.write("s.yaml", "constraints: none\ndefault: {text: x}\n")
	loaded, err := agents.Load(g.root)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestSample(t *testing.T) {
	g := newGraphDir(t)
	g.write("agents/rater/system/role.md", "Rate.\n")
	g.write("agents/rater/system/.schema-rating.json", ratingSchema)
	g.write("agents/rater/input/b.txt", "second")
	g.write("agents/rater/input/a.txt", "first")
	g.write("agents/rater/input/.hidden", "no input")
	g.write("agents/rater/output/rating_3.json", `{"rating":0}`)
	// An input of the reader is an answer of the writer, with its lineage.
	w := g.turn("writer", "a dog", "A dog barks.")
	g.write("agents/reader/system/role.md", "Read.\n")
	g.write("agents/reader/agent.yaml", "inputs: [../writer/output]\n")
	loaded := sampleGraph(t, g)

	seed := uint64(100)
	var mu sync.Mutex
	var audit []turn.Event
	opt := distill.SampleOptions{Graph: loaded, Agent: loaded.Agent("rater"), N: 3, Seed: &seed, Model: seeded{scriptModel(t, "constraints: none\ndefault: {text: x}")},
		Sampling: func(s *model.Sampling) { s.Temperature = 0.5 }, Parallel: 4, Audit: nil}
	var got []string
	rep, err := distill.Sample(context.Background(), opt, func(s *distill.Sampled) error {
		got = append(got, fmt.Sprint(s.Input, " ", *s.Seed, " ", s.Output))
		recordtest.Check(t, s.Record)
		if s.Record.Origin != record.OriginSample {
			t.Errorf("origin %q", s.Record.Origin)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, in := range []string{"a", "a", "a", "b", "b", "b"} {
		want = append(want, fmt.Sprintf("agents/rater/input/%s.txt %d agents/rater/output/rating_%d.json", in, 100+i, 4+i))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if *rep != (distill.SampleReport{Inputs: 2, Wanted: 6, Completed: 6}) {
		t.Errorf("%+v", rep)
	}
	// The records are in turns/, as a data set reads them.
	s := store.Open(loaded.Agent("rater").TurnsDir)
	n := 0
	err = s.Each(func(_ string, r *record.Record) error {
		n++
		if r.Sample == nil || *r.Sample != (record.Sample{Index: (n - 1) % 3, Of: 3}) {
			t.Errorf("answer %d is sample %+v", n, r.Sample)
		}
		if *r.Request.Sampling.Seed != 100+uint64(n-1) || r.Request.Sampling.Temperature != 0.5 || len(r.Outputs) != 1 ||
			r.Lineage.Hops != 0 || r.Lineage.Roots[0] != r.Inputs[0] || r.OutputValidation.Status != record.Valid {
			t.Errorf("%+v", r)
		}
		return nil
	})
	if err != nil || n != 6 {
		t.Errorf("%d records, %v", n, err)
	}

	opt.Agent, opt.N, opt.Parallel, opt.Audit = loaded.Agent("reader"), 2, 1, func(e turn.Event) {
		mu.Lock()
		defer mu.Unlock()
		audit = append(audit, e)
	}
	if _, err = distill.Sample(context.Background(), opt, func(s *distill.Sampled) error {
		want := &record.Lineage{Roots: w.rec.Lineage.Roots, Hops: 1}
		if d := cmp.Diff(want, s.Record.Lineage); d != "" || *s.Record.TraceID != *w.rec.TurnID {
			t.Errorf("trace %s, %s", *s.Record.TraceID, d)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, e := range audit {
		types = append(types, string(e.Type))
	}
	if strings.Join(types, " ") != "prompt prompt publish publish" && strings.Join(types, " ") != "prompt publish prompt publish" {
		t.Errorf("audit %v", types)
	}
	// What is left of the data set: every answer has a record but the one that
	// was there.
	r, dir := g.export(distill.ExportOptions{Layout: distill.Preference, Score: "answer.rating", Filter: distill.Filter{Agents: []string{"rater"}}})
	if r.Rows != 2 || r.Skipped[distill.SkipNoRecord] != 1 {
		t.Errorf("%+v", r)
	}
	if row := rows(t, filepath.Join(dir, "train.jsonl"))[0]; get(row, "score_chosen") != 102.0 || get(row, "score_rejected") != 100.0 {
		t.Errorf("%v", row)
	}
}

func TestSampleFailures(t *testing.T) {
	g := newGraphDir(t)
	g.write("agents/rater/system/role.md", "Rate.\n")
	g.write("agents/rater/input/fail.txt", "fail")
	g.write("agents/rater/agent.yaml", "limits: {input_bytes: 100}\n")
	g.write("agents/rater/input/large.txt", strings.Repeat("x", 200))
	g.write("agents/pair/system/role.md", "Join.\n")
	g.write("agents/pair/agent.yaml", "inputs: [input, ../rater/input]\njoin: all\n")
	g.write("agents/pair/input/p.txt", "p")
	g.write("agents/empty/system/role.md", "Empty.\n")
	loaded := sampleGraph(t, g)
	outside := filepath.Join(t.TempDir(), "x.txt")
	seed := uint64(0)
	opt := distill.SampleOptions{Graph: loaded, Agent: loaded.Agent("rater"), N: 2, Seed: &seed, Model: seeded{scriptModel(t, "default: {text: x}")},
		Sampling: func(s *model.Sampling) { s.Temperature = 1 }}
	var got []string
	rep, err := distill.Sample(context.Background(), opt, func(s *distill.Sampled) error {
		line := "no error"
		if s.Error != nil {
			line = string(s.Error.Code)
		}
		got = append(got, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"no error", "model_error", "input_too_large", "input_too_large"}, got); d != "" || rep.Failed != 3 {
		t.Errorf("%+v, %s", rep, d)
	}
	if ids, err := store.Open(loaded.Agent("rater").TurnsDir).IDs(); err != nil || len(ids) != 4 {
		t.Errorf("%v, %v: every turn has a record", ids, err)
	}
	refused := map[string]func(*distill.SampleOptions){
		"the temperature of agent rater is 0": func(o *distill.SampleOptions) { o.Sampling = nil },
		"1 answer or more":                    func(o *distill.SampleOptions) { o.N = 0 },
		"at most 1000 answers":                func(o *distill.SampleOptions) { o.N = distill.MaxSamples + 1 },
		"1 to 1024 answers":                   func(o *distill.SampleOptions) { o.Parallel = distill.MaxSampledAtOnce + 1 },
		"lies outside the graph":              func(o *distill.SampleOptions) { o.Inputs = []string{outside} },
		"is no input: its name begins":        func(o *distill.SampleOptions) { o.Inputs = []string{filepath.Join(g.root, "agents/rater/.x")} },
		"is gone":                             func(o *distill.SampleOptions) { o.Inputs = []string{filepath.Join(g.root, "agents/rater/x")} },
		"joins its inputs":                    func(o *distill.SampleOptions) { o.Agent = loaded.Agent("pair") },
		"has no inputs; put a file":           func(o *distill.SampleOptions) { o.Agent = loaded.Agent("empty") },
	}
	for want, change := range refused {
		o := opt
		change(&o)
		if _, err := distill.Sample(context.Background(), o, func(*distill.Sampled) error { return nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	// One set of joined inputs is one turn.
	opt.Agent, opt.N, opt.Inputs = loaded.Agent("pair"), 1, []string{filepath.Join(g.root, "agents/pair/input/p.txt"), filepath.Join(g.root, "agents/rater/input/large.txt")}
	if _, err = distill.Sample(context.Background(), opt, func(s *distill.Sampled) error {
		if len(s.Record.Inputs) != 2 || !strings.Contains(s.Record.Request.Messages[1].Content, "## agents/pair/input/p.txt\n\np\n\n## ") {
			t.Errorf("%+v", s.Record.Request)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// Records that cannot be written are found out before a token, not after the
// answer is published.
func TestSampleNeedsItsRecords(t *testing.T) {
	g := newGraphDir(t)
	g.write("agents/rater/system/role.md", "Rate.\n")
	g.write("agents/rater/input/a.txt", "first")
	g.write("agents/rater/turns", "a file where the folder should be")
	loaded := sampleGraph(t, g)
	_, err := distill.Sample(context.Background(), distill.SampleOptions{Graph: loaded, Agent: loaded.Agent("rater"), N: 1,
		Model: seeded{scriptModel(t, "constraints: none\ndefault: {text: x}")}}, func(s *distill.Sampled) error {
		t.Errorf("an answer: %+v", s)
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "records of agent rater") {
		t.Errorf("error %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(g.root, "agents/rater/output/*")); len(left) != 0 {
		t.Errorf("output/ holds %v", left)
	}
}

// The bounds are those of the settings.
func TestSampleBounds(t *testing.T) {
	g := newGraphDir(t)
	g.write("agents/rater/system/role.md", "Rate.\n")
	g.write("agentgraph.yaml", fmt.Sprintf("models: {m: {gguf: m.gguf, parallel: %d}}\ndefaults: {model: m, sampling: {temperature: 1}, samples: %d}\n", distill.MaxSampledAtOnce, distill.MaxSamples))
	loaded, err := agents.Load(g.root)
	if err != nil || len(loaded.Findings) > 0 {
		t.Fatal(err, loaded)
	}
	g.write("agentgraph.yaml", fmt.Sprintf("models: {m: {gguf: m.gguf, parallel: %d}}\ndefaults: {model: m, sampling: {temperature: 1}, samples: %d}\n", distill.MaxSampledAtOnce+1, distill.MaxSamples+1))
	if loaded, err = agents.Load(g.root); err != nil || len(loaded.Findings) != 2 {
		t.Errorf("%v, %+v", err, loaded)
	}
}

// slow answers at once with some seeds and never with others.
type slow struct {
	model.Model
	answers func(seed uint64) bool
}

func (s slow) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	seed := *req.Sampling.Seed
	if !s.answers(seed) {
		<-ctx.Done()
		return nil, &model.Error{Kind: model.Cancelled, Err: ctx.Err(), Partial: &model.Response{Text: "half"}}
	}
	return &model.Response{Text: fmt.Sprint("answer ", seed), Finish: model.Stop, Seed: &seed}, nil
}

// What is whole when a sample is cancelled is published, also behind one that
// is not; of the others nothing is left.
func TestSampleCancelled(t *testing.T) {
	g := newGraphDir(t)
	g.write("agents/rater/system/role.md", "Rate.\n")
	g.write("agents/rater/input/a.txt", "first")
	loaded := sampleGraph(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seed := uint64(0)
	// Of the two at a time one stays with seed 0, the other has answered seed 1
	// when it is given seed 2.
	m := slow{scriptModel(t, "constraints: none\ndefault: {text: x}"), func(seed uint64) bool {
		if seed == 2 {
			cancel()
		}
		return seed == 1
	}}
	var found []string
	rep, err := distill.Sample(ctx, distill.SampleOptions{Graph: loaded, Agent: loaded.Agent("rater"), N: 5, Parallel: 2, Seed: &seed,
		Model: m, Sampling: func(s *model.Sampling) { s.Temperature = 1 }}, func(s *distill.Sampled) error {
		found = append(found, fmt.Sprint(*s.Seed, s.Error))
		return nil
	})
	if !errors.Is(err, context.Canceled) || rep == nil || *rep != (distill.SampleReport{Inputs: 1, Wanted: 5, Completed: 1}) {
		t.Errorf("%+v, %v", rep, err)
	}
	if d := cmp.Diff([]string{"1 <nil>"}, found); d != "" {
		t.Error(d)
	}
	a := loaded.Agent("rater")
	if ids, err := store.Open(a.TurnsDir).IDs(); err != nil || len(ids) != 1 {
		t.Errorf("records %v, %v", ids, err)
	}
	left, _ := os.ReadDir(a.OutputDir)
	if len(left) != 1 || !strings.HasPrefix(left[0].Name(), "out-") {
		t.Errorf("output/ holds %v", left)
	}
}
