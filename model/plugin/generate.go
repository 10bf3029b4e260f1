package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"agentgraph/constraint"
	"agentgraph/model"
)

// Generate runs the program once.
func (m *Model) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	arrived := time.Now()
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	case <-ctx.Done():
		return nil, m.stopped(ctx.Err(), model.NotSent, nil)
	}
	if err := ctx.Err(); err != nil {
		return nil, m.stopped(err, model.NotSent, nil)
	}
	if m.closed.Load() {
		return nil, m.fault(model.Unavailable, model.NotSent, errors.New("the model is closed"))
	}
	body, err := m.wire(req)
	if err != nil {
		return nil, m.fault(model.Failed, model.NotSent, err)
	}
	r := &reply{m: m, req: req, started: time.Now()}
	r.resp.Stats.Queued = r.started.Sub(arrived)
	r.resp.Seed = req.Sampling.Seed
	if m.holds(req) {
		r.resp.EnforcedBy = constraint.ByServerValidation
	}
	p, err := m.start(ctx, body)
	if err != nil {
		return nil, err
	}
	done, fault := r.read(p)
	grace := time.Duration(0)
	if done {
		grace = exitGrace // a program may save something before it ends
	}
	ended := p.end(grace)
	switch {
	case done:
		return r.finish()
	case ctx.Err() != nil:
		return nil, m.stopped(ctx.Err(), model.MayHaveBeenSent, r.partial())
	case fault != nil:
		fault.Partial = r.partial()
		return nil, fault
	}
	e := m.fault(model.Failed, model.MayHaveBeenSent, fmt.Errorf("the plug-in ended before its answer did (%s)%s", ended, m.because(p)))
	e.Retry, e.Partial = true, r.partial()
	return nil, e
}

// because quotes the end of stderr. The process has ended.
func (m *Model) because(p *process) string {
	if text := m.said(p.stderr.String()); text != "" {
		return ": " + text
	}
	return ""
}

// reply is one answer on its way.
type reply struct {
	m       *Model
	req     *model.Request
	started time.Time
	resp    model.Response

	text, reasoning growing
	last            *growing // what a line that is no event belongs to
	calls           []toolCall
	events          int // of text and reasoning: at most one token each
	length          bool
}

// read takes the events until the end; done is true when the plug-in said that
// its answer is whole.
func (r *reply) read(p *process) (done bool, fault *model.Error) {
	for n := 1; ; n++ {
		line, last, err := p.line()
		switch {
		case errors.Is(err, errLong):
			return false, r.m.fault(model.Failed, model.ResponseReceived,
				fmt.Errorf("line %d of the plug-in's reply is too long: a line may have %d bytes, all of them %d", n, lineBytes, replyBytes))
		case err != nil:
			return false, nil
		}
		e, ok := parseEvent(line)
		switch {
		case last && !(ok && e.kind == 'D'):
			// The process ended within a line. What it is, nobody knows.
			return false, nil
		case ok:
			if done, fault = r.take(e, n); done || fault != nil {
				return done, fault
			}
		case r.last != nil:
			if fault := r.add(r.last, append([]byte("\n"), line...)); fault != nil {
				return false, fault
			}
		case len(bytes.TrimSpace(line)) > 0:
			return false, r.m.fault(model.Failed, model.ResponseReceived,
				fmt.Errorf("line %d of the plug-in's reply is no event: %q; a line begins with T:, R:, C: or X:, or is D", n, r.m.begin(line)))
		}
	}
}

func (r *reply) take(e event, n int) (done bool, fault *model.Error) {
	switch e.kind {
	case 'T', 'R':
		if r.resp.Stats.FirstToken == 0 {
			r.resp.Stats.FirstToken = time.Since(r.started)
		}
		r.events++
		if r.last = &r.text; e.kind == 'R' {
			r.last = &r.reasoning
		}
		return false, r.add(r.last, e.text)
	case 'C':
		r.last = nil
		if !utf8.Valid(e.text) {
			return false, r.notUTF8("a tool call", string(e.text))
		}
		if err := r.call(e.text); err != nil {
			return false, r.m.fault(model.Failed, model.ResponseReceived, fmt.Errorf("line %d of the plug-in's reply is no tool call: %w", n, err))
		}
	case 'D':
		r.length = len(e.text) > 0
		return true, nil
	case 'X':
		text := r.m.said(string(e.text))
		if text == "" {
			text = "it does not say why"
		}
		fault = r.m.fault(model.Failed, model.ResponseReceived, errors.New("the plug-in failed: "+text))
		fault.Retry = true
		return false, fault
	}
	return false, nil
}

// add appends to the text or the reasoning and shows what is whole of it.
func (r *reply) add(g *growing, b []byte) *model.Error {
	shown := g.add(b)
	if !utf8.ValidString(shown) {
		return r.notUTF8(r.name(g), shown)
	}
	if shown == "" || r.req.Progress == nil {
		return nil
	}
	p := model.Progress{Text: shown, Tokens: r.events}
	if g == &r.reasoning {
		p.Text, p.Reasoning = "", shown
	}
	r.req.Progress(p)
	return nil
}

func (r *reply) name(g *growing) string {
	if g == &r.reasoning {
		return "its reasoning"
	}
	return "its answer"
}

// aroundBytes is how much of a text is quoted on both sides of what is wrong.
const aroundBytes = 20

// notUTF8 quotes the bytes, which a record cannot hold.
func (r *reply) notUTF8(what, text string) *model.Error {
	text = r.m.env.Redact(text)
	at := 0
	for at < len(text) {
		c, n := utf8.DecodeRuneInString(text[at:])
		if c == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	from := max(at-aroundBytes, 0)
	for from < at && !utf8.RuneStart(text[from]) {
		from++
	}
	to := min(at+aroundBytes, len(text))
	for to < len(text) && to < at+aroundBytes+utf8.UTFMax && !utf8.RuneStart(text[to]) {
		to++
	}
	return r.m.fault(model.Failed, model.ResponseReceived,
		fmt.Errorf("the plug-in printed bytes that are no UTF-8 in %s: %q; let it print UTF-8", what, text[from:to]))
}

// maxCalls bounds the calls of one reply; more are run by nobody.
const maxCalls = 256

// call takes a tool call. Some plug-ins pass on the pieces of a call as they
// come: those without a name, or of a call whose arguments are not whole.
func (r *reply) call(data []byte) error {
	var c struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return errors.New("it is not the JSON {id, name, arguments}")
	}
	args := string(c.Arguments)
	var text string
	if json.Unmarshal(c.Arguments, &text) == nil {
		args = text
	}
	if n := len(r.calls); n > 0 {
		before := &r.calls[n-1]
		if c.Name == "" || c.ID != "" && c.ID == before.ID && !json.Valid([]byte(before.Arguments)) {
			before.Arguments += args
			return nil
		}
	}
	if c.Name == "" {
		return errors.New("it has no name")
	}
	if len(r.calls) == maxCalls {
		return fmt.Errorf("there are more than %d", maxCalls)
	}
	r.calls = append(r.calls, toolCall{c.ID, c.Name, args})
	return nil
}

// finish is the whole answer. One that was cut off may end within a character.
func (r *reply) finish() (*model.Response, error) {
	var torn *growing
	for _, g := range []*growing{&r.text, &r.reasoning} {
		if len(g.rest) > 0 {
			torn = g
		}
	}
	resp := r.settle()
	resp.Finish = model.Stop
	switch cut := r.length || r.cutOff(); {
	case torn != nil && !cut:
		fault := r.notUTF8(r.name(torn), torn.whole.String())
		fault.Partial = resp
		return nil, fault
	case len(r.calls) > 0:
		resp.Finish = model.FinishToolUse
	case cut:
		resp.Finish = model.Length
	}
	return resp, nil
}

// cutOff guesses what the protocol does not say: an answer of as many events
// as tokens were allowed was most likely cut off. JSON that is whole was not.
func (r *reply) cutOff() bool {
	n := r.req.Sampling.MaxTokens
	if n == 0 || r.events < n {
		return false
	}
	c := r.req.Constraint
	return c == nil || c.Spec().Kind != constraint.JSON || !json.Valid([]byte(r.resp.Text))
}

func (r *reply) partial() *model.Response { return r.settle() }

func (r *reply) settle() *model.Response {
	r.text.end()
	r.reasoning.end()
	r.resp.Text, r.resp.Reasoning = r.text.whole.String(), r.reasoning.whole.String()
	r.resp.ToolCalls = nil
	for _, c := range r.calls {
		args := strings.TrimSpace(c.Arguments)
		if args == "" {
			args = "{}"
		}
		r.resp.ToolCalls = append(r.resp.ToolCalls, model.ToolCall{ID: c.ID, Name: c.Name, Arguments: json.RawMessage(args)})
	}
	r.resp.Stats.Decode = max(time.Since(r.started), 1)
	return &r.resp
}

// growing is text that comes in pieces, which may end within a character. It
// keeps the bytes as they are.
type growing struct {
	whole strings.Builder
	rest  []byte // the beginning of a character
}

// add returns what is new and whole.
func (g *growing) add(b []byte) string {
	b = append(g.rest, b...)
	cut := len(b)
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				cut -= i
			}
			break
		}
	}
	g.rest = append([]byte(nil), b[cut:]...)
	g.whole.Write(b[:cut])
	return string(b[:cut])
}

// end takes a character that never became whole for what it is.
func (g *growing) end() {
	g.whole.Write(g.rest)
	g.rest = nil
}
