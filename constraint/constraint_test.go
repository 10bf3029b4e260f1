package constraint

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

func TestKinds(t *testing.T) {
	needNative(t)
	for _, c := range []struct {
		kind     Kind
		src      string
		yes, not []string
	}{
		{JSON, `{"type":"object","properties":{"b":{"type":"integer"},"a":{"enum":["x","y"]}},"required":["b","a"],"additionalProperties":false}`,
			[]string{`{"b":1,"a":"x"}`}, []string{`{"a":"x","b":1}`, `{"b":1, "a":"x"}`, `{"b":1}`, ``}},
		{JSON, `true`, []string{`null`, `{"a":[1]}`}, []string{`nul`}},
		{Regex, `[a-c]{2}`, []string{"ab"}, []string{"a", "abc", "xab"}},
		{Lark, "start: greeting \"!\"\ngreeting: \"hi\" | \"ho\"\n", []string{"hi!"}, []string{"hi", "ha!"}},
		{LLG, `{"grammars":[{"lark_grammar":"start: \"a\" @b"},{"name":"b","json_schema":{"type":"boolean"}}]}`,
			[]string{"atrue"}, []string{"a", "a1"}},
	} {
		con := mustCompile(t, c.kind, c.src)
		for _, s := range c.yes {
			if !maskTakes(t, con, s) || !valid(con, s) {
				t.Errorf("%s %s: %q: mask %v, valid %v", c.kind, c.src, s, maskTakes(t, con, s), valid(con, s))
			}
		}
		for _, s := range c.not {
			if maskTakes(t, con, s) {
				t.Errorf("%s %s: the mask takes %q", c.kind, c.src, s)
			}
		}
		if by, err := con.Admit(LocalEngine("")); by != ByMask || err != nil {
			t.Errorf("%s: Admit = %q, %v", c.kind, by, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	needNative(t)
	for _, c := range []struct {
		name      string
		kind      Kind
		src       string
		want      string // start of the error
		construct string
	}{
		{"not json", JSON, "{\n  \"type\": \n}", "f.json:3:1: ", "JSON"},
		{"not an object", JSON, `[]`, "f.json:1:1: a JSON Schema is an object", "JSON"},
		{"false", JSON, `false`, "f.json:1:1: the schema 'false'", "false"},
		{"utf-8", JSON, "{\"a\xff\":1}", "f.json:1:4: bytes that are not UTF-8", "encoding"},
		{"duplicate", JSON, "{\"type\":\"object\",\n\"type\":\"array\"}", "f.json:2:1: duplicate member", "JSON"},
		{"empty regex", Regex, ``, "f.json: the regular expression is empty", "empty"},
		{"nul regex", Regex, "ab\x00", "f.json:1:3: a NUL byte", "NUL"},
		{"lark brace", Lark, " {}", "f.json:1:2: a Lark grammar cannot start with '{'", "JSON"},
		{"empty lark", Lark, "\n", "f.json: the grammar is empty", "empty"},
		{"llg text", LLG, `start: "a"`, "f.json:1:1: an llg grammar is a JSON object", "JSON"},
		{"llg unknown", LLG, "{\"grammars\":[{\"lark_grammar\":\"start: /a/\"}],\n \"temperature\":1}", "f.json:2:2: unknown member 'temperature'", "temperature"},
		{"llg unknown inside", LLG, `{"grammars":[{"lark_grammar":"start: /a/","option":1}]}`, "f.json:1:43: unknown member 'option'", "option"},
		{"llg none", LLG, `{"grammars":[]}`, "f.json:1:1: 'grammars' must", "grammars"},
		{"llg both", LLG, `{"grammars":[{}]}`, "f.json:1:14: a grammar has exactly one", "grammars"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(Spec{Kind: c.kind, Source: []byte(c.src), File: "f.json"}, Options{})
			var r *Refusal
			if !errors.As(err, &r) {
				t.Fatalf("got %v", err)
			}
			if !strings.HasPrefix(err.Error(), c.want) || r.Construct != c.construct || r.Kind != c.kind {
				t.Errorf("got %q, construct %q; want %q…, %q", err, r.Construct, c.want, c.construct)
			}
		})
	}
}

func TestCompileIsCachedByContent(t *testing.T) {
	needNative(t)
	a := mustCompile(t, JSON, `{"type":"null"}`)
	b, err := Compile(Spec{Kind: JSON, Source: []byte(`{"type":"null"}`), File: "other"}, Options{Limits: Standard})
	if err != nil {
		t.Fatal(err)
	}
	if a.compiled != b.compiled {
		t.Error("equal content and options were compiled twice")
	}
	if b.Spec().File != "other" {
		t.Error("the file's name must not be cached")
	}
	if c := mustCompile(t, JSON, `{"type":"null"}`, Options{Enforce: EnforceValidate}); c.compiled == a.compiled {
		t.Error("other options gave the same value")
	}
}

func TestBytesOfTheSchemaStay(t *testing.T) {
	needNative(t)
	src := `{ "properties": {"z":{"const":1.50}, "a":{"type":"string"}},  "type":"object"}`
	c := mustCompile(t, JSON, src)
	want := `{"properties":{"z":{"const":1.50}, "a":{"type":"string"}},"type":"object","x-guidance":{"whitespace_flexible":false}}`
	if c.grammar.text != want {
		t.Errorf("the engine reads\n%s\nwant\n%s", c.grammar.text, want)
	}
}

func TestConcurrentUse(t *testing.T) {
	needNative(t)
	c := mustCompile(t, JSON, `{"type":"object","properties":{"a":{"type":"string","maxLength":9}},"required":["a"]}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if !maskTakes(t, c, `{"a":"xyz"}`) || !valid(c, `{"a":"xyz"}`) {
					t.Error("a good answer was not taken")
				}
			}
		})
	}
	wg.Wait()
}
