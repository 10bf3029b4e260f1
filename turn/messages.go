package turn

import (
	"strings"

	"agentgraph/constraint"
	"agentgraph/model"
)

// The fixed first line of the schema paragraph; a line feed and the
// constraint's source follow. These bytes are part of SCHEMA.md: a change
// breaks everybody who rebuilds a prompt.
const (
	jsonParagraph  = "Answer with one JSON value and nothing else. It must be valid against this JSON Schema:"
	regexParagraph = "Answer with text that matches this regular expression from its first to its last character, and nothing else:"
	larkParagraph  = "Answer with text that follows this Lark grammar, and nothing else:"
	llgParagraph   = "Answer with text that follows this llguidance grammar, and nothing else:"
)

// Messages returns the conversation a turn starts with: one system message
// unless it would be empty, the history, and the user's text.
//
// The system message is, each after one blank line: the system parts in
// order, the text of `prompt:`, the guidance of the tools in the order of
// `tools:`, and the schema paragraph. Trailing line ends of each are trimmed,
// and an empty one is left out.
func Messages(req *Request, guidance ...string) []model.Message {
	parts := append([]string(nil), req.System...)
	parts = append(parts, req.Prompt)
	parts = append(parts, guidance...)
	if req.SchemaInPrompt && req.Spec != nil {
		parts = append(parts, SchemaParagraph(*req.Spec))
	}
	var msgs []model.Message
	if system := joinParts(parts); system != "" {
		msgs = append(msgs, model.Message{Role: model.System, Content: system})
	}
	for _, e := range req.History {
		msgs = append(msgs,
			model.Message{Role: model.User, Content: e.User},
			model.Message{Role: model.Assistant, Content: e.Answer})
	}
	return append(msgs, model.Message{Role: model.User, Content: req.User})
}

// SchemaParagraph is the paragraph that tells a model what its answer is held
// to: one fixed line for the kind, and the source.
func SchemaParagraph(spec constraint.Spec) string {
	var line string
	switch spec.Kind {
	case constraint.JSON:
		line = jsonParagraph
	case constraint.Regex:
		line = regexParagraph
	case constraint.Lark:
		line = larkParagraph
	case constraint.LLG:
		line = llgParagraph
	default:
		// An unknown kind is refused before a prompt is sent.
		return ""
	}
	return line + "\n" + trimLineEnds(string(spec.Source))
}

func joinParts(parts []string) string {
	var kept []string
	for _, p := range parts {
		if p = trimLineEnds(p); p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n\n")
}

func trimLineEnds(s string) string { return strings.TrimRight(s, "\r\n") }
