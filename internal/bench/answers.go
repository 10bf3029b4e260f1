// Package bench measures: how fast a model answers a workload, and how fast
// the runner turns files into turns. The commands of "agentgraph bench" print
// what it returns.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// Workload is a list of tasks, each a system message, a JSON Schema and
// inputs. Every input is answered once.
type Workload struct {
	Tasks []Task `json:"tasks"`
	// MaxTokens bounds each answer; 0 means 200.
	MaxTokens int `json:"max_tokens"`
}

// Task is one kind of question.
type Task struct {
	Name   string          `json:"name"`
	System string          `json:"system"`
	Inputs []string        `json:"inputs"`
	Schema json.RawMessage `json:"schema"`
}

// ReadWorkload reads a workload file.
func ReadWorkload(path string) (*Workload, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var w Workload
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("%s: not a workload: %w", path, err)
	}
	if w.MaxTokens == 0 {
		w.MaxTokens = 200
	}
	for i, t := range w.Tasks {
		if len(t.Inputs) == 0 || len(t.Schema) == 0 {
			return nil, fmt.Errorf("%s: task %d (%s) needs inputs and a schema", path, i+1, t.Name)
		}
	}
	if len(w.Tasks) == 0 {
		return nil, fmt.Errorf("%s: no tasks", path)
	}
	return &w, nil
}

// Answer is one measured answer. Times are seconds.
type Answer struct {
	Task         string  `json:"task"`
	Seconds      float64 `json:"seconds"`
	FirstToken   float64 `json:"first_token_seconds"`
	PromptTokens int64   `json:"prompt_tokens"`
	ReusedTokens int     `json:"reused_tokens"`
	Tokens       int64   `json:"tokens"`
	ForcedTokens int     `json:"forced_tokens"`
	Valid        bool    `json:"valid"`
	Truncated    bool    `json:"truncated,omitempty"`
	Error        string  `json:"error,omitempty"`
	Text         string  `json:"answer"`

	stats model.Stats
}

// Answers is the closing line. Prefill, Decode, Mask and Sample add up the
// time that each answer waited for that work; answers that share a batch wait
// together, so with Parallel above 1 the sums exceed Seconds.
type Answers struct {
	Engine           string  `json:"engine"`
	Model            string  `json:"model"`
	Parallel         int     `json:"parallel"`
	Answers          int     `json:"answers"`
	Valid            int     `json:"valid"`
	Truncated        int     `json:"truncated"`
	Failed           int     `json:"failed"`
	PromptTokens     int64   `json:"prompt_tokens"`
	ReusedTokens     int     `json:"reused_tokens"`
	Tokens           int64   `json:"tokens"`
	ForcedTokens     int     `json:"forced_tokens"`
	Seconds          float64 `json:"seconds"`
	Prefill          float64 `json:"prefill_seconds"`
	Decode           float64 `json:"decode_seconds"`
	Mask             float64 `json:"mask_seconds"`
	Sample           float64 `json:"sample_seconds"`
	AnswersPerSecond float64 `json:"answers_per_second"`
	TokensPerSecond  float64 `json:"tokens_per_second"`
}

// RunAnswers answers the whole workload with up to parallel requests at once,
// greedily, and calls each after every answer, one at a time. The messages
// are the workload's alone: no schema paragraph.
func RunAnswers(ctx context.Context, m model.Model, w *Workload, parallel int, each func(Answer)) (*Answers, error) {
	type job struct {
		task  Task
		input string
		c     *constraint.Constraint
	}
	var jobs []job
	for _, t := range w.Tasks {
		c, err := constraint.Compile(constraint.Spec{Kind: constraint.JSON, Source: t.Schema, File: t.Name}, constraint.Options{})
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", t.Name, err)
		}
		for _, in := range t.Inputs {
			jobs = append(jobs, job{t, in, c})
		}
	}
	parallel = max(1, min(parallel, len(jobs)))
	id := m.Identity()
	sum := &Answers{Engine: id.Engine, Model: id.Name, Parallel: parallel, Answers: len(jobs)}

	queue := make(chan job, len(jobs))
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	for range parallel {
		wg.Go(func() {
			for j := range queue {
				a := answer(ctx, m, j.task, j.input, j.c, w.MaxTokens)
				mu.Lock()
				sum.add(a)
				if each != nil {
					each(a)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	sum.Seconds = time.Since(began).Seconds()
	sum.AnswersPerSecond = float64(sum.Answers-sum.Failed) / sum.Seconds
	sum.TokensPerSecond = float64(sum.Tokens) / sum.Seconds
	return sum, ctx.Err()
}

func answer(ctx context.Context, m model.Model, t Task, input string, c *constraint.Constraint, maxTokens int) Answer {
	a := Answer{Task: t.Name}
	began := time.Now()
	resp, err := m.Generate(ctx, &model.Request{
		Messages: []model.Message{
			{Role: model.System, Content: t.System},
			{Role: model.User, Content: input},
		},
		Constraint: c,
		Sampling:   model.Sampling{MaxTokens: maxTokens},
	})
	a.Seconds = time.Since(began).Seconds()
	if err != nil {
		a.Error = err.Error()
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Partial == nil {
			return a
		}
		resp = failed.Partial
	}
	a.Text = resp.Text
	a.Truncated = resp.Finish == model.Length
	a.Valid = err == nil && !a.Truncated && c.Validate(ctx, resp.Text).Valid
	a.stats = resp.Stats
	a.FirstToken = resp.Stats.FirstToken.Seconds()
	a.ForcedTokens = resp.Stats.ForcedTokens
	a.ReusedTokens = resp.Stats.ReusedTokens
	if n := resp.Usage.InputTokens; n != nil {
		a.PromptTokens = *n
	}
	if n := resp.Usage.OutputTokens; n != nil {
		a.Tokens = *n
	}
	return a
}

func (s *Answers) add(a Answer) {
	s.PromptTokens += a.PromptTokens
	s.ReusedTokens += a.ReusedTokens
	s.Tokens += a.Tokens
	s.ForcedTokens += a.ForcedTokens
	s.Prefill += a.stats.Prefill.Seconds()
	s.Decode += a.stats.Decode.Seconds()
	s.Mask += a.stats.Mask.Seconds()
	s.Sample += a.stats.Sample.Seconds()
	switch {
	case a.Error != "":
		s.Failed++
	case a.Truncated:
		s.Truncated++
	case a.Valid:
		s.Valid++
	}
}
