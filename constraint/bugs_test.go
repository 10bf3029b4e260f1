package constraint

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// Faults that other projects were reported for, each with a small input.

func TestNoWhitespaceLoop(t *testing.T) {
	needNative(t)
	c := mustCompile(t, JSON, `{"type":"object","properties":{"kind":{"enum":["a","b"]}},"required":["kind"],"additionalProperties":false}`)
	if got, ended := prefer(t, c, " \n\t\r", 100); !ended || got != `{"kind":"a"}` {
		t.Errorf("a model that prefers spaces writes %q (ended %v)", got, ended)
	}
}

func TestSchemaMeansWhatItSays(t *testing.T) {
	needNative(t)
	for _, c := range []struct {
		name, schema string
		yes, no      []string
	}{
		{"an escaped character", `{"type":"string","pattern":"^go\\!$"}`, []string{`"go!"`}, []string{`"go"`, `"go!!"`}},
		{"digits are ASCII", `{"type":"string","pattern":"^v\\d+$"}`, []string{`"v12"`}, []string{`"v"`, `"v٣"`}},
		{"words are ASCII", `{"type":"string","pattern":"^\\w$"}`, []string{`"a"`}, []string{`"é"`}},
		{"ref through an array", `{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"type":"integer"}]},"b":{"$ref":"#/properties/a/anyOf/1"}},"required":["b"]}`,
			[]string{`{"b":7}`, `{"a":null,"b":7}`}, []string{`{"b":null}`, `{}`}},
		{"pattern beside maxLength", `{"type":"string","pattern":"^[a-z]+$","maxLength":3}`, []string{`"abc"`}, []string{`"abcd"`}},
		{"ref hides its siblings in draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"$ref":"#/definitions/s","maxLength":1}},"definitions":{"s":{"type":"string"}}}`,
			[]string{`{"a":"xyz"}`}, []string{`{"a":1}`}},
		{"ref does not hide since 2019", `{"properties":{"a":{"$ref":"#/$defs/s","maxLength":1}},"$defs":{"s":{"type":"string"}}}`,
			[]string{`{"a":"x"}`}, []string{`{"a":"xyz"}`}},
		{"patterns apart from additionalProperties", `{"patternProperties":{"^x":{"type":"integer"}},"anyOf":[{"required":["xa"]}],"additionalProperties":false,"type":"object"}`,
			[]string{`{"xa":1}`, `{"xa":1,"xb":2}`}, []string{`{"xa":"s"}`, `{"a":1}`}},
		{"exclusive bounds of draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","maximum":3,"exclusiveMaximum":true,"minimum":1}`,
			[]string{"1", "2"}, []string{"0", "3"}},
		{"const of draft 4 means nothing", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","const":3}`, []string{"4"}, []string{`"x"`}},
		{"classes are no sets", `{"type":"string","pattern":"^[a&&b]+$"}`, []string{`"a&b"`}, []string{`"c"`}},
		{"a count written as 2.0", `{"type":"string","maxLength":2.0}`, []string{`"ab"`}, []string{`"abc"`}},
		{"an unknown format", `{"type":"string","format":"colour"}`, []string{`"red"`}, []string{`1`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			con := mustCompile(t, JSON, c.schema)
			if by, err := con.Admit(LocalEngine("")); by != ByMask {
				t.Fatalf("Admit: %v, %v", by, err)
			}
			for _, s := range c.yes {
				if !maskTakes(t, con, s) || !valid(con, s) {
					t.Errorf("%s: mask %v, validation %v", s, maskTakes(t, con, s), valid(con, s))
				}
			}
			for _, s := range c.no {
				if maskTakes(t, con, s) || valid(con, s) {
					t.Errorf("%s: mask %v, validation %v", s, maskTakes(t, con, s), valid(con, s))
				}
			}
		})
	}
}

func TestLongBounds(t *testing.T) {
	needNative(t)
	c := mustCompile(t, JSON, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","maxLength":2000}}},"required":["a"],"additionalProperties":false}`)
	text := func(n int) string { return `{"a":["` + strings.Repeat("é", n) + `"]}` }
	if !maskTakes(t, c, text(2000)) || !valid(c, text(2000)) {
		t.Error("2000 code points are allowed")
	}
	if maskTakes(t, c, text(2001)) || valid(c, text(2001)) {
		t.Error("2001 code points are one too many")
	}
}

func TestDuplicateMembersAreInvalid(t *testing.T) {
	c := mustCompile(t, JSON, `{"type":"object","properties":{"a":{}},"required":["a"]}`)
	v := c.Validate(context.Background(), `{"a":1,"q":2,"q":3}`)
	if v.Valid || v.Diagnostics[0].Code != JSONStructure || v.Diagnostics[0].Instance != "/q" {
		t.Errorf("%+v", v)
	}
}

func TestExactNumbers(t *testing.T) {
	needNative(t)
	c := mustCompile(t, JSON, `{"const":9007199254740993}`, Options{Enforce: EnforceValidate})
	if valid(c, "9007199254740992") || !valid(c, "9007199254740993") {
		t.Error("a large constant is rounded")
	}
	if !maskTakes(t, c, "9007199254740993") {
		t.Error("the mask rejects the constant")
	}
	if by, err := c.Admit(LocalEngine("")); by != ByMaskValidation {
		t.Errorf("Admit: %v, %v", by, err)
	}
	c = mustCompile(t, JSON, `{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}`, Options{Enforce: EnforceValidate})
	for _, s := range []string{"-9223372036854775808", "9223372036854775807", "0"} {
		if !maskTakes(t, c, s) || !valid(c, s) {
			t.Errorf("%s: mask %v, validation %v", s, maskTakes(t, c, s), valid(c, s))
		}
	}
	if valid(c, "9223372036854775808") {
		t.Error("one more than the bound is valid")
	}
}

func TestMalformedLark(t *testing.T) {
	needNative(t)
	_, err := Compile(Spec{Kind: Lark, Source: []byte("start: / \"x\""), File: ".schema-a.txt@lark"}, Options{})
	var r *Refusal
	if !errors.As(err, &r) || r.Line != 1 || r.Column < 8 {
		t.Errorf("got %v", err)
	}
}

// vocabulary returns bytes and special tokens, two of them end tokens.
func specialVocabulary(t *testing.T) *Vocabulary {
	t.Helper()
	cfg := VocabularyConfig{EOS: []uint32{257, 258}, singleBytes: true}
	for i := range 256 {
		cfg.Tokens = append(cfg.Tokens, []byte{byte(i)})
	}
	// One end token is not marked by the caller.
	cfg.Tokens = append(cfg.Tokens, []byte("\xff<pad>"), []byte("\xff</s>"), []byte("<eot>"))
	v, err := NewVocabulary(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func TestSpecialTokens(t *testing.T) {
	needNative(t)
	v := specialVocabulary(t)
	m, err := mustCompile(t, Lark, "start: /[\\S\\s]*/\n").NewMatcher(v)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	mask := make([]uint32, v.MaskWords())
	if err := m.Accept('h', 'i'); err != nil {
		t.Fatal(err)
	}
	if err := m.Mask(mask); err != nil {
		t.Fatal(err)
	}
	if has(mask, 256) || !has(mask, 257) || !has(mask, 258) || !has(mask, 'x') || has(mask, 0xFF) {
		t.Errorf("pad %v, ends %v %v, x %v", has(mask, 256), has(mask, 257), has(mask, 258), has(mask, 'x'))
	}
	c := m.Clone()
	defer c.Close()
	for _, end := range []*Matcher{m, c} { // either end token ends the answer
		tok := uint32(257)
		if end == c {
			tok = 258
		}
		if err := end.Accept(tok); err != nil || !end.Stopped() {
			t.Errorf("end token %d: %v, stopped %v", tok, err, end.Stopped())
		}
	}
	m2, err := mustCompile(t, Regex, "ab").NewMatcher(v)
	if err != nil {
		t.Fatal(err)
	}
	defer m2.Close()
	if err := m2.Mask(mask); err != nil || has(mask, 257) || has(mask, 258) {
		t.Error("an end token is allowed where the grammar cannot end")
	}
}

func TestCancelledMatcher(t *testing.T) {
	needNative(t)
	m := byteMatcher(t, mustCompile(t, Regex, "a*"))
	m.Cancel()
	if err := m.Mask(make([]uint32, m.v.MaskWords())); !errors.Is(err, ErrCancelled) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []*Constraint{mustCompile(t, Lark, `start: /a*/`), mustCompile(t, JSON, `{}`), mustCompile(t, Regex, `a*`)} {
		if v := c.Validate(ctx, "aaa"); v.Valid || v.Diagnostics[0].Code == GrammarViolation {
			t.Errorf("%s: %+v", c.Spec().Kind, v)
		}
	}
}

func TestMaxTokensDoesNotCutValidation(t *testing.T) {
	needNative(t)
	for _, c := range []*Constraint{
		mustCompile(t, Lark, "start: word \"!\"\nword[max_tokens=3]: /[a-z]+/\n"),
		mustCompile(t, LLG, `{"grammars":[{"lark_grammar":"start: word \"!\"\nword[max_tokens=3]: /[a-z]+/"}],"max_tokens":4}`),
	} {
		if !valid(c, "abcdefghij!") {
			t.Errorf("%s: ten letters may be three tokens of a model", c.Spec().Kind)
		}
	}
}

func BenchmarkMaskOfLongString(b *testing.B) {
	needNative(b)
	m := byteMatcher(b, mustCompile(b, JSON, `{"type":"string","maxLength":50000}`))
	if err := m.Accept('"'); err != nil {
		b.Fatal(err)
	}
	mask := make([]uint32, m.v.MaskWords())
	for b.Loop() {
		if err := m.Mask(mask); err != nil {
			b.Fatal(err)
		}
	}
}
