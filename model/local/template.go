package local

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"agentgraph/model"
)

// plainTemplate is for files that carry none: base models, which continue
// text.
//
//go:embed plain.jinja
var plainTemplate string

// template is a model's chat template.
type template struct {
	source string
	sha256 string
	bos    string
	eos    string
	render func(source string, context []byte) (string, bool, error)

	once sync.Once
	// parts is true for templates that take a message's content as a list of
	// typed parts and not as a string.
	parts bool
	// tools is true for templates that show tools, calls and results.
	tools bool
}

func newTemplate(source, bos, eos string, render func(string, []byte) (string, bool, error)) *template {
	if strings.TrimSpace(source) == "" {
		source = plainTemplate
	}
	sum := sha256.Sum256([]byte(source))
	return &template{source: source, sha256: hex.EncodeToString(sum[:]), bos: bos, eos: eos, render: render}
}

// The messages as Hugging Face's templates expect them.
type chatMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"`
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Name       string     `json:"name,omitempty"`
}

type chatCall struct {
	Type     string       `json:"type"`
	ID       string       `json:"id,omitempty"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatToolSpec `json:"function"`
}

type chatToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

type chatPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// chatClock is the time, taken apart so that the template side needs no
// calendar.
type chatClock struct {
	Year        int `json:"year"`
	Month       int `json:"month"`
	Day         int `json:"day"`
	Hour        int `json:"hour"`
	Minute      int `json:"minute"`
	Second      int `json:"second"`
	Microsecond int `json:"microsecond"`
	Weekday     int `json:"weekday"` // Sunday is 0
	YearDay     int `json:"yearday"`
}

type chatContext struct {
	Messages []chatMessage `json:"messages"`
	Tools    []chatTool    `json:"tools"`
	// Documents is there because templates test it.
	Documents  any       `json:"documents"`
	BOS        string    `json:"bos_token"`
	EOS        string    `json:"eos_token"`
	Generation bool      `json:"add_generation_prompt"`
	Thinking   *bool     `json:"enable_thinking,omitempty"`
	Now        chatClock `json:"now"`
}

// apply renders the prompt for a request. The clock is zero unless the
// template asked for the time.
func (t *template) apply(req *model.Request, now time.Time) (prompt string, clock time.Time, err error) {
	t.once.Do(t.probe)
	messages := req.Messages
	if len(req.Tools) > 0 && (!t.tools || !t.writes(req.CallFormat)) {
		// The template says nothing of tools, or not as it is wanted: they go
		// into the messages.
		plain := *req
		messages, plain.Tools = toolsAsText(req), nil
		req = &plain
	}
	prompt, used, err := t.run(messages, req, now)
	if err != nil && len(messages) > 1 && messages[0].Role == model.System && messages[1].Role == model.User {
		// Some templates (Gemma's) refuse system messages. Their authors ask
		// for the text in front of the first user message.
		merged := append([]model.Message(nil), messages[1:]...)
		merged[0].Content = messages[0].Content + "\n\n" + merged[0].Content
		if p, u, again := t.run(merged, req, now); again == nil {
			prompt, used, err = p, u, nil
		}
	}
	if used {
		clock = now
	}
	return prompt, clock, err
}

func (t *template) run(messages []model.Message, req *model.Request, now time.Time) (string, bool, error) {
	c := chatContext{BOS: t.bos, EOS: t.eos, Generation: true, Thinking: req.Thinking, Now: chatClock{
		Year: now.Year(), Month: int(now.Month()), Day: now.Day(), Hour: now.Hour(), Minute: now.Minute(),
		Second: now.Second(), Microsecond: now.Nanosecond() / 1000, Weekday: int(now.Weekday()), YearDay: now.YearDay(),
	}}
	for _, m := range messages {
		out := chatMessage{Role: string(m.Role), Content: m.Content, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID, Name: m.Name}
		if t.parts {
			out.Content = []chatPart{{"text", m.Content}}
		}
		for _, call := range m.ToolCalls {
			args := call.Arguments
			if len(args) == 0 {
				args = json.RawMessage("{}")
			}
			out.ToolCalls = append(out.ToolCalls, chatCall{"function", call.ID, chatFunction{call.Name, args}})
		}
		c.Messages = append(c.Messages, out)
	}
	for _, tool := range req.Tools {
		params := tool.Parameters
		if len(params) == 0 {
			params = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		c.Tools = append(c.Tools, chatTool{"function", chatToolSpec{tool.Name, tool.Description, params}})
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&c); err != nil {
		return "", false, err
	}
	return t.render(t.source, buf.Bytes())
}

// probe finds out whether content must come in parts: a template that drops
// a string prints the same text from a part.
func (t *template) probe() {
	const needle = "5f1c2b"
	req := &model.Request{Messages: []model.Message{{Role: model.User, Content: needle}}}
	plain, _, err := t.run(req.Messages, req, time.Unix(0, 0).UTC())
	if err != nil || !strings.Contains(plain, needle) {
		t.parts = true
		parts, _, err := t.run(req.Messages, req, time.Unix(0, 0).UTC())
		t.parts = err == nil && strings.Contains(parts, needle)
	}
	t.probeTools()
}
