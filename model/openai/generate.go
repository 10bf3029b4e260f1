package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// Generate asks the server for one reply.
func (m *Model) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	start := m.cfg.Clock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	release, e := m.slot(ctx, cancel)
	if e != nil {
		return nil, e
	}
	defer release()
	queued := m.cfg.Clock().Sub(start)
	var w *way
	if req.Constraint != nil {
		if w, e = m.admit(ctx, req.Constraint); e != nil {
			return nil, e
		}
	}
	resp, e := m.send(ctx, cancel, req, w)
	if e != nil {
		return nil, e
	}
	resp.Stats.Queued = queued
	return resp, nil
}

// slot waits until one of the requests that may be sent at once is free. Close
// ends what waits and what runs.
func (m *Model) slot(ctx context.Context, cancel context.CancelCauseFunc) (release func(), e *model.Error) {
	if ctx.Err() != nil {
		return nil, m.ended(ctx, model.NotSent, nil)
	}
	select {
	case <-m.closed:
		return nil, m.failed(model.Cancelled, model.NotSent, errClosed)
	case m.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, m.ended(ctx, model.NotSent, nil)
	}
	over := make(chan struct{})
	go func() {
		select {
		case <-m.closed:
			cancel(errClosed)
		case <-over:
		}
	}()
	return func() { close(over); <-m.slots }, nil
}

// send builds and sends a request, once more without a temperature where the
// server wants its own.
func (m *Model) send(ctx context.Context, cancel context.CancelCauseFunc, req *model.Request, w *way) (*model.Response, *model.Error) {
	for {
		c, e := m.build(req, w)
		if e != nil {
			return nil, e
		}
		c.held = w != nil
		resp, e := m.exchange(ctx, cancel, c)
		if e == nil || !m.wantsOwnTemperature(req, e) {
			return resp, e
		}
	}
}

// wantsOwnTemperature remembers that the server refuses temperature 0, the
// default of the settings; another one was asked for and is an error.
func (m *Model) wantsOwnTemperature(req *model.Request, e *model.Error) bool {
	var se *serverError
	if !errors.As(e.Err, &se) || se.Status != http.StatusBadRequest || se.Param != "temperature" || req.Sampling.Temperature != 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.noTemperature
	m.noTemperature = true
	return !was
}

func (m *Model) exchange(ctx context.Context, cancel context.CancelCauseFunc, c *call) (*model.Response, *model.Error) {
	r := &reply{m: m, c: c, start: m.cfg.Clock()}
	quiet := time.AfterFunc(m.cfg.Timeout, func() { cancel(errSilent) })
	defer quiet.Stop()
	resp, e := m.api.do(ctx, http.MethodPost, c.path, c.body)
	if e != nil {
		return nil, e
	}
	defer resp.Body.Close()
	err := r.read(&heard{resp.Body, quiet, m.cfg.Timeout})
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		var whole *model.Response
		if whole, err = r.whole(); err == nil {
			return whole, nil
		}
	}
	if ctx.Err() != nil {
		return nil, m.ended(ctx, model.MayHaveBeenSent, r.partial())
	}
	return nil, m.broken(err, r.partial())
}

// broken is a reply that began and is none.
func (m *Model) broken(err error, partial *model.Response) *model.Error {
	e := m.failed(model.Failed, model.ResponseReceived, err)
	e.Partial = partial
	var se *serverError
	switch {
	case errors.As(err, &se):
		if overflow.MatchString(se.Msg+" "+se.Code) && partial == nil {
			e.Kind, e.Delivery = model.ContextOverflow, model.NotSent
		} else {
			e.Retry = true
		}
	case errors.Is(err, errTooLong), errors.Is(err, errLine), errors.Is(err, errNoReply):
	default:
		// A connection that broke, or words that no server means.
		e.Retry = true
	}
	return e
}

// heard puts the end of patience off with every byte.
type heard struct {
	r     io.Reader
	quiet *time.Timer
	after time.Duration
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	if n > 0 {
		h.quiet.Reset(h.after)
	}
	return n, err
}

// Admit says whether the server can be asked to hold the constraint, and
// probes it where that is not known yet. An error of kind Capability is a
// *constraint.Refusal; any other means that the server could not be asked.
func (m *Model) Admit(ctx context.Context, con *constraint.Constraint) error {
	if _, e := m.admit(ctx, con); e != nil {
		return e
	}
	return nil
}

// admit chooses how the constraint travels: nil where it does not and
// validation alone may decide.
func (m *Model) admit(ctx context.Context, con *constraint.Constraint) (*way, *model.Error) {
	mask := con.Options().Enforce == constraint.EnforceMask
	w, refusal, mayHold := m.travels(con)
	if refusal != nil && mask {
		return nil, m.capabilityError(refusal)
	}
	if !mayHold {
		return nil, nil
	}
	kind := con.Spec().Kind
	held, detail, e := m.probes.holds(ctx, kind)
	switch {
	case e != nil:
		return nil, e
	case held:
		return w, nil
	case !mask:
		return nil, nil
	}
	engine := m.engine()
	engine.Kinds = nil
	_, err := con.Admit(engine)
	var r *constraint.Refusal
	if !errors.As(err, &r) {
		return nil, m.failed(model.Failed, model.NotSent, err)
	}
	if detail != "" {
		r.Reason += ": " + detail
	}
	return nil, m.capabilityError(r)
}

// travels is what can be said without the server: how the constraint travels,
// the first thing in it that the server does not hold, and whether it can be
// sent at all.
func (m *Model) travels(con *constraint.Constraint) (w *way, r *constraint.Refusal, mayHold bool) {
	return travels(m.dialect, m.cfg.LLGuidance, con.Spec())
}

func travels(d *dialect, llguidance bool, spec constraint.Spec) (*way, *constraint.Refusal, bool) {
	w := d.way(spec.Kind, llguidance)
	if w == nil {
		return nil, &constraint.Refusal{File: spec.File, Kind: spec.Kind, Construct: string(spec.Kind), Capability: true,
			Reason: d.title + " takes no constraint of kind " + string(spec.Kind),
			Hint:   "use a model that does, or allow validation alone with enforce: validate"}, false
	}
	var refusal *constraint.Refusal
	if spec.Kind == constraint.JSON {
		r, rejects := d.checkSchema(spec)
		if r != nil && rejects {
			return w, r, false
		}
		refusal = r
	}
	if r := w.put(new(object), spec); r != nil {
		return w, r, false
	}
	return w, refusal, true
}

// Check finds what a kind of server does not hold of a constraint, without a
// server. The error is a *constraint.Refusal.
func Check(server string, llguidance bool, con *constraint.Constraint) error {
	d := dialects[server]
	if d == nil || con.Options().Enforce != constraint.EnforceMask {
		return nil
	}
	if _, r, _ := travels(d, llguidance, con.Spec()); r != nil {
		return r
	}
	return nil
}

// Render asks a server that can tell for the prompt that it would make of the
// messages; others return model.ErrNotRendered. It refuses what Generate does.
func (m *Model) Render(ctx context.Context, req *model.Request) (model.Rendered, error) {
	if req.Constraint != nil && req.Constraint.Options().Enforce == constraint.EnforceMask {
		if _, r, _ := m.travels(req.Constraint); r != nil {
			return model.Rendered{}, m.capabilityError(r)
		}
	}
	if m.dialect.name != "llamacpp" {
		return model.Rendered{}, model.ErrNotRendered
	}
	var b object
	msgs, err := encode(messages(req.Messages))
	if err != nil {
		return model.Rendered{}, err
	}
	b.raw("messages", msgs)
	if len(req.Tools) > 0 {
		b.raw("tools", tools(req.Tools))
	}
	if req.Thinking != nil {
		templateThinking(&b, *req.Thinking)
	}
	var prompt struct {
		Prompt string `json:"prompt"`
	}
	if e := m.ask(ctx, "apply-template", b.bytes(), &prompt); e != nil {
		return model.Rendered{}, e
	}
	var t object
	t.set("content", prompt.Prompt)
	t.set("add_special", true)
	t.set("parse_special", true)
	var count struct {
		Tokens []json.RawMessage `json:"tokens"`
	}
	if e := m.ask(ctx, "tokenize", t.bytes(), &count); e != nil {
		return model.Rendered{}, e
	}
	m.learnContext(ctx)
	return model.Rendered{Prompt: prompt.Prompt, Tokens: len(count.Tokens), Context: m.Capabilities().Context}, nil
}

// askTimeout bounds what a server is asked beside completions.
const askTimeout = 30 * time.Second

// ask posts a document beside the API, or gets one where body is nil.
func (m *Model) ask(ctx context.Context, path string, body []byte, into any) *model.Error {
	patience := min(m.cfg.Timeout, askTimeout)
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	resp, e := m.root.do(ctx, method, path, body)
	if e != nil {
		if ctx.Err() != nil && outer.Err() == nil {
			e = m.failed(model.Unavailable, e.Delivery, fmt.Errorf("the server at %s did not answer %s within %v", m.id.Server, path, patience))
			e.Retry = true
		}
		return e
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return m.failed(model.Failed, model.ResponseReceived, errors.New("the server's answer to "+path+" cannot be read: "+m.clean(err.Error())))
	}
	return nil
}

// Reach asks the server for a sign of life. The error says what is in the way
// of a first call: nobody answers, the key is wrong, the model is still loading.
func (m *Model) Reach(ctx context.Context) error {
	path := "models"
	if m.dialect.native {
		path = "api/version"
	}
	resp, e := m.api.do(ctx, http.MethodGet, path, nil)
	if e == nil {
		return resp.Body.Close()
	}
	var se *serverError
	if errors.As(e.Err, &se) && se.Status != http.StatusUnauthorized && se.Status != http.StatusForbidden && se.Status != http.StatusServiceUnavailable {
		return nil // it answers, and lists its models elsewhere or not at all
	}
	return e
}
