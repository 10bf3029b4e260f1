package model

import (
	"bytes"
	"encoding/json"
	"strings"

	"agentgraph/constraint"
)

// DetectCallFormat finds out from a chat template how its model writes calls.
// A template that says nothing is taken as Hermes: the format most models
// have seen.
func DetectCallFormat(template string) constraint.CallFormat {
	has := func(s string) bool { return strings.Contains(template, s) }
	switch {
	case has("[TOOL_CALLS]") && has("[ARGS]"):
		return constraint.MistralArgsCalls
	case has("[TOOL_CALLS]"):
		return constraint.MistralCalls
	case has("<tool_call>"):
		return constraint.HermesCalls
	case has("<|python_tag|>"), has("ipython") && has(`"parameters"`):
		return constraint.LlamaCalls
	}
	return constraint.HermesCalls
}

// WriteCall writes a call as the model would.
func WriteCall(f constraint.CallFormat, c ToolCall) string {
	args := string(c.Arguments)
	if args == "" {
		args = "{}"
	}
	before, after := f.Around(c.Name)
	return before + args + after
}

// ParseCall reads a text that is one call of one of the tools and nothing
// else; ok is false for every other text.
func ParseCall(f constraint.CallFormat, text string, tools []Tool) (call ToolCall, ok bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, f.Opener()) {
		return ToolCall{}, false
	}
	for _, t := range tools {
		before, after := f.Around(t.Name)
		args, found := strings.CutPrefix(text, before)
		if !found {
			continue
		}
		if args, found = strings.CutSuffix(args, after); !found {
			continue
		}
		if args = strings.TrimSpace(args); isObject(args) {
			return ToolCall{Name: t.Name, Arguments: json.RawMessage(args)}, true
		}
	}
	return ToolCall{}, false
}

func isObject(s string) bool {
	return strings.HasPrefix(s, "{") && json.Valid([]byte(s))
}

// CompactArguments is arguments as one line without spaces.
func CompactArguments(args json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(args) == 0 || json.Compact(&b, args) != nil {
		return json.RawMessage("{}")
	}
	return b.Bytes()
}
