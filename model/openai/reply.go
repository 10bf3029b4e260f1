package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"agentgraph/constraint"
	"agentgraph/model"
)

// completion is a reply, or one piece of a streamed one.
type completion struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"`
	Message json.RawMessage `json:"message"` // of an error without its envelope
}

type choice struct {
	Index    int     `json:"index"`
	Delta    *piece  `json:"delta"`
	Message  *piece  `json:"message"`
	Finish   *string `json:"finish_reason"`
	Logprobs *struct {
		Content []tokenLogprob `json:"content"`
	} `json:"logprobs"`
}

type piece struct {
	Content          json.RawMessage `json:"content"`
	Refusal          json.RawMessage `json:"refusal"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	ToolCalls        []toolPiece     `json:"tool_calls"`
}

type toolPiece struct {
	Index    *int            `json:"index"`
	ID       string          `json:"id"`
	Function *functionPiece  `json:"function"`
	Custom   *customPiece    `json:"custom"`
	Input    json.RawMessage `json:"input"`
}

type functionPiece struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type customPiece struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type usage struct {
	Prompt     *int64 `json:"prompt_tokens"`
	Completion *int64 `json:"completion_tokens"`
	Details    *struct {
		Cached *int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

type tokenLogprob struct {
	Token   string         `json:"token"`
	Logprob float64        `json:"logprob"`
	Bytes   []int          `json:"bytes"`
	Top     []tokenLogprob `json:"top_logprobs"`
}

func (t tokenLogprob) model(depth int) model.TokenLogprob {
	out := model.TokenLogprob{Token: t.Token, Logprob: t.Logprob}
	b := make([]byte, 0, len(t.Bytes))
	for _, x := range t.Bytes {
		b = append(b, byte(x))
	}
	if len(b) > 0 && !utf8.Valid(b) {
		out.Bytes, out.Token = b, strings.ToValidUTF8(string(b), "\uFFFD")
	}
	if depth > 0 {
		for _, x := range t.Top {
			out.Top = append(out.Top, x.model(depth-1))
		}
	}
	return out
}

// Bounds of one reply's parts.
const (
	maxCalls    = 256
	maxLogprobs = 1 << 18
)

// reply collects what a server says.
type reply struct {
	m     *Model
	c     *call
	start time.Time

	text, reasoning, refusal []byte
	shownText, shownThought  int
	pieces                   int
	calls                    []*model.ToolCall
	args                     [][]byte
	custom                   bool // the answer came as a custom tool's input
	finish                   string
	done                     bool // the server ended it itself
	usage                    model.Usage
	logprobs                 []model.TokenLogprob
	first                    time.Duration
}

// read reads the whole body. What comes is told from its first bytes: servers
// answer in one piece where a stream was asked for, and the other way round.
func (r *reply) read(body io.Reader) error {
	in := bufio.NewReaderSize(body, 64<<10)
	for {
		b, err := in.Peek(1)
		if err != nil {
			return err
		}
		if b[0] != ' ' && b[0] != '\n' && b[0] != '\r' && b[0] != '\t' {
			break
		}
		_, _ = in.Discard(1)
	}
	head, _ := in.Peek(3)
	switch {
	case r.m.dialect.native && head[0] == '{':
		return r.ollamaLines(in)
	case head[0] == '{':
		doc, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		return r.document(doc)
	case bytes.HasPrefix(head, []byte("dat")), bytes.HasPrefix(head, []byte("eve")), head[0] == ':', bytes.HasPrefix(head, []byte("id:")), bytes.HasPrefix(head, []byte("ret")):
		return events(in, func(data []byte) (bool, error) {
			if string(bytes.TrimSpace(data)) == "[DONE]" {
				return true, nil
			}
			return false, r.document(data)
		})
	}
	return errNoReply
}

var errNoReply = errors.New("what came is no completion; see that url: is the address of the API")

// document is a whole reply or one event of a stream.
func (r *reply) document(doc []byte) error {
	var c completion
	if err := json.Unmarshal(doc, &c); err != nil {
		return fmt.Errorf("what came is no completion: %s", r.m.clean(err.Error()))
	}
	if isSet(c.Error) || c.Object == "error" || len(c.Choices) == 0 && isSet(c.Message) {
		return r.m.readError(0, doc)
	}
	if u := c.Usage; u != nil {
		r.usage.InputTokens, r.usage.OutputTokens = u.Prompt, u.Completion
		if u.Details != nil {
			r.usage.CacheReadTokens = u.Details.Cached
		}
	}
	seen := false
	for _, ch := range c.Choices {
		// One answer was asked for; another one beside it is none of ours.
		if ch.Index != 0 {
			continue
		}
		if seen {
			return errors.New("the server answered twice in one reply")
		}
		seen = true
		if err := r.choice(ch); err != nil {
			return err
		}
	}
	r.progress()
	return nil
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (r *reply) choice(ch choice) error {
	for _, p := range []*piece{ch.Delta, ch.Message} {
		if p == nil {
			continue
		}
		if r.done {
			if isSet(p.Content) && string(p.Content) != `""` {
				return errors.New("the server went on after it had ended the answer")
			}
			continue
		}
		if err := r.piece(p); err != nil {
			return err
		}
	}
	if lp := ch.Logprobs; lp != nil && r.c.req.Sampling.Logprobs > 0 {
		r.addLogprobs(lp.Content)
	}
	if ch.Finish != nil && *ch.Finish != "" && !r.done {
		r.finish, r.done = *ch.Finish, true
	}
	return nil
}

func (r *reply) addLogprobs(list []tokenLogprob) {
	for _, t := range list {
		if len(r.logprobs) < maxLogprobs {
			r.logprobs = append(r.logprobs, t.model(1))
		}
	}
}

func (r *reply) piece(p *piece) error {
	thought := p.ReasoningContent
	if !isSet(thought) {
		thought = p.Reasoning // some send both, with the same text
	}
	for _, x := range []struct {
		to  *[]byte
		raw json.RawMessage
	}{{&r.text, p.Content}, {&r.reasoning, thought}, {&r.refusal, p.Refusal}} {
		b, err := content(x.raw)
		if err != nil {
			return err
		}
		*x.to = append(*x.to, b...)
	}
	for i, t := range p.ToolCalls {
		if err := r.toolPiece(i, t); err != nil {
			return err
		}
	}
	r.pieces++
	return nil
}

// content is a string, or the text among a list of parts.
func content(raw json.RawMessage) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	if !isSet(raw) {
		return nil, nil
	}
	if b, ok := unquote(raw); ok {
		return b, nil
	}
	var parts []struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil, errors.New("the reply's content is neither text nor a list of parts")
	}
	var out []byte
	for _, p := range parts {
		if p.Type == "text" {
			b, _ := unquote(p.Text)
			out = append(out, b...)
		}
	}
	return out, nil
}

func (r *reply) toolPiece(i int, t toolPiece) error {
	if t.Custom != nil {
		b, _ := unquote(t.Custom.Input)
		r.text, r.custom = append(r.text, b...), true
		return nil
	}
	switch {
	case t.Index != nil:
		i = *t.Index
	case i < len(r.calls) && t.ID != "" && r.calls[i].ID != "" && r.calls[i].ID != t.ID:
		i = len(r.calls) // a new call of a server that does not number them
	}
	if i < 0 || i >= maxCalls {
		return fmt.Errorf("the reply calls more than %d tools", maxCalls)
	}
	for len(r.calls) <= i {
		r.calls, r.args = append(r.calls, &model.ToolCall{}), append(r.args, nil)
	}
	if t.ID != "" {
		r.calls[i].ID = t.ID
	}
	if f := t.Function; f != nil {
		if r.calls[i].Name == "" {
			r.calls[i].Name = f.Name
		}
		if b, ok := unquote(f.Arguments); ok {
			r.args[i] = append(r.args[i], b...)
		} else if isSet(f.Arguments) {
			r.args[i] = append(r.args[i], f.Arguments...)
		}
	}
	return nil
}

// ollamaLines reads one JSON object a line.
func (r *reply) ollamaLines(in *bufio.Reader) error {
	l := newLines(in)
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var x ollamaLine
		if err := json.Unmarshal(line, &x); err != nil {
			return fmt.Errorf("what came is no reply of Ollama: %s", r.m.clean(err.Error()))
		}
		if isSet(x.Error) {
			return r.m.readError(0, line)
		}
		p := &piece{Content: x.Message.Content, ReasoningContent: x.Message.Thinking}
		for _, c := range x.Message.ToolCalls {
			i := len(r.calls) + len(p.ToolCalls)
			p.ToolCalls = append(p.ToolCalls, toolPiece{Index: &i, Function: &functionPiece{c.Function.Name, c.Function.Arguments}})
		}
		ch := choice{Delta: p}
		if x.Done {
			if x.DoneReason == "" {
				x.DoneReason = "stop"
			}
			ch.Finish = &x.DoneReason
			r.usage.InputTokens, r.usage.OutputTokens = x.Prompt, x.Eval
		}
		if err := r.choice(ch); err != nil {
			return err
		}
		if r.c.req.Sampling.Logprobs > 0 {
			r.addLogprobs(x.Logprobs)
		}
		r.progress()
		if r.done {
			return nil
		}
	}
}

// progress shows what is new, whole characters only.
func (r *reply) progress() {
	text := r.text[r.shownText : r.shownText+wholeRunes(r.text[r.shownText:])]
	thought := r.reasoning[r.shownThought : r.shownThought+wholeRunes(r.reasoning[r.shownThought:])]
	if len(text) == 0 && len(thought) == 0 {
		return
	}
	if r.first == 0 {
		r.first = r.m.cfg.Clock().Sub(r.start)
	}
	r.shownText, r.shownThought = r.shownText+len(text), r.shownThought+len(thought)
	if r.c.req.Progress != nil {
		r.c.req.Progress(model.Progress{Text: valid(text), Reasoning: valid(thought), Tokens: r.pieces})
	}
}

func valid(b []byte) string { return strings.ToValidUTF8(string(joinPairs(b)), "\uFFFD") }

// response is what came so far.
func (r *reply) response() *model.Response {
	resp := &model.Response{
		Text: string(joinPairs(r.text)), Reasoning: valid(r.reasoning), Usage: r.usage, Seed: r.c.seed,
		Logprobs: r.logprobs, Stats: model.Stats{FirstToken: r.first},
	}
	if r.c.held {
		resp.EnforcedBy = constraint.ByServerValidation
	}
	return resp
}

// partial is response, nil when nothing came.
func (r *reply) partial() *model.Response {
	if len(r.text) == 0 && len(r.reasoning) == 0 {
		return nil
	}
	return r.response()
}

var (
	errCutOff  = errors.New("the server closed the connection before the answer was whole")
	errNotUTF8 = errors.New("the server sent bytes that are no UTF-8")
)

// whole is the finished reply, or what is wrong with it.
func (r *reply) whole() (*model.Response, error) {
	if !r.done {
		return nil, errCutOff
	}
	resp := r.response()
	if !utf8.ValidString(resp.Text) {
		return nil, errNotUTF8
	}
	for i, c := range r.calls {
		c.Arguments = bytes.TrimSpace(joinPairs(r.args[i]))
		if len(c.Arguments) == 0 {
			c.Arguments = json.RawMessage("{}")
		}
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d", i+1)
		}
		resp.ToolCalls = append(resp.ToolCalls, *c)
	}
	if len(r.refusal) > 0 {
		resp.Finish = model.Refusal
		if resp.Text == "" {
			resp.Text = valid(r.refusal)
		}
		return resp, nil
	}
	switch r.finish {
	case "stop", "eos", "end_turn", "stop_sequence":
		resp.Finish = model.Stop
	case "length", "max_tokens":
		resp.Finish = model.Length
	case "tool_calls", "function_call":
		resp.Finish = model.FinishToolUse
		if r.custom && len(resp.ToolCalls) == 0 {
			resp.Finish = model.Stop
		}
	case "content_filter", "refusal":
		resp.Finish = model.Refusal
	default:
		return nil, fmt.Errorf("the server ended the answer as %q", r.m.clean(r.finish))
	}
	if resp.Finish == model.Stop && len(resp.ToolCalls) > 0 {
		resp.Finish = model.FinishToolUse
	}
	if resp.Finish == model.FinishToolUse && len(resp.ToolCalls) == 0 {
		return nil, errors.New("the server ended the answer with calls of tools and sent none")
	}
	return resp, nil
}
