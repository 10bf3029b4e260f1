package constraint_test

import (
	"strings"
	"testing"

	"agentgraph/constraint"
)

// withMarks is a vocabulary of single bytes, an end token (256) and special
// tokens of these names from 257 on.
func withMarks(t *testing.T, names ...string) *constraint.Vocabulary {
	t.Helper()
	cfg := constraint.VocabularyConfig{EOS: []uint32{256}, Greedy: true}
	for i := range 256 {
		cfg.Tokens = append(cfg.Tokens, []byte{byte(i)})
	}
	cfg.Tokens = append(cfg.Tokens, []byte("\xff<end>"))
	for _, n := range names {
		cfg.Tokens = append(cfg.Tokens, []byte("\xff"+n))
	}
	v, err := constraint.NewVocabulary(cfg)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(v.Close)
	return v
}

// follow feeds tokens and reports after how many the mask refused one, and
// whether the text may end after the last.
func follow(t *testing.T, c *constraint.Constraint, v *constraint.Vocabulary, tokens []uint32) (n int, ends bool) {
	t.Helper()
	m, err := c.NewMatcher(v)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	mask := make([]uint32, v.MaskWords())
	for i, id := range tokens {
		if m.Stopped() {
			return i, false
		}
		if err := m.Mask(mask); err != nil {
			t.Fatal(err)
		}
		if mask[id/32]&(1<<(id%32)) == 0 {
			return i, false
		}
		if err := m.Accept(id); err != nil {
			t.Fatal(err)
		}
	}
	return len(tokens), m.Accepting()
}

// tokensOf cuts a text into bytes and the marks in it.
func tokensOf(text string, marks ...string) []uint32 {
	var out []uint32
	for text != "" {
		id, n := uint32(text[0]), 1
		for i, m := range marks {
			if strings.HasPrefix(text, m) {
				id, n = uint32(257+i), len(m)
			}
		}
		out, text = append(out, id), text[n:]
	}
	return out
}

// Where a vocabulary has control tokens for a call, it is written with them,
// and its name spelled out is no call.
func TestCallsWithControlTokens(t *testing.T) {
	answers := map[string]*constraint.Constraint{
		"json":  compile(t, constraint.JSON, `{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}`),
		"regex": compile(t, constraint.Regex, "[a-z]+"),
		"free":  nil,
	}
	tools := toolSchemas(t)
	for _, format := range constraint.CallFormats {
		marks := format.Marks()
		v := withMarks(t, marks...)
		before, after := format.Around("add")
		for name, answer := range answers {
			c := withCalls(t, answer, format, tools)
			call := before + `{"b": 2, "a": 1}` + after
			if n, ends := follow(t, c, v, tokensOf(call, marks...)); !ends {
				t.Errorf("%s, %s: the call %q breaks off after %d tokens", format, name, call, n)
			}
			if len(marks) > 0 {
				if n, ends := follow(t, c, v, tokensOf(call)); ends {
					t.Errorf("%s, %s: the call spelled out is allowed up to its end (%d)", format, name, n)
				}
				// A mark that is no opener is nothing a text begins with.
				for i, m := range marks[1:] {
					if n, _ := follow(t, c, v, []uint32{uint32(258 + i)}); n != 0 {
						t.Errorf("%s, %s: a text may begin with %s", format, name, m)
					}
				}
				bad := before + `{"b": "x"}` + after
				if _, ends := follow(t, c, v, tokensOf(bad, marks...)); ends {
					t.Errorf("%s, %s: wrong arguments are allowed", format, name)
				}
			}
		}
		if n, ends := follow(t, withCalls(t, nil, format, tools), v, tokensOf("[a] text <b>")); !ends {
			t.Errorf("%s: free text breaks off after %d tokens", format, n)
		}
		// The answer alone has no place for them.
		for id := range marks {
			if n, _ := follow(t, withCalls(t, nil, format, nil), v, []uint32{uint32(257 + id)}); n != 0 {
				t.Errorf("%s: free text without tools may begin with %s", format, marks[id])
			}
		}
		// Without the tokens it is spelled out, as before.
		if n, ends := follow(t, withCalls(t, nil, format, tools), withMarks(t), tokensOf(before+`{"a": 1}`+after)); !ends {
			t.Errorf("%s: the call spelled out breaks off after %d tokens", format, n)
		}
	}
}

// Numbers in the arguments of such a call end, too.
func TestNumbersInCallsWithControlTokens(t *testing.T) {
	tool := constraint.ToolSchema{Name: "set", Arguments: compile(t, constraint.JSON, `{"type":"object","properties":{"x":{"type":"number"}},"required":["x"],"additionalProperties":false}`)}
	for _, format := range []constraint.CallFormat{constraint.MistralCalls, constraint.MistralArgsCalls} {
		marks := format.Marks()
		v := withMarks(t, marks...)
		c := withCalls(t, nil, format, []constraint.ToolSchema{tool})
		before, after := format.Around("set")
		n, _ := follow(t, c, v, tokensOf(before+`{"x": 1.`+strings.Repeat("1", 40)+"}"+after, marks...))
		if room := n - len(tokensOf(before+`{"x": `, marks...)); room < 10 || room > 20 {
			t.Errorf("%s: a number has %d characters", format, room)
		}
	}
}

// The name of a tool is never taken for a mark.
func TestToolNamedLikeAMark(t *testing.T) {
	args := compile(t, constraint.JSON, `{"type":"object","properties":{},"additionalProperties":false}`)
	format := constraint.MistralArgsCalls
	marks := format.Marks()
	v := withMarks(t, marks...)
	c := withCalls(t, nil, format, []constraint.ToolSchema{{Name: "x[ARGS]y", Arguments: args}})
	tokens := append(tokensOf("[TOOL_CALLS]", marks...), tokensOf("x[ARGS]y")...)
	tokens = append(append(tokens, tokensOf("[ARGS]", marks...)...), tokensOf("{}")...)
	if n, ends := follow(t, c, v, tokens); !ends {
		t.Errorf("the call breaks off after %d tokens", n)
	}
}
