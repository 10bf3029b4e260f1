package script_test

import (
	"context"
	"errors"
	"testing"

	"agentgraph/constraint"
	"agentgraph/model"
)

func compile(t *testing.T, kind constraint.Kind, src string, opt constraint.Options) *constraint.Constraint {
	t.Helper()
	c, err := constraint.Compile(constraint.Spec{Kind: kind, Source: []byte(src)}, opt)
	if errors.Is(err, constraint.ErrNotBuilt) {
		t.Skip("needs the native library")
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Under a mask the script wishes and the constraint decides.
func TestMask(t *testing.T) {
	if _, err := constraint.ByteVocabulary(); errors.Is(err, constraint.ErrNotBuilt) {
		t.Skip("needs the native library")
	}
	const (
		open   = `{"type":"object"}`
		closed = `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["n","s"],"additionalProperties":false}`
	)
	tests := []struct {
		name, script string
		kind         constraint.Kind
		src          string
		want         string
	}{
		{"as wished", `text: '{"n":12,"s":"a b"}'`, constraint.JSON, closed, `{"n":12,"s":"a b"}`},
		{"spaces outside strings go", "text: \"{\\n  \\\"n\\\": 12,\\n  \\\"s\\\": \\\"a b\\\"\\n}\"", constraint.JSON, closed, `{"n":12,"s":"a b"}`},
		{"prose", `text: 'Sure! Here you go.'`, constraint.JSON, closed, `{"n":0,"s":"Sure! Here you go."}`},
		{"ends first", `end_first: true`, constraint.JSON, closed, `{"n":0,"s":""}`},
		{"spaces", `spaces_forever: true`, constraint.JSON, `{"enum":["x y","z"]}`, `"x y"`},
		{"open object", `text: '{"q":[1,{"r":null}]}'`, constraint.JSON, open, `{"q":[1,{"r":null}]}`},
		{"forced text is written", `text: '7'`, constraint.Regex, `answer: [0-9]`, `answer: 7`},
		{"lark", `text: 'b c'`, constraint.Lark, "start: (\"a\" | \"b\") \" \" /[a-z]/\n", `b c`},
		{"llg", `text: 'no'`, constraint.LLG, `{"grammars":[{"lark_grammar":"start: \"yes\" | \"no\""}]}`, `no`},
		{"more than one byte a character", `text: 'né'`, constraint.Regex, `n[é-ü]`, `né`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			con := compile(t, tt.kind, tt.src, constraint.Options{})
			req := ask("x")
			req.Constraint = con
			req.Sampling.MaxTokens = 100
			resp, err := openScript(t, tt.script).Generate(context.Background(), req)
			if err != nil {
				t.Fatal(err)
			}
			if resp.Text != tt.want || resp.Finish != model.Stop || resp.EnforcedBy != constraint.ByMask {
				t.Errorf("got %q, %s, by %s, want %q", resp.Text, resp.Finish, resp.EnforcedBy, tt.want)
			}
		})
	}
}

func openScript(t *testing.T, reply string) model.Model {
	t.Helper()
	return open(t, "default:\n  "+reply+"\n")
}

// Without a mask the script says what it says, and claims no more than that.
func TestUnmasked(t *testing.T) {
	con := compile(t, constraint.JSON, `{"type":"integer"}`, constraint.Options{Enforce: constraint.EnforceValidate})
	for src, want := range map[string]constraint.EnforcedBy{
		"constraints: none\n":    "",
		"constraints: [regex]\n": "",
		"mask: false\n":          constraint.ByServerValidation,
	} {
		req := ask("x")
		req.Constraint = con
		resp, err := open(t, src+"default: {text: free}").Generate(context.Background(), req)
		if err != nil || resp.Text != "free" || resp.EnforcedBy != want {
			t.Errorf("%q: %+v, %v", src, resp, err)
		}
	}
}
