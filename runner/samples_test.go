package runner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/model"
	scripted "agentgraph/model/script"
	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/turn"
)

// seeded answers with the input and the seed it was given.
func seeded(_ context.Context, req *turn.Request) *record.Record {
	seed := "none"
	if req.Sampling.Seed != nil {
		seed = fmt.Sprint(*req.Sampling.Seed)
	}
	rec := completed(req, strings.TrimSpace(req.User)+" "+seed)
	rec.Request.Sampling = req.Sampling
	return rec
}

// dated gives an input a time by its number, so that the order of claims is
// known.
func (g *testGraph) dated(rel, text string, n int) {
	g.t.Helper()
	g.write(rel, text)
	at := time.Now().Add(time.Duration(n-10000) * time.Second)
	g.must(os.Chtimes(g.path(rel), at, at))
}

func TestSamples(t *testing.T) {
	g := newGraph(t, "agents/a/agent.yaml", "samples: 4\nsampling: {temperature: 1, seed: 70}\n", "agents/a/system/.schema-r.txt@regex", "(.|\n)*",
		"agents/b/agent.yaml", "inputs: [../a/output]\n")
	g.dated("agents/a/input/x", "x", 1)
	g.dated("agents/a/input/y", "y", 2)
	// All answers to one input generate at once, although concurrency is 1.
	inside, most := map[string]int{}, map[string]int{}
	four := map[string]chan struct{}{"x": make(chan struct{}), "y": make(chan struct{})}
	gen := func(ctx context.Context, req *turn.Request) *record.Record {
		if req.Agent == "b" {
			return echo(ctx, req)
		}
		genMu.Lock()
		inside[req.User]++
		for in, n := range inside {
			most[in] = max(most[in], n)
			if in != req.User && n > 0 {
				t.Errorf("%s and %s generate at once with concurrency: 1", in, req.User)
			}
		}
		if inside[req.User] == 4 {
			close(four[req.User])
		}
		genMu.Unlock()
		select {
		case <-four[req.User]:
		case <-time.After(time.Minute):
		}
		// The last is the first to be done.
		time.Sleep(time.Duration(80-*req.Sampling.Seed) * 2 * time.Millisecond)
		genMu.Lock()
		defer genMu.Unlock()
		inside[req.User] -= 100 // never together with the next input's
		if inside[req.User] == 4-400 {
			inside[req.User] = 0
		}
		return seeded(ctx, req)
	}
	s, log := g.once(gen)
	if s != (Summary{Completed: 16}) {
		t.Fatalf("%+v; events:\n%s", s, log)
	}
	if diff := cmp.Diff(map[string]int{"x": 4, "y": 4}, most); diff != "" {
		t.Errorf("at once (-want +got):\n%s", diff)
	}
	want := map[string]string{}
	for i := range 8 {
		want[fmt.Sprintf("r_%d.txt", i)] = fmt.Sprintf("%s %d", "xy"[i/4:i/4+1], 70+i%4)
	}
	if diff := cmp.Diff(want, g.outputs("agents/a/output")); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	traces := map[string]string{}
	g.must(store.Open(g.path("agents/a/turns")).Each(func(id string, r *record.Record) error {
		if r.Sample == nil || r.Sample.Of != 4 || *r.Request.Sampling.Seed != uint64(70+r.Sample.Index) || len(r.Lineage.Roots) != 1 {
			t.Fatalf("sample %+v, seed %v, lineage %+v", r.Sample, r.Request.Sampling.Seed, r.Lineage)
		}
		var n int
		fmt.Sscanf(filepath.Base(r.Outputs[0].Path), "r_%d.txt", &n)
		if n%4 != r.Sample.Index {
			t.Errorf("%s is sample %d", r.Outputs[0].Path, r.Sample.Index)
		}
		in := r.Inputs[0].Path
		if traces[in] == "" {
			traces[in] = *r.TraceID
		}
		if traces[in] != *r.TraceID {
			t.Errorf("%s has several traces", in)
		}
		return nil
	}))

	// Nothing is done twice: not with more samples, nor without the ledger.
	for _, change := range []func(){
		func() {},
		func() {
			g.write("agents/a/agent.yaml", "samples: 6\nsampling: {temperature: 1, seed: 70}\n")
			g.must(os.Chtimes(g.path("agents/a/input/x"), time.Now(), time.Now()))
		},
		func() { g.must(os.RemoveAll(g.path(".agentgraph"))) },
	} {
		change()
		if s, log := g.once(seeded); s != (Summary{}) {
			t.Fatalf("again: %+v; events:\n%s", s, log)
		}
	}
	// What a lost record said is done again, and that alone.
	g.must(store.Open(g.path("agents/a/turns")).Each(func(id string, r *record.Record) error {
		if strings.HasSuffix(r.Inputs[0].Path, "/y") && r.Sample.Index%3 == 0 {
			g.must(os.Remove(g.path("agents/a/turns/" + id + ".json")))
			g.must(os.Remove(g.path(r.Outputs[0].Path)))
		}
		return nil
	}))
	g.must(os.RemoveAll(g.path(".agentgraph")))
	if s, log := g.once(seeded); s != (Summary{Completed: 4}) {
		t.Fatalf("the lost ones: %+v; events:\n%s", s, log)
	}
	got := g.contents("agents/a/output")
	all := []string{}
	for _, text := range want {
		all = append(all, text)
	}
	slices.Sort(all)
	if diff := cmp.Diff(all, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// Without a seed in the settings each answer has one that is drawn, and the
// model's own bound of turns at once holds.
func TestSamplesDrawSeeds(t *testing.T) {
	g := newGraph(t, "agentgraph.yaml", "models: {m: {script: x, parallel: 2}}\ndefaults: {model: m}\n", "agents/a/agent.yaml", "samples: 7\nsampling: {temperature: 1}\nhistory: 1\n")
	g.dated("agents/a/input/x", "x", 1)
	g.dated("agents/a/input/y", "y", 2)
	running, most := 0, 0
	var histories []string
	s, log := g.once(func(ctx context.Context, req *turn.Request) *record.Record {
		genMu.Lock()
		running++
		most = max(most, running)
		h := req.User + ":"
		for _, e := range req.History {
			h += " " + e.User
		}
		histories = append(histories, h)
		genMu.Unlock()
		time.Sleep(5 * time.Millisecond)
		genMu.Lock()
		running--
		genMu.Unlock()
		return seeded(ctx, req)
	})
	if s != (Summary{Completed: 14}) || most != 2 {
		t.Fatalf("%+v, %d at once; events:\n%s", s, most, log)
	}
	seeds := map[string]bool{}
	for _, text := range g.contents("agents/a/output") {
		_, seed, _ := strings.Cut(text, " ")
		seeds[seed] = true
	}
	if len(seeds) != 14 || seeds["none"] {
		t.Errorf("seeds %v", seeds)
	}
	// No answer has another to the same input in its history.
	want := slices.Concat(slices.Repeat([]string{"x:"}, 7), slices.Repeat([]string{"y: x"}, 7))
	if diff := cmp.Diff(want, histories); diff != "" {
		t.Errorf("histories (-want +got):\n%s", diff)
	}
}

// A model that serves several turns at once gets all answers of the first
// input together, as soon as it is open.
func TestSamplesWaitForTheModel(t *testing.T) {
	g := newGraph(t, "agents/a/agent.yaml", "samples: 3\nsampling: {temperature: 1}\n", "agents/a/input/x", "x")
	m, err := scripted.New("m.yaml", []byte("parallel: 3\ndefault: {text: x}\n"), scripted.Config{})
	g.must(err)
	var inside sync.WaitGroup
	inside.Add(3)
	log := newLog()
	cfg := g.config(func(ctx context.Context, req *turn.Request) *record.Record {
		inside.Done()
		inside.Wait() // for ever when they come one after the other
		return seeded(ctx, req)
	}, log)
	cfg.Models = oneModel{m}
	r, err := New(cfg)
	g.must(err)
	if s, err := r.Once(t.Context()); err != nil || s != (Summary{Completed: 3}) {
		t.Errorf("%+v, %v; events:\n%s", s, err, log)
	}
}

type oneModel struct{ m model.Model }

func (o oneModel) Model(context.Context, string) (model.Model, error) { return o.m, nil }

// Many inputs at once with several answers each: all are published, in the
// order of claims and samples.
func TestSamplesInOrder(t *testing.T) {
	const inputs, samples = 90, 5
	for _, history := range []int{0, 1} {
		g := newGraph(t, "agents/a/agent.yaml", fmt.Sprintf("samples: %d\nsampling: {temperature: 1, seed: 0}\nconcurrency: 80\nhistory: %d\nretries: 1\n", samples, history),
			"agents/a/system/.schema-r.txt@regex", "(.|\n)*")
		for i := range inputs {
			g.dated(fmt.Sprintf("agents/a/input/%03d", i), fmt.Sprintf("%03d", i), i)
		}
		s, log := g.once(func(ctx context.Context, req *turn.Request) *record.Record {
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
			return seeded(ctx, req)
		})
		if s != (Summary{Completed: inputs * samples}) {
			t.Fatalf("%+v; events:\n%s", s, log)
		}
		got := g.outputs("agents/a/output")
		for i := range inputs * samples {
			name, want := fmt.Sprintf("r_%d.txt", i), fmt.Sprintf("%03d %d", i/samples, i%samples)
			if got[name] != want {
				t.Fatalf("%s holds %q, want %q", name, got[name], want)
			}
		}
	}
}

// A runner that dies with several answers under way: each is published once.
func TestSamplesCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	for _, step := range []string{"claimed", "generated", "intended", "committed", "recorded", "closed", "waiting"} {
		for _, nth := range []int{1, 5} {
			t.Run(fmt.Sprintf("%s %d", step, nth), func(t *testing.T) {
				t.Parallel()
				g := crashGraph(t, 2)
				g.write("agents/writer/agent.yaml", "samples: 3\nsampling: {temperature: 1, seed: 5}\nconcurrency: 2\n")
				inputs := map[string]string{"a": "1", "b": "flaky 2", "c": "bad 3", "d": "big " + strings.Repeat("x", inlineSnapshot), "e": "5", "f": "6", "g": "7"}
				for name, content := range inputs {
					g.write("agents/writer/input/"+name, content)
				}
				wait, _ := g.startChild(fmt.Sprintf("%s:%d", step, nth))
				if !wait() && step != "waiting" { // three turns wait, once each
					t.Fatal("the runner did not come to this step")
				}
				wait, _ = g.startChild(step + ":1")
				wait()
				wait, _ = g.startChild("")
				if wait() {
					t.Fatal("killed without being asked to")
				}
				g.wholeSamples(inputs, 3)
				seen := map[string]int{}
				g.must(store.Open(g.path("agents/writer/turns")).Each(func(_ string, r *record.Record) error {
					if r.Sample == nil || r.Sample.Of != 3 {
						t.Fatalf("sample %+v", r.Sample)
					}
					seen[fmt.Sprint(r.Inputs[0].Path, " ", r.Sample.Index)]++
					return nil
				}))
				for name := range inputs {
					for i := range 3 {
						if n := seen[fmt.Sprintf("agents/writer/input/%s %d", name, i)]; n != 1 {
							t.Errorf("%s has %d records of sample %d", name, n, i)
						}
					}
				}
			})
		}
	}
}

// An agent that is paused, or a runner that is asked to finish, with answers
// that have not begun: those that have are published all the same.
func TestSamplesPaused(t *testing.T) {
	for _, how := range []string{"pause", "finish", "wrong settings"} {
		t.Run(how, func(t *testing.T) {
			g := newGraph(t, "agentgraph.yaml", "models: {m: {script: x, parallel: 3}}\ndefaults: {model: m}\n",
				"agents/a/agent.yaml", "samples: 4\nsampling: {temperature: 1, seed: 0}\nconcurrency: 2\n")
			g.dated("agents/a/input/x", "x", 1)
			g.dated("agents/a/input/y", "y", 2)
			hold, log := newGate(), newLog()
			l := g.run(g.config(hold.run, newReady(log)), log)
			l.until("three work", func() bool { return log.count(TurnStarted) == 3 })
			switch how {
			case "pause":
				g.must(l.r.pauseAgent("a", true, false))
			case "finish":
				l.r.Finish()
			default:
				g.write("agents/a/agent.yaml", "smaples: 4\n")
				l.until("a is stopped", func() bool { return log.count(AgentStopped) == 1 })
			}
			close(hold.open)
			l.until("their answers", func() bool { return log.count(TurnFinished) == 3 })
			switch how {
			case "pause":
				g.must(l.r.pauseAgent("a", false, false))
			case "finish":
				l.stop()
				if s, _ := g.once(echo); s != (Summary{Completed: 5}) || len(g.outputs("agents/a/output")) != 8 {
					t.Errorf("the next run: %+v", s)
				}
				return
			default:
				g.write("agents/a/agent.yaml", "samples: 2\nsampling: {temperature: 1}\n")
			}
			l.until("the rest", func() bool { return log.count(TurnFinished) == 8 })
			if n := len(g.outputs("agents/a/output")); n != 8 {
				t.Errorf("%d answers", n)
			}
		})
	}
}
