//go:build cgo && !nonative

package local

import (
	"testing"

	"agentgraph/constraint"
	"agentgraph/model"
)

func TestFreeTextGreedy(t *testing.T) {
	m := sharedModel(t, Config{Context: 1024})
	req := &model.Request{Messages: ask("You are helpful.", "Name three colours."), Sampling: model.Sampling{MaxTokens: 48}, Solo: true}
	first := generate(t, m, req)
	if first.Text == "" {
		t.Fatal("no text")
	}
	t.Logf("%q %+v", first.Text, first.Stats)
	for range 2 {
		if again := generate(t, m, req); again.Text != first.Text {
			t.Errorf("got %q and %q", first.Text, again.Text)
		}
	}
}

func TestFourKinds(t *testing.T) {
	m := sharedModel(t, Config{Context: 1024})
	for _, tt := range []struct {
		kind   constraint.Kind
		source string
	}{
		{constraint.JSON, `{"type":"object","properties":{"rating":{"type":"integer","minimum":1,"maximum":5},"reasoning":{"type":"string","maxLength":60}},"required":["rating","reasoning"],"additionalProperties":false}`},
		{constraint.Regex, `[A-Z][a-z]{2,12}( [a-z]{2,12}){1,4}\.`},
		{constraint.Lark, "start: verdict \" because \" REASON\nverdict: \"good\" | \"bad\"\nREASON: /[a-z ]{3,30}/\n"},
		{constraint.LLG, `{"grammars":[{"lark_grammar":"start: \"yes\" | \"no\"\n"}]}`},
	} {
		t.Run(string(tt.kind), func(t *testing.T) {
			c := compile(t, tt.kind, tt.source)
			r := generate(t, m, &model.Request{Messages: ask("You review kettles.", "The kettle leaks."), Constraint: c, Sampling: model.Sampling{MaxTokens: 120}})
			t.Logf("%q %s %+v", r.Text, r.Finish, r.Stats)
			if v := c.Validate(t.Context(), r.Text); !v.Valid {
				t.Errorf("%q is not valid: %+v", r.Text, v.Diagnostics)
			}
			if r.Finish != model.Stop {
				t.Errorf("finish is %q", r.Finish)
			}
		})
	}
}
