package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/model/script"
	"agentgraph/runner"
)

// RunnerOptions say how much the runner is measured with.
type RunnerOptions struct {
	// Dir is an empty folder on the disk to measure; graphs are made in it.
	Dir string
	// Turns of each throughput figure; 0 means 2000.
	Turns int
	// Drops of each latency figure; 0 means 200.
	Drops int
	// Old lists how many answered inputs a folder already holds, one latency
	// figure each.
	Old []int
	// Agents and Answers are the size of the start-up figure: agents, and
	// earlier turns of each. 0 leaves it out.
	Agents, Answers int
	// Note is told what is done next.
	Note func(string)
}

// RunnerFigures are what bench runner prints. The model is a script that
// answers at once; every publish is synced.
type RunnerFigures struct {
	Latency    []Latency    `json:"latency"`
	Throughput []Throughput `json:"throughput"`
	StartUp    *StartUp     `json:"start_up,omitempty"`
}

// Latency is from the rename of an input into place to the start of its turn,
// and to its published answer, in milliseconds, one input at a time.
type Latency struct {
	Old       int     `json:"old_answers"`
	Drops     int     `json:"drops"`
	P50       float64 `json:"start_p50_ms"`
	P99       float64 `json:"start_p99_ms"`
	Max       float64 `json:"start_max_ms"`
	AnswerP50 float64 `json:"answer_p50_ms"`
	AnswerP99 float64 `json:"answer_p99_ms"`
}

// Throughput is durable turns of inputs that are all there at the start.
type Throughput struct {
	Agents      int     `json:"agents"`
	Concurrency int     `json:"concurrency"`
	Turns       int     `json:"turns"`
	Seconds     float64 `json:"seconds"`
	PerSecond   float64 `json:"turns_per_second"`
}

// StartUp is a graph with a past: the first start rebuilds its ledger from
// the records, the second is what a user waits for.
type StartUp struct {
	Agents         int     `json:"agents"`
	Answers        int     `json:"answers_each"`
	RebuildSeconds float64 `json:"rebuild_seconds"`
	ReadySeconds   float64 `json:"ready_seconds"`
	MemoryMB       float64 `json:"memory_mb"`
	SettledSeconds float64 `json:"settled_seconds"` // until nothing old is looked at any more
	IdleCPUPercent float64 `json:"idle_cpu_percent"`
}

// Runner measures the runner.
func Runner(ctx context.Context, opt RunnerOptions) (*RunnerFigures, error) {
	if opt.Turns == 0 {
		opt.Turns = 2000
	}
	if opt.Drops == 0 {
		opt.Drops = 200
	}
	if opt.Note == nil {
		opt.Note = func(string) {}
	}
	var f RunnerFigures
	for _, old := range opt.Old {
		opt.Note(fmt.Sprintf("latency with %d old answers", old))
		l, err := latency(ctx, filepath.Join(opt.Dir, fmt.Sprintf("latency-%d", old)), old, opt.Drops)
		if err != nil {
			return nil, err
		}
		f.Latency = append(f.Latency, *l)
	}
	for _, shape := range []struct{ agents, concurrency int }{{1, 1}, {1, 8}, {100, 1}} {
		opt.Note(fmt.Sprintf("%d turns of %d agents, concurrency %d", opt.Turns, shape.agents, shape.concurrency))
		t, err := throughput(ctx, filepath.Join(opt.Dir, fmt.Sprintf("throughput-%d-%d", shape.agents, shape.concurrency)), shape.agents, shape.concurrency, opt.Turns)
		if err != nil {
			return nil, err
		}
		f.Throughput = append(f.Throughput, *t)
	}
	if opt.Agents > 0 {
		opt.Note(fmt.Sprintf("start of %d agents with %d answers each", opt.Agents, opt.Answers))
		s, err := startUp(ctx, filepath.Join(opt.Dir, "start"), opt.Agents, opt.Answers)
		if err != nil {
			return nil, err
		}
		f.StartUp = s
	}
	return &f, nil
}

// instant is a model that answers at once, opened once.
type instant struct{ m model.Model }

func newInstant() (*instant, error) {
	m, err := script.New("instant", []byte("default: {text: A short answer.}\n"), script.Config{})
	return &instant{m}, err
}

func (i *instant) Model(context.Context, string) (model.Model, error) { return i.m, nil }

// makeGraph makes n agents, each with a prompt and the given settings.
func makeGraph(dir string, n int, settings string) ([]string, error) {
	var names []string
	past := time.Now().Add(-time.Hour)
	for i := range n {
		name := fmt.Sprintf("a%04d", i)
		names = append(names, name)
		agent := filepath.Join(dir, "agents", name)
		for _, d := range []string{"system", "input", "output"} {
			if err := os.MkdirAll(filepath.Join(agent, d), 0o777); err != nil {
				return nil, err
			}
		}
		if err := os.WriteFile(filepath.Join(agent, "system", "role.md"), []byte("You answer.\n"), 0o666); err != nil {
			return nil, err
		}
		// A prompt that was changed just now is waited for until it is quiet,
		// which is not what is measured.
		for _, name := range []string{"role.md", "."} {
			if err := os.Chtimes(filepath.Join(agent, "system", name), past, past); err != nil {
				return nil, err
			}
		}
		if settings == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(agent, "agent.yaml"), []byte(settings), 0o666); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// running is a runner that works in the background.
type running struct {
	r    *runner.Runner
	done chan error

	mu       sync.Mutex
	started  map[string]time.Time // input → start of its turn
	finished chan string          // inputs, as their answers are published
	ready    chan struct{}
	wrong    []string
}

func start(ctx context.Context, dir string) (*running, error) {
	m, err := newInstant()
	if err != nil {
		return nil, err
	}
	g := &running{
		done: make(chan error, 1), started: map[string]time.Time{},
		finished: make(chan string, 1<<16), ready: make(chan struct{}, 1),
	}
	g.r, err = runner.New(runner.Config{
		Root: dir, Models: m, Load: agents.LoadOptions{Model: "script:instant"},
		Events: g.event,
	})
	if err != nil {
		return nil, err
	}
	go func() { g.done <- g.r.Run(ctx) }()
	return g, nil
}

func (g *running) event(e runner.Event) {
	switch e.Kind {
	case runner.Ready:
		g.ready <- struct{}{}
	case runner.TurnStarted:
		g.mu.Lock()
		g.started[e.Inputs[0]] = e.Time
		g.mu.Unlock()
	case runner.TurnFinished:
		g.finished <- e.Inputs[0]
	case runner.TurnFailed, runner.TurnRefused, runner.Problem, runner.AgentStopped:
		text := e.Message
		if e.Error != nil {
			text = e.Error.Message
		}
		g.mu.Lock()
		g.wrong = append(g.wrong, string(e.Kind)+": "+text)
		g.mu.Unlock()
	}
}

// stop ends the runner and says whether all went well.
func (g *running) stop() error {
	g.r.Finish()
	err := <-g.done
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.wrong) > 0 {
		err = errors.Join(err, fmt.Errorf("%d events were not answers, the first: %s", len(g.wrong), g.wrong[0]))
	}
	return err
}

func (g *running) waitReady(ctx context.Context) error {
	select {
	case <-g.ready:
		return nil
	case err := <-g.done:
		g.done <- err
		return errors.Join(errors.New("the runner ended early"), err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *running) waitFinished(ctx context.Context) (string, error) {
	select {
	case in := <-g.finished:
		return in, nil
	case err := <-g.done:
		g.done <- err
		return "", errors.Join(errors.New("the runner ended early"), err)
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(time.Minute):
		return "", errors.New("an input got no answer within a minute")
	}
}

func latency(ctx context.Context, dir string, old, drops int) (*Latency, error) {
	if _, err := makeGraph(dir, 1, ""); err != nil {
		return nil, err
	}
	if err := makePast(dir, "a0000", old); err != nil {
		return nil, err
	}
	g, err := start(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := g.waitReady(ctx); err != nil {
		return nil, errors.Join(err, g.stop())
	}
	var begin, answer []float64
	aside := filepath.Join(dir, "aside")
	for i := range drops {
		name := fmt.Sprintf("drop-%06d.txt", i)
		if err := os.WriteFile(aside, fmt.Appendf(nil, "Question %d?", i), 0o666); err != nil {
			return nil, err
		}
		at := time.Now()
		if err := os.Rename(aside, filepath.Join(dir, "agents", "a0000", "input", name)); err != nil {
			return nil, err
		}
		in, err := g.waitFinished(ctx)
		if err != nil {
			return nil, errors.Join(err, g.stop())
		}
		answer = append(answer, ms(time.Since(at)))
		g.mu.Lock()
		begin = append(begin, ms(g.started[in].Sub(at)))
		g.mu.Unlock()
	}
	if err := g.stop(); err != nil {
		return nil, err
	}
	slices.Sort(begin)
	slices.Sort(answer)
	return &Latency{
		Old: old, Drops: drops,
		P50: quantile(begin, 0.5), P99: quantile(begin, 0.99), Max: begin[len(begin)-1],
		AnswerP50: quantile(answer, 0.5), AnswerP99: quantile(answer, 0.99),
	}, nil
}

// quantile of sorted values.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return v[min(len(v)-1, int(q*float64(len(v))))]
}

func throughput(ctx context.Context, dir string, n, concurrency, turns int) (*Throughput, error) {
	names, err := makeGraph(dir, n, fmt.Sprintf("concurrency: %d\n", concurrency))
	if err != nil {
		return nil, err
	}
	for i := range turns {
		path := filepath.Join(dir, "agents", names[i%n], "input", fmt.Sprintf("%06d.txt", i))
		if err := os.WriteFile(path, fmt.Appendf(nil, "Question %d?", i), 0o666); err != nil {
			return nil, err
		}
	}
	m, err := newInstant()
	if err != nil {
		return nil, err
	}
	r, err := runner.New(runner.Config{Root: dir, Models: m, Load: agents.LoadOptions{Model: "script:instant"}})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	sum, err := r.Once(ctx)
	took := time.Since(began).Seconds()
	if err != nil {
		return nil, err
	}
	if sum.Completed != turns {
		return nil, fmt.Errorf("%d of %d turns were completed: %+v", sum.Completed, turns, sum)
	}
	return &Throughput{Agents: n, Concurrency: concurrency, Turns: turns, Seconds: took, PerSecond: float64(turns) / took}, nil
}
