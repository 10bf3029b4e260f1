//go:build cgo && !nonative

package local

import (
	"encoding/json"
	"strings"
	"testing"

	"agentgraph/constraint"
	"agentgraph/model"
)

// A model whose vocabulary has control tokens for calls writes them, and the
// call is read from its text. The small model has none: two special tokens
// that it never uses get the names.
func TestCallsWithControlTokens(t *testing.T) {
	l, err := open(Config{Path: testModel(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	format := constraint.MistralArgsCalls
	renamed := map[string]int32{}
	for id, special := range l.tokens.special {
		if n := len(renamed); special && n < len(format.Marks()) && !l.engine.tokens.isEnd(int32(id)) && int32(id) != l.tokens.bos && strings.Contains(string(l.tokens.pieces[id]), "jupyter") {
			name := format.Marks()[n]
			l.tokens.pieces[id] = append([]byte{0xFF}, name...)
			renamed[name] = int32(id)
		}
	}
	if len(renamed) != 2 {
		t.Fatalf("renamed %v", renamed)
	}
	bound, err := constraint.NewVocabulary(constraint.VocabularyConfig{Tokens: l.tokens.pieces, EOS: l.tokens.ends, Greedy: true})
	if err != nil {
		t.Fatal(err)
	}
	defer bound.Close()
	l.vocab = func() (*vocabulary, error) { return &vocabulary{bound: bound}, nil }

	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":99},"b":{"type":"integer","minimum":0,"maximum":99}},"required":["a","b"],"additionalProperties":false}`)
	tools := []model.Tool{{Name: "add", Description: "Adds two numbers.", Parameters: schema}}
	args := compile(t, constraint.JSON, string(schema))
	both, err := constraint.WithCalls(compile(t, constraint.Regex, "zq"), format, []constraint.ToolSchema{{Name: "add", Arguments: args}})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for seed := uint64(0); seed < 60 && seen < 3; seed++ {
		var shown strings.Builder
		req := &model.Request{Tools: tools, CallFormat: format, Constraint: both, Messages: ask("Use the tool add.", "What is 17 + 25?"),
			Sampling: model.Sampling{Temperature: 50, Seed: &seed, MaxTokens: 64},
			Progress: func(p model.Progress) { shown.WriteString(p.Text) }}
		resp := generate(t, l, req)
		if len(resp.ToolCalls) == 0 {
			if strings.Contains(shown.String(), "[") {
				t.Errorf("no call in %q", shown.String())
			}
			continue
		}
		seen++
		c := resp.ToolCalls[0]
		if v := args.Validate(t.Context(), string(c.Arguments)); c.Name != "add" || !v.Valid || resp.Text != "" || resp.Finish != model.FinishToolUse {
			t.Errorf("the reply is %+v, its text %q", c, resp.Text)
		}
		if !strings.HasPrefix(shown.String(), "[TOOL_CALLS]add[ARGS]{") {
			t.Errorf("what was shown is %q", shown.String())
		}
		// The marks are one token each.
		if n := *resp.Usage.OutputTokens; n > 40 {
			t.Errorf("the call has %d tokens", n)
		}
	}
	if seen == 0 {
		t.Error("no seed made a call")
	}
	// With its tools shown and no call allowed, the marks are nothing.
	alone, err := constraint.WithCalls(nil, format, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp := generate(t, l, &model.Request{Tools: tools, NoCalls: true, CallFormat: format, Constraint: alone,
		Messages: ask("Be brief.", "Say hello."), Sampling: model.Sampling{MaxTokens: 16}})
	if strings.Contains(resp.Text, "[TOOL_CALLS]") || len(resp.ToolCalls) > 0 {
		t.Errorf("the reply is %+v", resp)
	}
}
