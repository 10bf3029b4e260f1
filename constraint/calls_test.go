package constraint_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentgraph/constraint"
)

const addSchema = `{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`

func toolSchemas(t *testing.T) []constraint.ToolSchema {
	t.Helper()
	var list []constraint.ToolSchema
	for _, x := range []struct{ name, schema string }{
		{"add", addSchema},
		{"say", `{"type":"object","properties":{"text":{"type":"string"},"loud":{"type":"boolean"}},"required":["text","loud"],"additionalProperties":false}`},
	} {
		list = append(list, constraint.ToolSchema{Name: x.name, Arguments: compile(t, constraint.JSON, x.schema)})
	}
	return list
}

func compile(t *testing.T, kind constraint.Kind, src string) *constraint.Constraint {
	t.Helper()
	c, err := constraint.Compile(constraint.Spec{Kind: kind, Source: []byte(src)}, constraint.Options{})
	if errors.Is(err, constraint.ErrNotBuilt) {
		t.Skip("needs the native library")
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func withCalls(t *testing.T, answer *constraint.Constraint, f constraint.CallFormat, tools []constraint.ToolSchema) *constraint.Constraint {
	t.Helper()
	c, err := constraint.WithCalls(answer, f, tools)
	if errors.Is(err, constraint.ErrNotBuilt) {
		t.Skip("needs the native library")
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// accepts follows text byte by byte and reports whether it may end there.
func accepts(t *testing.T, c *constraint.Constraint, text string) bool {
	t.Helper()
	v, err := constraint.ByteVocabulary()
	if err != nil {
		t.Skip(err)
	}
	m, err := c.NewMatcher(v)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	mask := make([]uint32, v.MaskWords())
	for i := range len(text) {
		if m.Stopped() {
			return false
		}
		if err := m.Mask(mask); err != nil {
			t.Fatal(err)
		}
		b := uint32(text[i])
		if mask[b/32]&(1<<(b%32)) == 0 {
			return false
		}
		if err := m.Accept(b); err != nil {
			t.Fatal(err)
		}
	}
	return m.Accepting()
}

func TestCallOrAnswer(t *testing.T) {
	answers := []struct {
		name      string
		kind      constraint.Kind // "": free text
		src       string
		good, bad []string
	}{
		{"json", constraint.JSON, `{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}`,
			[]string{`{"sum":3}`}, []string{`{"sum":"3"}`, "3", "hello", ""}},
		{"regex", constraint.Regex, `[a-z/]+(\n[0-9]{2})?`, []string{"ab/c", "a\n12"}, []string{"A", "a\n1", ""}},
		{"lark", constraint.Lark, "start: \"yes\" | num\nnum: /[0-9]+/\n", []string{"yes", "42"}, []string{"no", ""}},
		{"llg", constraint.LLG, `{"grammars":[{"lark_grammar":"start: \"x\" @more"},{"name":"more","json_schema":{"enum":["q"]}}]}`, []string{`x"q"`}, []string{"x", `"q"`}},
		{"llg that has names", constraint.LLG, `{"grammars":[{"name":"top","lark_grammar":"start: \"x\""}]}`, []string{"x"}, []string{"y"}},
		{"free", "", "", []string{"", "hello\nworld", "<tool", "a {\"name\": 1}", "see <tool_call> there", "  x"}, nil},
	}
	for _, format := range constraint.CallFormats {
		call := func(name, args string) string {
			before, after := format.Around(name)
			return before + args + after
		}
		for _, a := range answers {
			t.Run(fmt.Sprintf("%s/%s", format, a.name), func(t *testing.T) {
				tools := toolSchemas(t)
				var answer *constraint.Constraint
				if a.kind != "" {
					answer = compile(t, a.kind, a.src)
				}
				both, alone := withCalls(t, answer, format, tools), withCalls(t, answer, format, nil)
				for _, text := range a.good {
					if !accepts(t, both, text) || !accepts(t, alone, text) {
						t.Errorf("the answer %q is refused", text)
					}
				}
				for _, text := range a.bad {
					if accepts(t, both, text) || accepts(t, alone, text) {
						t.Errorf("%q passes as an answer", text)
					}
				}
				for _, text := range []string{
					call("add", `{"b": 2, "a": 1}`), call("add", `{"a": 1}`), call("say", `{"text": "x: <y>", "loud": true}`),
				} {
					if !accepts(t, both, text) {
						t.Errorf("the call %q is refused", text)
					}
					if accepts(t, alone, text) {
						t.Errorf("the call %q passes where the answer alone is wanted", text)
					}
				}
				for _, text := range []string{
					call("sub", `{"a": 1}`), call("add", `{"a": "1"}`), call("add", `{}`), call("add", `{"a": 1, "c": 2}`),
					call("add", `{"a": 1}`) + call("add", `{"a": 1}`), call("add", `{"a": 1}`) + " so", format.Opener(), format.Opener() + " prose", "\n" + format.Opener() + "x",
				} {
					if accepts(t, both, text) {
						t.Errorf("%q passes", text)
					}
				}
			})
		}
	}
}

// An answer that could not be told from a call is refused, not narrowed.
func TestAnswersLikeCalls(t *testing.T) {
	for _, tt := range []struct {
		format constraint.CallFormat
		kind   constraint.Kind
		src    string
		good   string // "": refused
	}{
		{constraint.HermesCalls, constraint.Lark, "start: \"<\" /[a-z]+/ \">\"\n", ""},
		{constraint.LlamaCalls, constraint.Lark, "start: \"<\" /[a-z]+/ \">\"\n", "<table>"},
		{constraint.HermesCalls, constraint.Regex, "<[a-z]+>", "<table>"},
		{constraint.LlamaCalls, constraint.JSON, `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`, `{"name":"add"}`},
		{constraint.LlamaCalls, constraint.JSON, `{"type":"object"}`, `{"nam":1,"name":"add"}`},
		{constraint.MistralCalls, constraint.JSON, `{"type":"array"}`, `["T"]`},
	} {
		both, err := constraint.WithCalls(compile(t, tt.kind, tt.src), tt.format, toolSchemas(t))
		if errors.Is(err, constraint.ErrNotBuilt) {
			t.Skip("needs the native library")
		}
		switch {
		case tt.good == "" && (err == nil || !strings.Contains(err.Error(), "take another tool_format")):
			t.Errorf("%s with %q: %v", tt.format, tt.src, err)
		case tt.good != "" && err != nil:
			t.Errorf("%s with %q: %v", tt.format, tt.src, err)
		case tt.good != "" && !accepts(t, both, tt.good):
			t.Errorf("%s with %q: %q is refused", tt.format, tt.src, tt.good)
		}
	}
}

// A number in a call ends like a number in an answer.
func TestNumbersInCallsEnd(t *testing.T) {
	for _, kind := range []string{"free", "json"} {
		var answer *constraint.Constraint
		if kind == "json" {
			answer = compile(t, constraint.JSON, `{"type":"object","properties":{"n":{"type":"number"}},"required":["n"],"additionalProperties":false}`)
		}
		both := withCalls(t, answer, constraint.HermesCalls, toolSchemas(t))
		before, after := constraint.HermesCalls.Around("add")
		if !accepts(t, both, before+`{"a": 12345678901234567}`+after) {
			t.Errorf("%s: 17 digits are refused", kind)
		}
		if accepts(t, both, before+`{"a": 123456789012345678}`+after) {
			t.Errorf("%s: 18 digits pass", kind)
		}
	}
	free := withCalls(t, nil, constraint.HermesCalls, toolSchemas(t))
	if !accepts(t, free, strings.Repeat("1", 40)) {
		t.Error("digits in free text are capped")
	}
}

func TestCallFormatNames(t *testing.T) {
	for _, f := range constraint.CallFormats {
		if got, err := constraint.ParseCallFormat(string(f)); err != nil || got != f {
			t.Errorf("%s: %v, %v", f, got, err)
		}
	}
	if _, err := constraint.ParseCallFormat("hermit"); err == nil {
		t.Error("hermit is a format")
	}
}
