package openai

import (
	"errors"
	"fmt"
	"testing"

	"agentgraph/constraint"
)

// Each server's refusals name the construct, its pointer and its place.
func TestSchemasThatServersDoNotHold(t *testing.T) {
	for _, tc := range []struct {
		name, dialect, schema string
		// want is line:col construct path; empty: held.
		want    string
		rejects bool
	}{
		{"a keyword that is skipped", "llamacpp", "{\"type\":\"object\",\n \"properties\": {\"né/x\": {\"type\":\"number\", \"multipleOf\": 5}}}", `2:43 multipleOf /properties/né~1x`, false},
		{"bounds of numbers", "llamacpp", `{"type":"number","minimum":1}`, "1:18 minimum ", false},
		{"bounds of integers", "llamacpp", `{"type":"integer","minimum":1}`, "", false},
		{"a length beside a pattern", "sglang", `{"items":[{"pattern":"^a+$","maxLength":3}]}`, "1:29 maxLength /items/0", false},
		{"a length alone", "sglang", `{"type":"string","maxLength":3}`, "", false},
		{"a pattern that may match a part", "llamacpp", `{"pattern":"a+"}`, "1:2 pattern ", false},
		{"a pattern that ends in an escaped dollar", "llamacpp", `{"pattern":"^a\\$"}`, "1:2 pattern ", false},
		{"a pattern that matches the whole", "llamacpp", `{"pattern":"^(a|[^b-c])+(?:d|e.){2}\\.\\u0041$"}`, "", false},
		{"a class with a letter", "llamacpp", `{"pattern":"^\\d+$"}`, "1:2 pattern ", false},
		{"a class with a letter in a group", "llamacpp", `{"pattern":"^(\\d)$"}`, "1:2 pattern ", false},
		{"a lookahead", "ollama", `{"pattern":"^a(?!b)c$"}`, "1:2 pattern ", false},
		{"a letter beyond ASCII", "llamacpp", `{"pattern":"^é$"}`, "1:2 pattern ", false},
		{"true is no schema there", "llamacpp", `{"properties":{"a":true},"additionalProperties":false}`, "1:20 true /properties/a", true},
		{"a choice beside properties", "ollama", `{"properties":{"a":{}},"anyOf":[{}]}`, "1:24 anyOf ", false},
		{"names that are no keywords", "llamacpp", `{"properties":{"multipleOf":{"type":"string"},"minProperties":{"enum":[{"multipleOf":1}]}}}`, "", false},
		{"in a list", "llamacpp", `{"anyOf":[{"type":"string"},{"minProperties":2}]}`, "1:30 minProperties /anyOf/1", false},
		{"in definitions", "ollama", `{"$defs":{"a":{"uniqueItems":true}}}`, "1:16 uniqueItems /$defs/a", false},
		{"llguidance takes what admission took", "mistralrs", `{"type":"number","multipleOf":5,"minProperties":1}`, "", false},
		{"strict", "openai", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, "", false},
		{"strict: no object", "openai", `{"type":"string"}`, "1:2 type ", true},
		{"strict: a choice at the top", "openai", `{"anyOf":[{"type":"object","properties":{},"additionalProperties":false}]}`, "1:2 anyOf ", true},
		{"strict: open", "openai", `{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`, "1:36 additionalProperties /properties/a", true},
		{"strict: optional", "openai", `{"type":"object","properties":{"a":{},"b":{}},"required":["a"],"additionalProperties":false}`, "1:47 required ", true},
		{"strict: a keyword", "openai", "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\n\t\"maxLength\":9}},\"required\":[\"a\"],\"additionalProperties\":false}", "2:2 maxLength /properties/a", true},
		{"strict: true is any", "openai", `true`, "1:1 type ", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, rejects := dialects[tc.dialect].checkSchema(constraint.Spec{Kind: constraint.JSON, Source: []byte(tc.schema), File: "f"})
			got := ""
			if r != nil {
				got = fmt.Sprintf("%d:%d %s %s", r.Line, r.Column, r.Construct, r.Path)
				if !r.Capability || r.Hint == "" || r.File != "f" {
					t.Errorf("the refusal is %+v", r)
				}
			}
			if got != tc.want || rejects != tc.rejects {
				t.Errorf("got %q, rejects %v; want %q, %v", got, rejects, tc.want, tc.rejects)
			}
		})
	}
	deep := `{"type":"string"}`
	for range strictDepth + 2 {
		deep = `{"type":"object","properties":{"a":` + deep + `},"required":["a"],"additionalProperties":false}`
	}
	if r, _ := dialects["openai"].checkSchema(constraint.Spec{Kind: constraint.JSON, Source: []byte(deep)}); r == nil || r.Construct != "properties" {
		t.Errorf("a deep schema: %v", r)
	}
}

// Grammars that a server's own cannot say are refused where they stand.
func TestGrammarsThatServersDoNotHold(t *testing.T) {
	for _, tc := range []struct {
		name, dialect string
		llguidance    bool
		kind          constraint.Kind
		source        string
		want          string // line:col construct; empty: travels
	}{
		{"Lark", "llamacpp", false, constraint.Lark, "start: \"a\" B\nB: /[0-9]{2}/\n", ""},
		{"an intersection", "llamacpp", false, constraint.Lark, "start: A\nA: /[a-z]+/ & /.{2}/\n", "2:15 &"},
		{"a complement", "vllm", false, constraint.Lark, "start: A\nA: ~/a/\n", "2:4 ~"},
		{"with llguidance it stays as it is", "vllm", true, constraint.Lark, "start: A\nA: /[a-z]+/ & /.{2}/\n", ""},
		{"the option line comes late", "sglang", true, constraint.Lark, "// hi\n%llguidance {}\nstart: \"a\"\n", "2:1 %llguidance"},
		{"an expression", "llamacpp", false, constraint.Regex, `(yes|no)\d?`, ""},
		{"a lookahead", "llamacpp", false, constraint.Regex, `a(?=b)`, "1:2 regular expression"},
		{"raw llguidance", "vllm", true, constraint.LLG, `{"grammars":[]}`, "0:0 llg"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, r, ok := travels(dialects[tc.dialect], tc.llguidance, constraint.Spec{Kind: tc.kind, Source: []byte(tc.source), File: "g.lark"})
			got := ""
			if r != nil {
				got = fmt.Sprintf("%d:%d %s", r.Line, r.Column, r.Construct)
			}
			if got != tc.want || ok != (tc.want == "") {
				t.Errorf("got %q (%v), travels %v; want %q", got, r, ok, tc.want)
			}
			if r != nil && (r.Hint == "" || !r.Capability || r.File != "g.lark") {
				t.Errorf("the refusal is %+v", r)
			}
		})
	}
}

// Check says without a server what Generate would say with one, and leaves
// everything to validation where the settings do.
func TestCheck(t *testing.T) {
	const open = `{"type":"object","properties":{"a":{"type":"string"}}}`
	err := Check("openai", false, compile(t, constraint.JSON, open, ""))
	var r *constraint.Refusal
	if !errors.As(err, &r) || r.Construct != "additionalProperties" || r.File != "s" {
		t.Errorf("got %v", err)
	}
	if err := Check("openai", false, compile(t, constraint.JSON, open, constraint.EnforceValidate)); err != nil {
		t.Errorf("with enforce: validate: %v", err)
	}
	if err := Check("vllm", false, compile(t, constraint.JSON, open, "")); err != nil {
		t.Errorf("vLLM: %v", err)
	}
}

// With enforce: validate, what a server skips is sent all the same, and what
// it would refuse is not.
func TestValidateSendsWhatCanBeSent(t *testing.T) {
	for _, tc := range []struct {
		dialect, schema string
		sent            bool
	}{
		{"llamacpp", `{"type":"number","multipleOf":5}`, true},
		{"openai", `{"type":"number","multipleOf":5}`, false},
	} {
		f := newFake(t, says("15"))
		resp, err := f.open(t, dialectOf(tc.dialect)).Generate(t.Context(), question(compile(t, constraint.JSON, tc.schema, constraint.EnforceValidate)))
		if err != nil {
			t.Fatal(err)
		}
		_, sent := mustJSON(t, f.completions()[0])["response_format"]
		if sent != tc.sent || (resp.EnforcedBy == constraint.ByServerValidation) != tc.sent {
			t.Errorf("%s: sent %v, enforced by %q; want sent %v", tc.dialect, sent, resp.EnforcedBy, tc.sent)
		}
	}
}
