package turn_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/tools"
	"agentgraph/turn"
)

// A server without a reasoning parser sends thoughts as text. They are kept in
// the record and are no part of the answer, however the pieces arrive.
func TestThoughtsInTheText(t *testing.T) {
	for _, tt := range []struct {
		name, says, text, thought string
		kind                      constraint.Kind
		src                       string
		fails                     bool
	}{
		{name: "free", says: "<think>\nhm, <b>?\n</think>\n\nIt is 3.", text: "It is 3.", thought: "hm, <b>?"},
		{name: "blanks before", says: "\n <think>hm</think>yes </think>", text: "yes </think>", thought: "hm"},
		{name: "nothing thought", says: "<think>\n\n</think>\n\nyes", text: "yes"},
		{name: "no thought", says: "<thin ice> and <think>", text: "<thin ice> and <think>"},
		{name: "a beginning of one", says: "<thi", text: "<thi"},
		{name: "it does not end", says: "<think>hm, wait </thi", text: "", thought: "hm, wait </thi"},
		{name: "shaped", says: `<think>{"sum": 1}?</think>{"sum": 42}`, text: `{"sum": 42}`, thought: `{"sum": 1}?`, kind: constraint.JSON, src: sumSchema},
		{name: "shaped and wrong", says: `<think>hm</think>no`, text: "no", thought: "hm", kind: constraint.JSON, src: sumSchema, fails: true},
		{name: "the promise is about it", says: `<think>a</think>b`, text: `<think>a</think>b`, kind: constraint.Regex, src: `<think>.*`},
	} {
		for _, size := range []int{1, 3, 100} {
			t.Run(fmt.Sprintf("%s by %d", tt.name, size), func(t *testing.T) {
				says, _ := json.Marshal(tt.says)
				m := scripted(t, fmt.Sprintf("constraints: none\ntoken_bytes: %d\ndefault: {text: %s}\n", size, says))
				var shown, thought strings.Builder
				req := &turn.Request{User: "x", Model: m, ConstraintOptions: validate,
					Progress: func(p model.Progress) { shown.WriteString(p.Text); thought.WriteString(p.Reasoning) }}
				if tt.kind != "" {
					req.Spec = spec(tt.kind, tt.src)
					if tt.kind != constraint.JSON {
						native(t)
					}
				}
				rec := run(t, t.Context(), req)
				if _, ok := rec.Answer(); ok == tt.fails || *rec.Outcome.Output != tt.text || rec.Outcome.Reasoning != tt.thought {
					t.Fatalf("text %q, reasoning %q, %v", *rec.Outcome.Output, rec.Outcome.Reasoning, rec.Error)
				}
				if tt.kind != constraint.Regex && (shown.String() != tt.text || strings.TrimSpace(thought.String()) != tt.thought) {
					t.Errorf("shown %q and %q", shown.String(), thought.String())
				}
			})
		}
	}
}

// The same before a call of a tool.
func TestThoughtsBeforeCalls(t *testing.T) {
	m := scripted(t, "tools: true\nconstraints: none\nreplies:\n  - match: sum\n    text: '<think>I add</think>So:'\n    tool_calls: [{name: add, arguments: {a: 1, b: 2}}]\n  - tool_result: '3'\n    text: '<think>3, then</think>three'\n")
	rec := run(t, t.Context(), &turn.Request{User: "sum", Model: m, Tools: []tools.Config{adder(t)}})
	file, _ := rec.FileText()
	if want := "three\n\n" + `{"id":"call00001","name":"add","arguments":{"a":1,"b":2}}` + "\n"; file != want {
		t.Errorf("the file holds %q, want %q", file, want)
	}
	if r := rec.ToolRounds; len(r) != 1 || r[0] != (record.ToolRound{Calls: 1, Text: "So:", Reasoning: "I add"}) || rec.Outcome.Reasoning != "3, then" {
		t.Errorf("%+v, %q", r, rec.Outcome.Reasoning)
	}
}
