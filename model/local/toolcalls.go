package local

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// probeTools finds out whether the template shows tools, calls and results.
func (t *template) probeTools() {
	const tool, arg, result = "q7tool", "q7argument", "q7result"
	req := &model.Request{
		Tools: []model.Tool{{Name: tool, Description: "d", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}},
		Messages: []model.Message{
			{Role: model.System, Content: "s"}, {Role: model.User, Content: "u"},
			{Role: model.Assistant, ToolCalls: []model.ToolCall{{ID: "call00001", Name: tool, Arguments: json.RawMessage(`{"x":"` + arg + `"}`)}}},
			{Role: model.ToolRole, Content: result, ToolCallID: "call00001", Name: tool},
		},
	}
	text, _, err := t.run(req.Messages, req, time.Unix(0, 0).UTC())
	// Once among the tools and once in the call.
	t.tools = err == nil && strings.Count(text, tool) >= 2 && strings.Contains(text, arg) && strings.Contains(text, result)
}

// writes reports that calls stand in the template's text in this format.
func (t *template) writes(f constraint.CallFormat) bool {
	return f == "" || f == model.DetectCallFormat(t.source)
}

// toolsAsText is the conversation of a request for a template that knows no
// tools: what they are stands at the end of the system message, calls and
// results are plain messages.
func toolsAsText(req *model.Request) []model.Message {
	format := req.CallFormat
	if format == "" {
		format = constraint.HermesCalls
	}
	guide := toolGuide(format, req.Tools)
	var out []model.Message
	messages := req.Messages
	if len(messages) > 0 && messages[0].Role == model.System {
		first := messages[0]
		first.Content += "\n\n" + guide
		out, messages = append(out, first), messages[1:]
	} else {
		out = append(out, model.Message{Role: model.System, Content: guide})
	}
	for i, m := range messages {
		switch {
		case m.Role == model.ToolRole:
			text := format.Result(m.Content)
			if i > 0 && messages[i-1].Role == model.ToolRole {
				out[len(out)-1].Content += "\n" + text
				continue
			}
			out = append(out, model.Message{Role: model.User, Content: text})
		case len(m.ToolCalls) > 0:
			text := m.Content
			for _, c := range m.ToolCalls {
				if text != "" {
					text += "\n"
				}
				text += model.WriteCall(format, c)
			}
			out = append(out, model.Message{Role: m.Role, Content: text, Reasoning: m.Reasoning})
		default:
			out = append(out, m)
		}
	}
	return out
}

// toolGuide tells a model of the tools and how to call one.
func toolGuide(f constraint.CallFormat, tools []model.Tool) string {
	var b strings.Builder
	b.WriteString("You can call tools. These are the tools, each as a JSON object on a line:\n")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, t := range tools {
		t.Parameters = compactJSON(t.Parameters)
		_ = enc.Encode(t) // names, texts and valid JSON
	}
	before, after := f.Around("TOOL")
	b.WriteString("To call a tool, reply with its name and its arguments as JSON in this form, and nothing else:\n")
	b.WriteString(before + "{ARGUMENTS}" + after)
	b.WriteString("\nThe result comes in the next message. When you need no tool, reply with your answer.")
	return b.String()
}

func compactJSON(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return json.RawMessage("{}")
	}
	return b.Bytes()
}
