package distill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
)

// ReplayOptions say what is asked again, and of whom.
type ReplayOptions struct {
	Agents []string
	// Paths are answers, relative to the graph; empty: all.
	Paths []string
	// Limit bounds the answers; 0: all.
	Limit int
	// Model is asked instead of the one that is recorded. It is called once
	// for each answer and keeps what it opened.
	Model func(ctx context.Context, agent string, recorded model.Identity) (model.Model, error)
	// Limits are the bounds of an agent's schemas and answers; nil: the
	// standard ones.
	Limits func(agent string) constraint.Limits
	// Parallel is how many are asked at once, besides those that were made
	// alone; 0: one.
	Parallel int
}

// Replayed is one answer that was asked for again.
type Replayed struct {
	Agent  string `json:"agent"`
	Path   string `json:"path"`
	TurnID string `json:"turn_id"`
	// Determinism is how the recorded answer was made: fast or solo.
	Determinism string `json:"determinism"`
	// SameModel says that the engine and the weights are the recorded ones.
	SameModel bool `json:"same_model"`
	// Promised says that the answer must be the same: the same model, alone,
	// and no tools between.
	Promised bool   `json:"promised"`
	Model    string `json:"model"`
	// SamePrompt says that the model read the recorded text; null: not known.
	SamePrompt *bool  `json:"same_prompt"`
	Identical  bool   `json:"identical"`
	Recorded   string `json:"recorded"`
	Answer     string `json:"answer"`
	// Valid says whether the new answer keeps its promise; null: free text, or
	// there is no answer.
	Valid *bool `json:"valid"`
	// Error says why there is no answer.
	Error string `json:"error,omitempty"`
	// Fields compares two JSON answers member by member.
	Fields map[string]Agreement `json:"fields,omitempty"`
}

// Agreement counts comparisons and those that came out equal.
type Agreement struct {
	Compared int `json:"compared"`
	Equal    int `json:"equal"`
}

func (a *Agreement) add(equal bool) {
	a.Compared++
	if equal {
		a.Equal++
	}
}

// ReplayReport sums up a replay.
type ReplayReport struct {
	Answers int `json:"answers"`
	Failed  int `json:"failed"` // without a new answer
	Invalid int `json:"invalid"`
	// Promised are the answers that must be the same; Others the rest.
	Promised Agreement `json:"promised"`
	Others   Agreement `json:"others"`
	// Fields has each member of JSON answers; those of lists as name[].
	Fields   map[string]Agreement `json:"fields"`
	Skipped  map[string]int       `json:"skipped"`
	Problems int                  `json:"problems"`
}

// Kept reports that everything that was promised came true.
func (r *ReplayReport) Kept() bool {
	return r.Failed == 0 && r.Promised.Equal == r.Promised.Compared && r.Problems == 0
}

// maxFields bounds the members that a report names.
const maxFields = 256

// Replay asks for recorded answers again: the same messages, constraint, seed
// and sampling. Of a turn that called tools only its last request is asked,
// with the results that are recorded; no tool runs. Nothing is written. found
// is told of each answer and each problem, in order.
func Replay(ctx context.Context, root string, opt ReplayOptions, found func(*Replayed, *Problem) error) (*ReplayReport, error) {
	rep := &ReplayReport{Fields: map[string]Agreement{}, Skipped: map[string]int{}}
	p := &replayer{opt: opt}
	for r, err := range mapWith(ctx, max(opt.Parallel, 1), some(Answers(ctx, root, Options{Agents: opt.Agents}), opt), p.replay) {
		var problem *Problem
		switch {
		case errors.As(err, &problem):
			if problem.Kind == Stray {
				continue
			}
		case err != nil:
			return nil, err
		default:
			problem = r.problem
		}
		if problem != nil {
			rep.Problems++
			if err := found(nil, problem); err != nil {
				return nil, err
			}
			continue
		}
		if r.skip != "" {
			rep.Skipped[r.skip]++
			continue
		}
		rep.add(&r.Replayed)
		if err := found(&r.Replayed, nil); err != nil {
			return nil, err
		}
	}
	return rep, ctx.Err()
}

// some are the answers that a replay is about.
func some(answers iter.Seq2[*Answer, error], opt ReplayOptions) iter.Seq2[*Answer, error] {
	return func(yield func(*Answer, error) bool) {
		n := 0
		for a, err := range answers {
			if a != nil {
				if len(opt.Paths) > 0 && !slices.Contains(opt.Paths, a.Path) {
					continue
				}
				n++
			}
			if !yield(a, err) || opt.Limit > 0 && n == opt.Limit {
				return
			}
		}
	}
}

func (r *ReplayReport) add(x *Replayed) {
	r.Answers++
	if x.Error != "" {
		r.Failed++
	}
	if x.Valid != nil && !*x.Valid {
		r.Invalid++
	}
	if x.Promised {
		r.Promised.add(x.Identical)
	} else {
		r.Others.add(x.Identical)
	}
	for name, a := range x.Fields {
		sum, ok := r.Fields[name]
		if !ok && len(r.Fields) == maxFields {
			continue
		}
		r.Fields[name] = Agreement{sum.Compared + a.Compared, sum.Equal + a.Equal}
	}
}

// replayer asks models. Answers that were made alone are asked for alone.
type replayer struct {
	opt   ReplayOptions
	alone sync.RWMutex
}

type replayed struct {
	Replayed
	skip    string
	problem *Problem
}

func (p *replayer) replay(ctx context.Context, a *Answer) *replayed {
	out := &replayed{Replayed: Replayed{Agent: a.Agent, Path: a.Path, TurnID: a.TurnID}}
	if a.TurnID == "" {
		out.skip = SkipNoRecord
		return out
	}
	rec, err := a.Record()
	if err != nil {
		out.problem = asProblem(a, err)
		return out
	}
	text, ok := rec.Answer()
	if !ok || rec.Request == nil {
		out.skip = SkipChanged
		return out
	}
	out.Recorded, out.Determinism = text, rec.Request.Determinism
	if err := p.ask(ctx, rec, &out.Replayed); err != nil {
		out.Error = err.Error()
		return out
	}
	out.Identical = out.Answer == out.Recorded
	out.Fields = compareFields(out.Recorded, out.Answer)
	return out
}

// ask asks for one answer again.
func (p *replayer) ask(ctx context.Context, rec *record.Record, out *Replayed) error {
	q := rec.Request
	m, err := p.opt.Model(ctx, out.Agent, q.Model)
	if err != nil {
		return err
	}
	id := m.Identity()
	out.Model = id.String()
	out.SameModel = sameModel(id, q.Model)
	solo := q.Determinism == "solo"
	out.Promised = out.SameModel && solo && len(rec.ToolCalls) == 0
	req := &model.Request{Messages: LastMessages(rec), Sampling: q.Sampling, Solo: solo, Thinking: q.Thinking}
	con, err := p.constraint(ctx, q.Constraint, out.Agent, m)
	if err != nil {
		return err
	}
	req.Constraint = con
	if caps := m.Capabilities(); len(q.Tools) > 0 {
		if !caps.Tools {
			return errors.New("the model is told of tools, and this one declares none")
		}
		req.Tools, req.NoCalls, req.CallFormat = q.Tools, true, caps.CallFormat
		if con == nil && caps.CallFormat != "" && caps.Masks {
			if req.Constraint, err = constraint.WithCalls(nil, caps.CallFormat, nil); err != nil {
				return err
			}
		}
	}
	resp, err := p.generate(ctx, m, req)
	if err != nil {
		return err
	}
	if q.Prompt != nil && resp.Rendered.Prompt != "" && len(rec.ToolRounds) == 0 && (rec.Repair == nil || rec.Repair.Rejected == nil) {
		same := *q.Prompt == resp.Rendered.Prompt
		out.SamePrompt = &same
	}
	out.Answer = strings.ToValidUTF8(resp.Text, "\uFFFD")
	switch {
	case resp.Finish == model.Length:
		return errors.New("the new answer was cut off by max_tokens or the context")
	case resp.Finish == model.Refusal:
		return errors.New("the model declined to answer")
	case len(resp.ToolCalls) > 0:
		return errors.New("the model calls a tool instead of answering")
	}
	if con != nil {
		valid := con.Validate(ctx, out.Answer).Valid
		out.Valid = &valid
	}
	return nil
}

func (p *replayer) generate(ctx context.Context, m model.Model, req *model.Request) (*model.Response, error) {
	if req.Solo {
		p.alone.Lock()
		defer p.alone.Unlock()
	} else {
		p.alone.RLock()
		defer p.alone.RUnlock()
	}
	return m.Generate(ctx, req)
}

// constraint is the recorded promise, as this model can hold it.
func (p *replayer) constraint(ctx context.Context, c *record.Constraint, agent string, m model.Model) (*constraint.Constraint, error) {
	if c == nil {
		return nil, nil
	}
	opt := constraint.Options{Enforce: c.Enforce, Formats: c.Formats, Limits: constraint.Standard}
	if p.opt.Limits != nil {
		opt.Limits = p.opt.Limits(agent)
	}
	con, err := constraint.Compile(constraint.Spec{Kind: c.Kind, Source: []byte(c.Source), File: c.File}, opt)
	if err != nil {
		return nil, err
	}
	if a, ok := m.(model.Admitter); ok {
		if err := a.Admit(ctx, con); err != nil {
			return nil, err
		}
		return con, nil
	}
	_, err = con.Admit(m.Capabilities().Engine)
	return con, err
}

func sameModel(a, b model.Identity) bool {
	if a.Engine != b.Engine {
		return false
	}
	if a.WeightsSHA256 != "" || b.WeightsSHA256 != "" {
		return a.WeightsSHA256 == b.WeightsSHA256
	}
	return a.Name == b.Name && a.Server == b.Server
}

// compareFields compares two JSON answers member by member; nil where one of
// them is none.
func compareFields(a, b string) map[string]Agreement {
	x, ok := decodeJSON(a)
	y, also := decodeJSON(b)
	if !ok || !also {
		return nil
	}
	left, right := map[string]string{}, map[string]string{}
	flatten(left, "", x)
	flatten(right, "", y)
	fields := map[string]Agreement{}
	note := func(at string, equal bool) {
		name := listPlace.Replace(at)
		f, ok := fields[name]
		if !ok && len(fields) == maxFields {
			return
		}
		f.add(equal)
		fields[name] = f
	}
	for at, v := range left {
		w, ok := right[at]
		note(unplaced(at), ok && v == w)
	}
	for at := range right {
		if _, ok := left[at]; !ok {
			note(unplaced(at), false)
		}
	}
	return fields
}

// Places in lists stand between these while two answers are compared.
const placeOpen, placeClose = "\x00", "\x01"

var listPlace = strings.NewReplacer(placeOpen, "[", placeClose, "]")

// unplaced leaves out which place of a list it is.
func unplaced(at string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(at, placeOpen)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		b.WriteString(placeOpen + placeClose)
		_, at, _ = strings.Cut(rest, placeClose)
	}
}

func flatten(into map[string]string, at string, v any) {
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 {
			into[at] = "{}"
		}
		for name, child := range x {
			if at != "" {
				name = at + "." + name
			}
			flatten(into, name, child)
		}
	case []any:
		if len(x) == 0 {
			into[at] = "[]"
		}
		for i, child := range x {
			flatten(into, at+placeOpen+strconv.Itoa(i)+placeClose, child)
		}
	case json.Number:
		into[at] = "n" + canonical(x)
	default:
		into[at] = fmt.Sprintf("%T %v", x, x)
	}
}

// canonical makes 1 and 1.0 equal, as far as a float64 tells numbers apart.
func canonical(n json.Number) string {
	if f, err := n.Float64(); err == nil && len(n) <= 15 {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return n.String()
}
