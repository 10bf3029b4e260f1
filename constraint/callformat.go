package constraint

import (
	"fmt"
	"slices"
	"strings"

	"agentgraph/constraint/internal/jsontree"
)

// CallFormat is how a model writes the call of a tool into its text. Chat
// templates differ in it.
type CallFormat string

// The formats. NAME and ARGS stand for the tool and its arguments.
const (
	// HermesCalls: <tool_call>, a line {"name": NAME, "arguments": ARGS},
	// </tool_call>. Hermes, Qwen and many others.
	HermesCalls CallFormat = "hermes"
	// LlamaCalls: {"name": NAME, "parameters": ARGS}. Llama 3.
	LlamaCalls CallFormat = "llama"
	// MistralCalls: [TOOL_CALLS][{"name": NAME, "arguments": ARGS}].
	MistralCalls CallFormat = "mistral"
	// MistralArgsCalls: [TOOL_CALLS]NAME[ARGS]ARGS. Mistral from 2025 on.
	MistralArgsCalls CallFormat = "mistral-args"
)

// CallFormats lists the formats.
var CallFormats = []CallFormat{HermesCalls, LlamaCalls, MistralCalls, MistralArgsCalls}

// ParseCallFormat reads the name of a format.
func ParseCallFormat(name string) (CallFormat, error) {
	if f := CallFormat(name); slices.Contains(CallFormats, f) {
		return f, nil
	}
	names := make([]string, len(CallFormats))
	for i, f := range CallFormats {
		names[i] = string(f)
	}
	return "", fmt.Errorf("%q is no format of tool calls; there are %s", name, strings.Join(names, ", "))
}

// Opener is what every call begins with.
func (f CallFormat) Opener() string {
	switch f {
	case LlamaCalls:
		return `{"name"`
	case MistralCalls, MistralArgsCalls:
		return "[TOOL_CALLS]"
	}
	return "<tool_call>"
}

// Marks are the parts of a call that are control tokens in vocabularies that
// have them under these names. Where a vocabulary has one, a call is written
// with the token, as the model learnt it, and not with its name spelled out;
// the text of the call is the same.
func (f CallFormat) Marks() []string {
	switch f {
	case HermesCalls:
		return []string{"<tool_call>", "</tool_call>"}
	case MistralCalls:
		return []string{"[TOOL_CALLS]"}
	case MistralArgsCalls:
		return []string{"[TOOL_CALLS]", "[ARGS]"}
	}
	return nil
}

// Around is what stands before and after the arguments in the call of a tool.
func (f CallFormat) Around(tool string) (before, after string) {
	name := jsontree.Quote(tool)
	switch f {
	case LlamaCalls:
		return `{"name": ` + name + `, "parameters": `, "}"
	case MistralCalls:
		return `[TOOL_CALLS][{"name": ` + name + `, "arguments": `, "}]"
	case MistralArgsCalls:
		return "[TOOL_CALLS]" + tool + "[ARGS]", ""
	}
	return "<tool_call>\n{\"name\": " + name + `, "arguments": `, "}\n</tool_call>"
}

// Result writes what a tool returned, for chat templates that know no tools.
func (f CallFormat) Result(text string) string {
	return "<tool_response>\n" + text + "\n</tool_response>"
}
