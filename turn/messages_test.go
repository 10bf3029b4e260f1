package turn

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/model"
)

func TestMessages(t *testing.T) {
	spec := func(kind constraint.Kind, src string) *constraint.Spec {
		return &constraint.Spec{Kind: kind, Source: []byte(src)}
	}
	system := func(s string) model.Message { return model.Message{Role: model.System, Content: s} }
	user := func(s string) model.Message { return model.Message{Role: model.User, Content: s} }
	answer := func(s string) model.Message { return model.Message{Role: model.Assistant, Content: s} }
	tests := []struct {
		name string
		req  Request
		want []model.Message
	}{
		{"only an input", Request{User: "hi\n"}, []model.Message{user("hi\n")}},
		{"parts and prompt", Request{System: []string{"a", "b\n\n"}, Prompt: "c\r\n", User: "hi"},
			[]model.Message{system("a\n\nb\n\nc"), user("hi")}},
		{"empty parts leave no gap", Request{System: []string{"", "a", "\n"}, User: "hi"},
			[]model.Message{system("a"), user("hi")}},
		{"leading space stays", Request{System: []string{"\n a \n"}, User: " hi "},
			[]model.Message{system("\n a "), user(" hi ")}},
		{"history", Request{Prompt: "p", History: []Exchange{{"q1", "a1"}, {"q2", "a2"}}, User: "q3"},
			[]model.Message{system("p"), user("q1"), answer("a1"), user("q2"), answer("a2"), user("q3")}},
		{"schema not in the prompt", Request{Spec: spec(constraint.JSON, "{}"), User: "hi"}, []model.Message{user("hi")}},
		{"schema in the prompt without a schema", Request{SchemaInPrompt: true, User: "hi"}, []model.Message{user("hi")}},
		{"json", Request{Prompt: "p", SchemaInPrompt: true, Spec: spec(constraint.JSON, "{\n  \"type\": \"object\"\n}\n"), User: "hi"},
			[]model.Message{system("p\n\nAnswer with one JSON value and nothing else. It must be valid against this JSON Schema:\n{\n  \"type\": \"object\"\n}"), user("hi")}},
		{"regex", Request{SchemaInPrompt: true, Spec: spec(constraint.Regex, `[A-Z]+`), User: "hi"},
			[]model.Message{system("Answer with text that matches this regular expression from its first to its last character, and nothing else:\n[A-Z]+"), user("hi")}},
		{"lark", Request{SchemaInPrompt: true, Spec: spec(constraint.Lark, "start: \"x\"\n"), User: "hi"},
			[]model.Message{system("Answer with text that follows this Lark grammar, and nothing else:\nstart: \"x\""), user("hi")}},
		{"llg", Request{SchemaInPrompt: true, Spec: spec(constraint.LLG, `{"grammars":[]}`), User: "hi"},
			[]model.Message{system("Answer with text that follows this llguidance grammar, and nothing else:\n{\"grammars\":[]}"), user("hi")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Messages(&tt.req)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMessagesLeavesTheRequestAlone(t *testing.T) {
	system := make([]string, 1, 8)
	system[0] = "a\n"
	req := Request{System: system, Prompt: "p", User: "u"}
	Messages(&req)
	if got := system[:2][1]; got != "" || system[0] != "a\n" {
		t.Errorf("the request's parts are now %q", system[:2])
	}
}
