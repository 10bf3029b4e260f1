package openai

import (
	"encoding/json"

	"agentgraph/constraint"
	"agentgraph/model"
)

// Ollama is asked by its own protocol: the one that it shares with OpenAI has
// re-sorted the members of a schema. It holds JSON Schema alone.
var _ = register(&dialect{
	name: "ollama", title: "Ollama", native: true,
	ways: map[constraint.Kind]*way{
		constraint.JSON: {Field: "format", Form: "the file's bytes", put: func(b *object, spec constraint.Spec) *constraint.Refusal {
			b.raw("format", schema(spec))
			return nil
		}},
	},
	keywords: llamaKeywords,
	filters:  []string{"top_k", "min_p"},
	maxSeed:  1<<31 - 1,
	version:  []versionQuery{{"api/version", []string{"version"}}},
})

type ollamaCall struct {
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type ollamaMessage struct {
	Role      model.Role   `json:"role"`
	Content   string       `json:"content"`
	ToolCalls []ollamaCall `json:"tool_calls,omitempty"`
	ToolName  string       `json:"tool_name,omitempty"`
}

// ollamaRequest is the body of /api/chat without the constraint.
func (m *Model) ollamaRequest(req *model.Request, seed *uint64) (*object, error) {
	var b object
	b.set("model", m.cfg.Model)
	msgs := make([]ollamaMessage, 0, len(req.Messages))
	names := map[string]string{}
	for _, x := range req.Messages {
		msg := ollamaMessage{Role: x.Role, Content: x.Content}
		for _, c := range x.ToolCalls {
			names[c.ID] = c.Name
			var call ollamaCall
			call.Function.Name, call.Function.Arguments = c.Name, objectOr(c.Arguments)
			msg.ToolCalls = append(msg.ToolCalls, call)
		}
		if x.Role == model.ToolRole {
			if msg.ToolName = x.Name; msg.ToolName == "" {
				msg.ToolName = names[x.ToolCallID]
			}
		}
		msgs = append(msgs, msg)
	}
	b.set("messages", msgs)
	b.set("stream", true)
	// "think": false has made it forget the format, so it is never sent with one.
	if t := req.Thinking; t != nil && (*t || req.Constraint == nil) {
		b.set("think", *t)
	}
	if len(req.Tools) > 0 && !req.NoCalls && req.Constraint == nil {
		b.raw("tools", tools(req.Tools))
	}
	if n := req.Sampling.Logprobs; n > 0 {
		b.set("logprobs", true)
		b.set("top_logprobs", n)
	}
	b.nest("options", func(o *object) {
		s := req.Sampling
		o.set("temperature", s.Temperature)
		// What is left out would be the server's own, which is not off.
		o.set("top_k", s.TopK)
		o.set("top_p", orOne(s.TopP))
		o.set("min_p", s.MinP)
		o.set("repeat_penalty", 1)
		if seed != nil {
			o.set("seed", *seed)
		}
		if s.MaxTokens > 0 {
			o.set("num_predict", s.MaxTokens)
		}
		if m.cfg.Context > 0 {
			o.set("num_ctx", m.cfg.Context)
		}
	})
	return &b, nil
}

// ollamaLine is one line of a streamed reply.
type ollamaLine struct {
	Message struct {
		Content   json.RawMessage `json:"content"`
		Thinking  json.RawMessage `json:"thinking"`
		ToolCalls []ollamaCall    `json:"tool_calls"`
	} `json:"message"`
	Done       bool            `json:"done"`
	DoneReason string          `json:"done_reason"`
	Prompt     *int64          `json:"prompt_eval_count"`
	Eval       *int64          `json:"eval_count"`
	PromptNS   int64           `json:"prompt_eval_duration"`
	EvalNS     int64           `json:"eval_duration"`
	Logprobs   []tokenLogprob  `json:"logprobs"`
	Error      json.RawMessage `json:"error"`
}
