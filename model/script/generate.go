package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentgraph/constraint"
	"agentgraph/model"
)

// Generate answers from the script.
func (m *Model) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	arrived := m.cfg.Clock()
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	case <-ctx.Done():
		return nil, m.stopped(ctx.Err(), model.NotSent, nil)
	}
	if err := ctx.Err(); err != nil {
		return nil, m.stopped(err, model.NotSent, nil)
	}
	rep, err := m.choose(req)
	if err != nil {
		return nil, m.failed(model.Failed, model.NotSent, err)
	}
	g := &generation{m: m, rep: rep, req: req, start: m.cfg.Clock()}
	g.resp.Rendered = m.render(req)
	g.resp.Seed = req.Sampling.Seed
	g.resp.Stats.Queued = g.start.Sub(arrived)
	if r := g.resp.Rendered; r.Context > 0 && r.Tokens >= r.Context {
		return nil, m.failed(model.ContextOverflow, model.NotSent,
			fmt.Errorf("the prompt has %d tokens and the context holds %d", r.Tokens, r.Context))
	}
	next, closeSource, err := g.source()
	if err != nil {
		return nil, m.failed(model.Capability, model.NotSent, err)
	}
	defer closeSource()
	return g.run(ctx, next)
}

func (m *Model) failed(kind model.ErrorKind, d model.Delivery, err error) *model.Error {
	return &model.Error{Kind: kind, Delivery: d, Model: m.identity.Name, Err: err}
}

func (m *Model) stopped(err error, d model.Delivery, partial *model.Response) *model.Error {
	kind := model.Cancelled
	if errors.Is(err, context.DeadlineExceeded) {
		kind = model.TimedOut
	}
	e := m.failed(kind, d, err)
	e.Partial = partial
	return e
}

// generation is one reply on its way.
type generation struct {
	m     *Model
	rep   *reply
	req   *model.Request
	start time.Time
	resp  model.Response

	text   []byte
	tokens int // of reasoning and text
	shown  int // bytes of text that Progress has seen
}

// step yields the next byte of the answer; end is true instead of a byte when
// the reply ends.
type step func() (b byte, forced, end bool, err error)

// source picks where the bytes come from: a mask when the request has a
// constraint and this script masks, otherwise the script alone.
func (g *generation) source() (step, func(), error) {
	none := func() {}
	want := g.rep.wants()
	if f := g.req.CallFormat; f != "" && len(g.rep.ToolCalls) > 0 {
		want = &wanted{text: model.WriteCall(f, g.rep.ToolCalls[0].call())}
	}
	con := g.req.Constraint
	if con == nil {
		return free(want), none, nil
	}
	engine := g.m.engine
	if !engine.Holds(con.Spec().Kind) {
		return free(want), none, nil // Admit let validation decide
	}
	if !engine.Masks {
		g.resp.EnforcedBy = constraint.ByServerValidation
		return free(want), none, nil
	}
	next, closeMatcher, err := masked(con, want)
	if errors.Is(err, constraint.ErrNotBuilt) && con.Options().Enforce == constraint.EnforceValidate {
		return free(want), none, nil
	}
	if err != nil {
		return nil, none, err
	}
	g.resp.EnforcedBy = constraint.ByMask
	return next, closeMatcher, nil
}

func (g *generation) run(ctx context.Context, next step) (*model.Response, error) {
	if err := g.m.cfg.Sleep(ctx, time.Duration(g.rep.Delay)); err != nil {
		return nil, g.m.stopped(err, model.MayHaveBeenSent, g.partial())
	}
	if f := g.rep.Error; f != nil && f.After == 0 {
		return nil, g.scripted(f, model.NotSent, nil)
	}
	if g.rep.Reasoning != "" && (g.req.Thinking == nil || *g.req.Thinking) {
		g.resp.Reasoning = g.rep.Reasoning
		g.tokens += g.m.tokens(len(g.rep.Reasoning))
		g.progress(model.Progress{Reasoning: g.rep.Reasoning, Tokens: g.tokens})
	}
	limit := g.limit()
	for inToken := 0; ; {
		b, forced, end, err := next()
		if err != nil {
			e := g.m.failed(model.Failed, model.MayHaveBeenSent, err)
			e.Partial = g.partial()
			return nil, e
		}
		if end {
			if f := g.rep.Error; f != nil {
				return nil, g.scripted(f, model.MayHaveBeenSent, g.partial())
			}
			return g.finish(), nil
		}
		if inToken == 0 {
			// A new token begins.
			if g.tokens >= limit {
				g.resp.Finish = model.Length
				return g.settle(), nil
			}
			if f := g.rep.Error; f != nil && g.tokens >= f.After {
				return nil, g.scripted(f, model.MayHaveBeenSent, g.partial())
			}
			if err := g.m.cfg.Sleep(ctx, time.Duration(g.rep.TokenDelay)); err != nil {
				return nil, g.m.stopped(err, model.MayHaveBeenSent, g.partial())
			}
			if err := ctx.Err(); err != nil {
				return nil, g.m.stopped(err, model.MayHaveBeenSent, g.partial())
			}
			if g.tokens == 0 {
				g.resp.Stats.FirstToken = g.m.cfg.Clock().Sub(g.start)
			}
			g.tokens++
			if forced {
				g.resp.Stats.ForcedTokens++
			}
		}
		g.text = append(g.text, b)
		if inToken++; inToken == g.m.file.TokenBytes {
			inToken = 0
			g.show()
		}
	}
}

// limit is the number of tokens that may come.
func (g *generation) limit() int {
	limit := endlessTokens
	if r := g.resp.Rendered; r.Context > 0 {
		limit = r.Context - r.Tokens
	}
	if n := g.req.Sampling.MaxTokens; n > 0 {
		limit = min(limit, n)
	}
	return limit
}

func (g *generation) finish() *model.Response {
	g.resp.Finish = model.Stop
	if f := g.req.CallFormat; f != "" {
		g.settle()
		if c, ok := model.ParseCall(f, g.resp.Text, g.req.Tools); ok && !g.req.NoCalls {
			g.resp.Text, g.resp.ToolCalls, g.resp.Finish = "", []model.ToolCall{c}, model.FinishToolUse
		}
		return &g.resp
	}
	for i, c := range g.rep.ToolCalls {
		call := c.call()
		call.ID = fmt.Sprintf("call_%d", i+1)
		g.resp.ToolCalls = append(g.resp.ToolCalls, call)
		g.resp.Finish = model.FinishToolUse
	}
	return g.settle()
}

func (c toolCall) call() model.ToolCall {
	args := json.RawMessage(c.Arguments)
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	return model.ToolCall{Name: c.Name, Arguments: args}
}

func (g *generation) settle() *model.Response {
	if f := g.resp.Finish; f == model.Length {
		g.text = wholeRunes(g.text)
	}
	g.show()
	in, out, zero := int64(g.resp.Rendered.Tokens), int64(g.tokens), int64(0)
	g.resp.Text = string(g.text)
	g.resp.Usage = model.Usage{InputTokens: &in, OutputTokens: &out, CacheReadTokens: &zero, CacheWriteTokens: &zero}
	g.resp.Logprobs = g.logprobs()
	g.resp.Stats.Decode = max(g.m.cfg.Clock().Sub(g.start), 1)
	return &g.resp
}

// logprobs are those of a model that is sure of what it says.
func (g *generation) logprobs() []model.TokenLogprob {
	if g.req.Sampling.Logprobs == 0 {
		return nil
	}
	var list []model.TokenLogprob
	for chunk := range slices.Chunk(g.text, g.m.file.TokenBytes) {
		t := model.TokenLogprob{Token: strings.ToValidUTF8(string(chunk), "\uFFFD")}
		if !utf8.Valid(chunk) {
			t.Bytes = slices.Clone(chunk)
		}
		top := t
		t.Top = []model.TokenLogprob{top}
		list = append(list, t)
	}
	return list
}

// partial is what there is when a call breaks off.
func (g *generation) partial() *model.Response {
	g.text = wholeRunes(g.text)
	return g.settle()
}

func (g *generation) scripted(f *failure, d model.Delivery, partial *model.Response) error {
	msg := f.Message
	if msg == "" {
		msg = "the script says " + string(f.Kind)
	}
	e := g.m.failed(model.ErrorKind(f.Kind), d, errors.New(msg))
	e.Retry, e.Partial = f.Retry, partial
	if model.ErrorKind(f.Kind) == model.Refused {
		e.Delivery = model.ResponseReceived
	}
	return e
}

// show passes on the whole characters that have not been shown.
func (g *generation) show() {
	whole := wholeRunes(g.text)
	if len(whole) > g.shown {
		g.progress(model.Progress{Text: string(whole[g.shown:]), Tokens: g.tokens})
		g.shown = len(whole)
	}
}

func (g *generation) progress(p model.Progress) {
	if g.req.Progress != nil {
		g.req.Progress(p)
	}
}

// wholeRunes leaves out a character that is cut off at the end.
func wholeRunes(b []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
