package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"

	api "github.com/openai/openai-go/v3"

	"agentgraph/constraint"
	"agentgraph/model"
)

// maxSeed is what OpenAI's seed field holds.
const maxSeed = math.MaxInt64

// call is one request on its way.
type call struct {
	req  *model.Request
	body []byte
	path string
	seed *uint64
	// whole asks for the reply in one piece.
	whole bool
	// held is set when the request carries its constraint and the kind counts
	// as held.
	held bool
}

// build makes the request; way is nil where nothing constrains it.
func (m *Model) build(req *model.Request, w *way) (*call, *model.Error) {
	if e := m.checkSampling(req); e != nil {
		return nil, e
	}
	c := &call{req: req, path: "chat/completions", seed: m.drawSeed(req.Sampling)}
	var b *object
	var err error
	if m.dialect.native {
		c.path = "api/chat"
		b, err = m.ollamaRequest(req, c.seed)
	} else {
		c.whole = w != nil && w.whole
		b, err = m.chatRequest(req, c)
	}
	if err != nil {
		return nil, m.failed(model.Failed, model.NotSent, err)
	}
	if w != nil {
		if r := w.put(b, req.Constraint.Spec()); r != nil {
			return nil, m.capabilityError(r)
		}
	}
	c.body = b.bytes()
	return c, nil
}

// checkSampling refuses what would be left out in silence.
func (m *Model) checkSampling(req *model.Request) *model.Error {
	bad := func(key, hint string) *model.Error {
		return m.failed(model.Failed, model.NotSent, fmt.Errorf("%s has no field for %s; %s", m.dialect.title, key, hint))
	}
	s := req.Sampling
	switch {
	case s.TopK > 0 && !m.dialect.takes("top_k"):
		return bad("sampling: top_k", "remove it, or use top_p")
	case s.MinP > 0 && !m.dialect.takes("min_p"):
		return bad("sampling: min_p", "remove it, or use top_p")
	case s.Seed != nil && *s.Seed > m.seedLimit():
		return bad(fmt.Sprintf("a seed above %d", m.seedLimit()), "choose a smaller one")
	case len(req.Tools) > 0 && !req.NoCalls && req.Constraint != nil:
		return bad("tools beside a constraint", "ask for one after the other")
	case req.Thinking != nil && m.dialect.thinking == nil && !m.dialect.native:
		return bad("thinking:", "remove it from the settings")
	}
	return nil
}

func (m *Model) seedLimit() uint64 {
	if n := m.dialect.maxSeed; n > 0 {
		return n
	}
	return maxSeed
}

// drawSeed is the seed that is asked for, or one of our own where chance has a
// say, so that the answer can be had again.
func (m *Model) drawSeed(s model.Sampling) *uint64 {
	if s.Seed != nil || s.Temperature == 0 || m.noSeed {
		return s.Seed
	}
	seed := uint64(rand.Int32())
	return &seed
}

// chatRequest is the body of /chat/completions without the constraint.
func (m *Model) chatRequest(req *model.Request, c *call) (*object, error) {
	s := req.Sampling
	p := api.ChatCompletionNewParams{Model: m.id.Name, Messages: messages(req.Messages)}
	m.mu.Lock()
	noTemperature := m.noTemperature
	m.mu.Unlock()
	if !noTemperature {
		p.Temperature = api.Float(s.Temperature)
	}
	if s.Temperature > 0 {
		p.TopP = api.Float(orOne(s.TopP))
	}
	if c.seed != nil {
		p.Seed = api.Int(int64(*c.seed))
	}
	if s.MaxTokens > 0 {
		if m.dialect.maxTokens == "max_tokens" {
			p.MaxTokens = api.Int(int64(s.MaxTokens))
		} else {
			p.MaxCompletionTokens = api.Int(int64(s.MaxTokens))
		}
	}
	if s.Logprobs > 0 {
		p.Logprobs, p.TopLogprobs = api.Bool(true), api.Int(int64(s.Logprobs))
	}
	if !c.whole {
		p.StreamOptions.IncludeUsage = api.Bool(true)
	}
	base, err := p.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	b, err := reopen(base)
	if err != nil {
		return nil, err
	}
	if !c.whole {
		b.set("stream", true)
	}
	m.filters(b, s)
	if t := req.Thinking; t != nil {
		m.dialect.thinking(b, *t)
	}
	if req.Solo && m.dialect.name == "llamacpp" {
		b.set("cache_prompt", false)
	}
	if len(req.Tools) > 0 && req.Constraint == nil {
		b.raw("tools", tools(req.Tools))
		if req.NoCalls {
			b.set("tool_choice", "none")
		}
	}
	return b, nil
}

// filters are sent even when they are off: servers have defaults of their own.
func (m *Model) filters(b *object, s model.Sampling) {
	if s.Temperature == 0 {
		return
	}
	switch {
	case s.TopK > 0:
		b.set("top_k", s.TopK)
	case m.dialect.allTopK != "":
		b.raw("top_k", []byte(m.dialect.allTopK))
	}
	if m.dialect.takes("min_p") {
		b.set("min_p", s.MinP)
	}
}

func orOne(p float64) float64 {
	if p == 0 {
		return 1
	}
	return p
}

// reopen is an object of the SDK's, ready for more members.
func reopen(doc []byte) (*object, error) {
	if len(doc) < 3 || doc[0] != '{' || doc[len(doc)-1] != '}' {
		return nil, fmt.Errorf("the request is no JSON object")
	}
	var o object
	o.buf.Write(doc[:len(doc)-1])
	return &o, nil
}

func messages(in []model.Message) []api.ChatCompletionMessageParamUnion {
	out := make([]api.ChatCompletionMessageParamUnion, 0, len(in))
	for _, x := range in {
		switch x.Role {
		case model.System:
			out = append(out, api.SystemMessage(x.Content))
		case model.ToolRole:
			out = append(out, api.ToolMessage(x.Content, x.ToolCallID))
		case model.Assistant:
			out = append(out, assistant(x))
		default:
			out = append(out, api.UserMessage(x.Content))
		}
	}
	return out
}

func assistant(x model.Message) api.ChatCompletionMessageParamUnion {
	var p api.ChatCompletionAssistantMessageParam
	// A message of calls alone has no content; servers tell "" from none.
	if x.Content != "" || len(x.ToolCalls) == 0 {
		p.Content.OfString = api.String(x.Content)
	}
	for _, c := range x.ToolCalls {
		p.ToolCalls = append(p.ToolCalls, api.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &api.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: api.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: string(objectOr(c.Arguments))},
			},
		})
	}
	return api.ChatCompletionMessageParamUnion{OfAssistant: &p}
}

// tools keeps the schemas' members in order, which the SDK's maps do not.
func tools(list []model.Tool) []byte {
	out := []byte{'['}
	for i, t := range list {
		if i > 0 {
			out = append(out, ',')
		}
		var o object
		o.set("type", "function")
		o.nest("function", func(f *object) {
			f.set("name", t.Name)
			if t.Description != "" {
				f.set("description", t.Description)
			}
			f.raw("parameters", objectOr(t.Parameters))
		})
		out = append(out, o.bytes()...)
	}
	return append(out, ']')
}

// objectOr is raw JSON, or an empty object where it is none.
func objectOr(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage("{}")
	}
	return raw
}

// way is how a kind travels, nil where it does not.
func (m *Model) way(kind constraint.Kind) *way { return m.dialect.way(kind, m.cfg.LLGuidance) }
