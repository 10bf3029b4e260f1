package plugin

import (
	"encoding/json"
	"fmt"

	"agentgraph/constraint"
	"agentgraph/internal/plainjson"
	"agentgraph/model"
)

// The request as AgentGraph writes it: the order of the keys and the nulls are
// its own. The keys at the end are ours and only there when they are set; a
// provider that does not know them passes over them.
type chatRequest struct {
	Type           string          `json:"type"`
	Messages       []chatMessage   `json:"messages"`
	Tools          []toolDef       `json:"tools"`
	ToolChoice     *string         `json:"tool_choice"`
	Constraint     *wireConstraint `json:"constraint"`
	EnableThinking bool            `json:"enable_thinking"`
	Model          *string         `json:"model"`
	MaxTokens      *int            `json:"max_tokens"`
	Temperature    float64         `json:"temperature"`
	TopP           *float64        `json:"top_p"`
	RequestID      uint64          `json:"request_id"`

	TopK int     `json:"top_k,omitempty"`
	MinP float64 `json:"min_p,omitempty"`
	Seed *uint64 `json:"seed,omitempty"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    []part     `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type toolDef struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// toolCall's arguments are JSON as text.
type toolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// wireConstraint has one of its fields set.
type wireConstraint struct {
	Schema  json.RawMessage `json:"schema"`
	Regex   *string         `json:"regex"`
	Grammar *string         `json:"grammar"`
	// LLG is ours: a TopLevelGrammar.
	LLG json.RawMessage `json:"llg,omitempty"`
}

// wire writes the request of one call.
func (m *Model) wire(req *model.Request) ([]byte, error) {
	s := req.Sampling
	out := chatRequest{Type: "chat", Messages: []chatMessage{}, Temperature: s.Temperature,
		TopK: s.TopK, MinP: s.MinP, Seed: s.Seed,
		EnableThinking: req.Thinking != nil && *req.Thinking}
	for _, msg := range req.Messages {
		c := chatMessage{Role: string(msg.Role), Content: []part{{"text", msg.Content}}, ToolCallID: msg.ToolCallID}
		for _, call := range msg.ToolCalls {
			c.ToolCalls = append(c.ToolCalls, toolCall{call.ID, call.Name, string(model.CompactArguments(call.Arguments))})
		}
		out.Messages = append(out.Messages, c)
	}
	for _, t := range req.Tools {
		params := t.Parameters
		if len(params) == 0 {
			params = json.RawMessage("{}")
		}
		out.Tools = append(out.Tools, toolDef{t.Name, t.Description, params})
	}
	if len(req.Tools) > 0 && req.NoCalls {
		none := "none"
		out.ToolChoice = &none
	}
	if m.cfg.Model != "" {
		out.Model = &m.cfg.Model
	}
	if s.MaxTokens > 0 {
		out.MaxTokens = &s.MaxTokens
	}
	if s.TopP > 0 {
		out.TopP = &s.TopP
	}
	if m.holds(req) {
		out.Constraint = constrain(req.Constraint.Spec())
	}
	data, err := plainjson.Marshal(out)
	if err != nil {
		return nil, err
	}
	if len(data) > requestBytes {
		return nil, fmt.Errorf("the request has %d bytes, more than a plug-in gets (%d)", len(data), requestBytes)
	}
	return data, nil
}

// holds reports whether the plug-in is asked to hold the promise.
func (m *Model) holds(req *model.Request) bool {
	return req.Constraint != nil && m.engine.Holds(req.Constraint.Spec().Kind)
}

func constrain(spec constraint.Spec) *wireConstraint {
	text := string(spec.Source)
	switch spec.Kind {
	case constraint.JSON:
		return &wireConstraint{Schema: spec.Source}
	case constraint.Regex:
		return &wireConstraint{Regex: &text}
	case constraint.Lark:
		return &wireConstraint{Grammar: &text}
	case constraint.LLG:
		return &wireConstraint{LLG: spec.Source}
	}
	return nil
}

// event is what a line says.
type event struct {
	kind byte // 'T', 'R', 'C', 'D', 'X'; 'E', 'K', 'H', 'I' answer other requests
	text []byte
}

// parseEvent reads a line; ok is false for one that is no event.
func parseEvent(line []byte) (e event, ok bool) {
	switch string(line) {
	case "D", "D:", "D:stop":
		return event{kind: 'D'}, true
	case "D:length": // ours: cut off by max_tokens
		return event{kind: 'D', text: line[2:]}, true
	}
	if len(line) < 2 || line[1] != ':' {
		return event{}, false
	}
	switch line[0] {
	case 'T', 'R', 'C', 'X', 'E', 'K', 'H', 'I':
		return event{line[0], line[2:]}, true
	}
	return event{}, false
}
