// Package bench measures: how fast a model answers a workload. It knows only
// model.Model, so that the same figures come from any engine.
package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// Workload is a file of shaped questions; bench/answer-workload.json is one.
type Workload struct {
	About string `json:"about"`
	Tasks []Task `json:"tasks"`
}

// Task is one system message with a JSON Schema and the inputs to answer.
type Task struct {
	Name   string          `json:"name"`
	System string          `json:"system"`
	Inputs []string        `json:"inputs"`
	Schema json.RawMessage `json:"schema"` // nil: free text
}

// ReadWorkload reads and checks a workload file.
func ReadWorkload(path string) (*Workload, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the workload: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var w Workload
	if err := dec.Decode(&w); err != nil {
		return nil, fmt.Errorf("the workload %s: %w; it is an object with \"tasks\", each with \"name\", \"system\", \"inputs\" and \"schema\"", path, err)
	}
	answers := 0
	for _, t := range w.Tasks {
		answers += len(t.Inputs)
	}
	if answers == 0 {
		return nil, fmt.Errorf("the workload %s has no inputs", path)
	}
	return &w, nil
}

// Options of a run.
type Options struct {
	// Parallel answers are asked for at once; 0 and 1: one after the other.
	Parallel int
	// MaxTokens of each answer; 0 means 200.
	MaxTokens int
	// Free asks without the schemas, for comparison.
	Free bool
	// Solo asks for each answer alone and without reuse.
	Solo bool
	// Each is called with every answer, in the order of the workload, as far
	// as they have come. Nil is allowed.
	Each func(Answer)
}

// Answer is one answer and where its time went.
type Answer struct {
	Task         string  `json:"task"`
	Seconds      float64 `json:"seconds"`
	FirstTokenMS float64 `json:"first_token_ms"`
	Prompt       int     `json:"prompt_tokens"`
	Tokens       int     `json:"tokens"`
	Forced       int     `json:"forced_tokens"`
	Drafted      int     `json:"drafted_tokens"`
	Reused       int     `json:"reused_tokens"`
	// Valid is nil for free text.
	Valid  *bool              `json:"valid"`
	Finish model.FinishReason `json:"finish_reason"`
	Text   string             `json:"answer"`
}

// Figures are the totals of a run. The seconds of the stages are summed over
// the answers: in a parallel run answers share steps, so they may add up to
// more than Seconds.
type Figures struct {
	Engine           string  `json:"engine"`
	Model            string  `json:"model"`
	Parallel         int     `json:"parallel"`
	Answers          int     `json:"answers"`
	Valid            int     `json:"valid"`
	Truncated        int     `json:"truncated"`
	Prompt           int     `json:"prompt_tokens"`
	Tokens           int     `json:"tokens"`
	Forced           int     `json:"forced_tokens"`
	Drafted          int     `json:"drafted_tokens"`
	Reused           int     `json:"reused_tokens"`
	Seconds          float64 `json:"seconds"`
	AnswersPerSecond float64 `json:"answers_per_second"`
	TokensPerSecond  float64 `json:"tokens_per_second"`
	CompileSeconds   float64 `json:"compile_seconds"`
	PrefillSeconds   float64 `json:"prefill_seconds"`
	DecodeSeconds    float64 `json:"decode_seconds"`
	MaskSeconds      float64 `json:"mask_seconds"`
	SampleSeconds    float64 `json:"sample_seconds"`
	ValidateSeconds  float64 `json:"validate_seconds"`
	FirstTokenMS     float64 `json:"first_token_ms"` // average
}

// Answers asks m everything in w once, greedily, with exactly the workload's
// system and user messages. Validation is measured by itself and is not part
// of Seconds, as other engines are measured without one.
func Answers(ctx context.Context, m model.Model, w *Workload, opt Options) (*Figures, error) {
	if opt.MaxTokens == 0 {
		opt.MaxTokens = 200
	}
	opt.Parallel = max(opt.Parallel, 1)
	var jobs []*job
	for i := range w.Tasks {
		for _, input := range w.Tasks[i].Inputs {
			jobs = append(jobs, &job{task: &w.Tasks[i], input: input})
		}
	}
	id := m.Identity()
	f := &Figures{Engine: "agentgraph (" + id.Engine + ")", Model: id.Name, Parallel: opt.Parallel}
	if opt.Parallel == 1 {
		for _, j := range jobs {
			j.run(ctx, m, opt)
			if j.err != nil {
				return nil, j.err
			}
			j.check(ctx)
			f.Seconds += j.out.Seconds
			if opt.Each != nil {
				opt.Each(j.out)
			}
		}
	} else {
		began := time.Now()
		together(ctx, m, jobs, opt)
		f.Seconds = time.Since(began).Seconds()
		for _, j := range jobs {
			if j.err != nil {
				return nil, j.err
			}
			j.check(ctx)
			if opt.Each != nil {
				opt.Each(j.out)
			}
		}
	}
	for _, j := range jobs {
		f.add(j)
	}
	f.AnswersPerSecond = float64(f.Answers) / f.Seconds
	f.TokensPerSecond = float64(f.Tokens) / f.Seconds
	f.FirstTokenMS /= float64(f.Answers)
	return f, nil
}

// together keeps opt.Parallel answers going until all are there or one fails.
func together(ctx context.Context, m model.Model, jobs []*job, opt Options) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan *job, len(jobs))
	for _, j := range jobs {
		next <- j
	}
	close(next)
	var wg sync.WaitGroup
	for range opt.Parallel {
		wg.Go(func() {
			for j := range next {
				if j.run(ctx, m, opt); j.err != nil {
					cancel()
				}
			}
		})
	}
	wg.Wait()
}

// job is one answer to ask for.
type job struct {
	task       *Task
	input      string
	constraint *constraint.Constraint
	compile    time.Duration
	resp       *model.Response
	validate   time.Duration
	out        Answer
	err        error
}

func (j *job) run(ctx context.Context, m model.Model, opt Options) {
	began := time.Now()
	req := &model.Request{Sampling: model.Sampling{MaxTokens: opt.MaxTokens}, Solo: opt.Solo}
	if j.task.System != "" {
		req.Messages = append(req.Messages, model.Message{Role: model.System, Content: j.task.System})
	}
	req.Messages = append(req.Messages, model.Message{Role: model.User, Content: j.input})
	if len(j.task.Schema) > 0 && !opt.Free {
		j.constraint, j.err = constraint.Compile(constraint.Spec{Kind: constraint.JSON, Source: j.task.Schema, File: j.task.Name}, constraint.Options{})
		if j.err != nil {
			return
		}
		j.compile = time.Since(began)
		req.Constraint = j.constraint
	}
	if j.resp, j.err = m.Generate(ctx, req); j.err != nil {
		j.err = fmt.Errorf("task %s: %w", j.task.Name, j.err)
		return
	}
	r := j.resp
	j.out = Answer{
		Task: j.task.Name, Seconds: time.Since(began).Seconds(), FirstTokenMS: ms(r.Stats.FirstToken),
		Prompt: count(r.Usage.InputTokens), Tokens: count(r.Usage.OutputTokens),
		Forced: r.Stats.ForcedTokens, Drafted: r.Stats.DraftedTokens, Reused: r.Stats.ReusedTokens, Finish: r.Finish, Text: r.Text,
	}
}

// check validates the answer.
func (j *job) check(ctx context.Context) {
	if j.constraint == nil {
		return
	}
	began := time.Now()
	valid := j.constraint.Validate(ctx, j.resp.Text).Valid && j.resp.Finish != model.Length
	j.validate = time.Since(began)
	j.out.Valid = &valid
}

func (f *Figures) add(j *job) {
	s := j.resp.Stats
	f.Answers++
	if j.out.Valid == nil || *j.out.Valid {
		f.Valid++
	}
	if j.out.Finish == model.Length {
		f.Truncated++
	}
	f.Prompt += j.out.Prompt
	f.Tokens += j.out.Tokens
	f.Forced += j.out.Forced
	f.Drafted += j.out.Drafted
	f.Reused += j.out.Reused
	f.CompileSeconds += j.compile.Seconds()
	f.PrefillSeconds += s.Prefill.Seconds()
	f.DecodeSeconds += s.Decode.Seconds()
	f.MaskSeconds += s.Mask.Seconds()
	f.SampleSeconds += s.Sample.Seconds()
	f.ValidateSeconds += j.validate.Seconds()
	f.FirstTokenMS += j.out.FirstTokenMS
}

func count(n *int64) int {
	if n == nil {
		return 0
	}
	return int(*n)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
