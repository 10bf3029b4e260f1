package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/runner"
)

// EngineOptions say what an engine under the runner is measured with.
type EngineOptions struct {
	Dir     string // an empty folder
	Pending int    // inputs that wait at the start
	Agents  int    // that they are spread over
	// Concurrency of each agent, and the most tokens of an answer.
	Concurrency, MaxTokens int
}

// EngineFigures are what bench engine prints.
type EngineFigures struct {
	Turns     int     `json:"turns"`
	Seconds   float64 `json:"seconds"` // from the first call of the model to the end of the last
	PerSecond float64 `json:"turns_per_second"`
	// Busy is the part of Seconds in which the model had at least one call to
	// work on, Full the part in which it had as many as it takes at once.
	Busy float64 `json:"busy"`
	Full float64 `json:"full"`
	// Least and Most are the turns that the agent furthest behind and the one
	// furthest ahead had done when half of all were.
	Least int `json:"least_turns_at_half"`
	Most  int `json:"most_turns_at_half"`
	// WaitSeconds is the longest that a call waited inside the engine.
	WaitSeconds float64 `json:"longest_wait_seconds"`
}

// Engine works a graph whose inputs are all there with the model m.
func Engine(ctx context.Context, m model.Model, opt EngineOptions) (*EngineFigures, error) {
	names, err := makeGraph(opt.Dir, opt.Agents, fmt.Sprintf("concurrency: %d\nsampling: {max_tokens: %d}\n", opt.Concurrency, opt.MaxTokens))
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		// A shape that any model fills within the tokens, so that every turn ends well.
		schema := []byte("[a-z]{2,8}")
		if err := os.WriteFile(filepath.Join(opt.Dir, "agents", name, "system", ".schema-word.txt@regex"), schema, 0o666); err != nil {
			return nil, err
		}
		for k := i; k < opt.Pending; k += len(names) {
			path := filepath.Join(opt.Dir, "agents", name, "input", fmt.Sprintf("%06d.txt", k))
			if err := os.WriteFile(path, fmt.Appendf(nil, "Name something of number %d.", k), 0o666); err != nil {
				return nil, err
			}
		}
	}
	w := &watched{Model: m, full: m.Capabilities().Parallel}
	done := map[string]int{}
	f := &EngineFigures{Turns: opt.Pending}
	var mu sync.Mutex
	all := 0
	r, err := runner.New(runner.Config{
		Root: opt.Dir, Models: always{w}, Load: agents.LoadOptions{Model: "script:instant"},
		Events: func(e runner.Event) {
			if e.Kind != runner.TurnFinished {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			done[e.Agent]++
			if all++; all == opt.Pending/2 {
				var counts []int
				for _, name := range names {
					counts = append(counts, done[name])
				}
				f.Least, f.Most = slices.Min(counts), slices.Max(counts)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	sum, err := r.Once(ctx)
	if err != nil {
		return nil, err
	}
	if sum.Completed != opt.Pending {
		return nil, fmt.Errorf("%d of %d turns were completed: %+v", sum.Completed, opt.Pending, sum)
	}
	took := w.last.Sub(w.first)
	f.Seconds = took.Seconds()
	f.PerSecond = float64(opt.Pending) / f.Seconds
	f.Busy, f.Full = w.busy.Seconds()/f.Seconds, w.whole.Seconds()/f.Seconds
	f.WaitSeconds = w.wait.Seconds()
	return f, nil
}

// watched is a model that notes when it has work.
type watched struct {
	model.Model
	full int

	mu          sync.Mutex
	calls       int
	since       time.Time // calls is what it is
	first, last time.Time
	busy, whole time.Duration
	wait        time.Duration
}

// always is the source of one model.
type always struct{ m model.Model }

func (a always) Model(context.Context, string) (model.Model, error) { return a.m, nil }

func (w *watched) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	w.change(1)
	defer w.change(-1)
	resp, err := w.Model.Generate(ctx, req)
	if resp != nil {
		w.mu.Lock()
		w.wait = max(w.wait, resp.Stats.Queued)
		w.mu.Unlock()
	}
	return resp, err
}

func (w *watched) change(by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.first.IsZero() {
		w.first = now
	}
	if w.calls > 0 {
		w.busy += now.Sub(w.since)
	}
	if w.calls >= w.full {
		w.whole += now.Sub(w.since)
	}
	w.calls += by
	w.since, w.last = now, now
}
