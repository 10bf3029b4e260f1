package openai

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// Probe is what a canary has shown of one kind.
type Probe struct {
	Held bool `json:"held"`
	// Detail says why not; it is the server's error, or how it answered.
	Detail string `json:"detail,omitempty"`
	// Seen is when the server was asked.
	Seen time.Time `json:"seen"`
	// Version is what the server said its version is, if it did.
	Version string `json:"version,omitempty"`
}

// State is what is known of one kind on one server.
type State struct {
	Kind constraint.Kind
	// Travels is how the kind travels, empty where it does not.
	Travels string
	// Declared is what the settings say, nil where they say nothing.
	Declared *bool
	Probe    *Probe // nil: not probed
}

// probeLife is how long a probe is believed: a server keeps its version when
// only its options change.
const probeLife = 7 * 24 * time.Hour

// probeTokens bounds the answer to a canary. It leaves room for a model that
// reasons first.
const probeTokens = 512

// canaries are constraints that no unconstrained model keeps by itself: it is
// asked for a greeting and told nothing of them.
var canaries = map[constraint.Kind]string{
	constraint.JSON:  `{"const":"zq7"}`,
	constraint.Regex: `zq7-[0-9]{3}`,
	constraint.Lark:  "start: \"zq7-\" NUMBER\nNUMBER: /[0-9]{3}/\n",
	constraint.LLG:   `{"grammars":[{"lark_grammar":"start: \"zq7-\" /[0-9]{3}/"}]}`,
}

const canaryQuestion = "Greet me in one short sentence."

// probes knows what has been shown.
type probes struct {
	m     *Model
	cache *probeCache

	mu      sync.Mutex
	known   map[constraint.Kind]Probe
	version string
	checked bool // the version is the server's of now
	busy    map[constraint.Kind]chan struct{}
}

func newProbes(m *Model) *probes {
	p := &probes{m: m, known: map[constraint.Kind]Probe{}, busy: map[constraint.Kind]chan struct{}{}}
	p.cache = newProbeCache(m)
	p.known = p.cache.load(m.cfg.Clock())
	return p
}

// held is what the settings say or a probe has shown, as far as known without
// a word to the server.
func (p *probes) held(kind constraint.Kind) (held, known bool) {
	if d := p.m.cfg.Declared; d != nil {
		return slices.Contains(d, kind), true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	got, ok := p.known[kind]
	return got.Held, ok
}

// forgetVersion makes the next use ask again: a server that was away may come
// back as another.
func (p *probes) forgetVersion() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checked = false
}

// holds decides about a kind, with a canary where nothing is known.
func (p *probes) holds(ctx context.Context, kind constraint.Kind) (held bool, detail string, e *model.Error) {
	if d := p.m.cfg.Declared; d != nil {
		if slices.Contains(d, kind) {
			return true, "", nil
		}
		return false, "constraints: does not list it", nil
	}
	got, e := p.get(ctx, kind, false)
	return got.Held, got.Detail, e
}

// get is the probe of a kind, made now where there is none or force is set;
// one goroutine asks, the others wait.
func (p *probes) get(ctx context.Context, kind constraint.Kind, force bool) (Probe, *model.Error) {
	for {
		if e := p.checkVersion(ctx); e != nil {
			return Probe{}, e
		}
		p.mu.Lock()
		got, ok := p.known[kind]
		if ok && !force && p.m.cfg.Clock().Sub(got.Seen) < probeLife {
			p.mu.Unlock()
			return got, nil
		}
		wait, running := p.busy[kind]
		if !running {
			done := make(chan struct{})
			p.busy[kind] = done
			p.mu.Unlock()
			got, e := p.ask(ctx, kind)
			p.mu.Lock()
			if e == nil {
				p.known[kind] = got
				p.cache.save(p.version, p.known)
			}
			delete(p.busy, kind)
			close(done)
			p.mu.Unlock()
			return got, e
		}
		p.mu.Unlock()
		select {
		case <-wait:
			force = false
		case <-ctx.Done():
			return Probe{}, p.m.ended(ctx, model.NotSent, nil)
		}
	}
}

// checkVersion drops what an earlier version of the server has shown.
func (p *probes) checkVersion(ctx context.Context) *model.Error {
	p.mu.Lock()
	checked := p.checked
	p.mu.Unlock()
	if checked {
		return nil
	}
	version, e := p.m.lookUp(ctx, p.m.dialect.version)
	if e != nil {
		return e
	}
	p.m.learnContext(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version, p.checked = version, true
	for kind, got := range p.known {
		if got.Version != version {
			delete(p.known, kind)
		}
	}
	return nil
}

// ask sends the canary of a kind. An error says that the server could not be
// asked, and nothing about the kind.
func (p *probes) ask(ctx context.Context, kind constraint.Kind) (Probe, *model.Error) {
	m := p.m
	p.mu.Lock()
	got := Probe{Seen: m.cfg.Clock().UTC(), Version: p.version}
	p.mu.Unlock()
	source := canaries[kind]
	if kind == constraint.JSON && m.dialect.jsonCanary != "" {
		source = m.dialect.jsonCanary
	}
	con, err := constraint.Compile(constraint.Spec{Kind: kind, Source: []byte(source), File: "canary"}, constraint.Options{})
	if err != nil {
		return got, m.failed(model.Failed, model.NotSent, fmt.Errorf("probing for %s: %w", kind, err))
	}
	req := &model.Request{
		Messages:   []model.Message{{Role: model.User, Content: canaryQuestion}},
		Constraint: con, Sampling: model.Sampling{MaxTokens: probeTokens},
	}
	if m.dialect.thinking != nil {
		off := false
		req.Thinking = &off
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, e := m.send(ctx, cancel, req, m.way(kind))
	if e != nil {
		var se *serverError
		if !e.Retry && errors.As(e.Err, &se) && se.Status >= 400 && se.Status < 500 && e.Kind == model.Failed {
			got.Detail = "it refuses such a request: " + cut(se.Error())
			return got, nil
		}
		return got, e
	}
	switch {
	case con.Validate(ctx, resp.Text).Valid:
		got.Held = true
	case ctx.Err() != nil:
		return got, m.ended(ctx, model.ResponseReceived, nil)
	case resp.Finish == model.Length:
		got.Detail = fmt.Sprintf("its answer to a probe was not whole after %d tokens", probeTokens)
	default:
		got.Detail = "it answered a probe without regard to the constraint"
	}
	return got, nil
}

func cut(s string) string {
	s, _, _ = strings.Cut(s, "; ")
	return s
}

// lookUp reads a value of the first document that has it; empty where none
// does. Only a server that cannot be reached is an error.
func (m *Model) lookUp(ctx context.Context, queries []versionQuery) (string, *model.Error) {
	for _, q := range queries {
		var doc any
		e := m.ask(ctx, q.path, nil, &doc)
		if e != nil {
			if e.Kind == model.Unavailable && e.Retry || e.Kind == model.Cancelled || e.Kind == model.TimedOut {
				return "", e
			}
			continue
		}
		if v, ok := dig(doc, q.keys); ok {
			return m.clean(v), nil
		}
	}
	return "", nil
}

// dig follows keys and indexes into a document.
func dig(doc any, keys []string) (string, bool) {
	for _, k := range keys {
		switch d := doc.(type) {
		case map[string]any:
			doc = d[k]
		case []any:
			i, err := strconv.Atoi(k)
			if err != nil || i >= len(d) {
				return "", false
			}
			doc = d[i]
		default:
			return "", false
		}
	}
	switch v := doc.(type) {
	case string:
		return v, v != ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}

// learnContext asks the server how much its model holds, where the settings do
// not say.
func (m *Model) learnContext(ctx context.Context) {
	m.mu.Lock()
	known := m.context > 0
	m.mu.Unlock()
	if known || len(m.dialect.contextSize) == 0 {
		return
	}
	text, e := m.lookUp(ctx, m.dialect.contextSize)
	if n, err := strconv.Atoi(text); e == nil && err == nil && n > 0 {
		m.mu.Lock()
		m.context = n
		m.mu.Unlock()
	}
}

// Probe asks the server about every kind that can travel to it, again where
// force is set, and returns what is known then.
func (m *Model) Probe(ctx context.Context, force bool) ([]State, error) {
	if force {
		m.probes.forgetVersion()
	}
	for _, k := range Kinds {
		if m.way(k) == nil {
			continue
		}
		if _, e := m.probes.get(ctx, k, force); e != nil {
			if errors.Is(e, constraint.ErrNotBuilt) {
				continue
			}
			return m.States(), e
		}
	}
	return m.States(), nil
}

// States is what is known of every kind, without a word to the server.
func (m *Model) States() []State {
	var out []State
	for _, k := range Kinds {
		s := State{Kind: k}
		if d := m.cfg.Declared; d != nil {
			held := slices.Contains(d, k)
			s.Declared = &held
		}
		if w := m.way(k); w != nil {
			s.Travels = w.Field
		}
		m.probes.mu.Lock()
		if got, ok := m.probes.known[k]; ok {
			s.Probe = &got
		}
		m.probes.mu.Unlock()
		out = append(out, s)
	}
	return out
}
