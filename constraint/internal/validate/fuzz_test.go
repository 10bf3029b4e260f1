package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var fuzzOptions = Options{
	AssertFormats: true,
	Limits:        Limits{AnswerBytes: 4096, AnswerNodes: 500, AnswerDepth: 16, Work: 20000},
	MatchTimeout:  200 * time.Millisecond,
}

// Any schema and any text: a judgement within its bounds, the same twice, and
// never a pass for what encoding/json does not read.
func FuzzValidate(f *testing.F) {
	for _, seed := range []struct{ schema, answer string }{
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `{"a":1.0}`},
		{`{"items":{"pattern":"^(a|a)*$"},"uniqueItems":true}`, `["aa","b"]`},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"n":{"$ref":"#/$defs/n"}},"unevaluatedProperties":false}}}`, `{"n":{"n":{}}}`},
		{`{"oneOf":[{"minimum":1e400},{"multipleOf":0.1}]}`, `0.3e1`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","dependencies":{"a":["b"]},"enum":[{"a":1}]}`, `{"a":1}`},
		{`{"$id":"http://a/","$dynamicAnchor":"x","items":{"$dynamicRef":"#x"},"prefixItems":[{"not":{}}]}`, `[[1]]`},
		{`{"if":{"format":"date"},"then":{"maxLength":10},"else":false}`, `"2024-02-30"`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}},"contains":{},"minContains":0}`, `{"a":[]}`},
		{`true`, `{"a":1,"a":2}`},
		{`{"patternProperties":{"^\\p{L}":{}},"additionalProperties":false,"propertyNames":{"minLength":2}}`, `{"é":1,"":2}`},
		{`false`, "\"\\ud800\""},
	} {
		f.Add(seed.schema, seed.answer)
	}
	f.Fuzz(func(t *testing.T, schema, answer string) {
		if len(schema) > 8192 {
			return
		}
		s, err := JSON([]byte(schema), fuzzOptions)
		if err != nil {
			return
		}
		start := time.Now()
		found := s.Validate(context.Background(), answer)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("took %v", took)
		}
		checkBounds(t, found)
		if found == nil && !json.Valid([]byte(answer)) {
			t.Errorf("%q passes and is not JSON", answer)
		}
		if len(found) == 1 && found[0].Code == MalformedJSON && json.Valid([]byte(answer)) &&
			!strings.Contains(answer, `\u`) && strings.ToValidUTF8(answer, "") == answer {
			t.Errorf("%q is JSON", answer)
		}
		timed := func(f Finding) bool { return f.Code == ValidationWork }
		if again := s.Validate(context.Background(), answer); !slices.ContainsFunc(found, timed) && !slices.Equal(found, again) && !slices.ContainsFunc(again, timed) {
			t.Errorf("%v, then %v", found, again)
		}
	})
}

// Any source: compiled, or refused with a place that is in the source.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{
		`{"type":"strng"}`, `{"$ref":"#/a/b","a":{"b":{"$ref":"#"}}}`, `{"$id":"a%zz"}`, `{"$ref":"http://[::1"}`, "{\n\"é\":[1,]}",
		`{"properties":{"a":{"$id":"b","$anchor":"c","$defs":{"d":{"$ref":"b#c"}}}}}`, `{"pattern":"[[:alpha:]"}`, `{"minLength":1e999}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"#x","items":[{"$ref":"#x"}]}`, `{"type":"object","type":"null"}`,
		`{"allOf":[{"$dynamicRef":"#m"}],"$dynamicAnchor":"m"}`, strings.Repeat(`{"not":`, 20), `{"$ref":"#/$defs/~1","$defs":{"/":true}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		start := time.Now()
		_, err := JSON([]byte(schema), Options{AssertFormats: true})
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		if err == nil {
			return
		}
		e, ok := err.(*SchemaError)
		if !ok || e.Construct == "" || e.Reason == "" {
			t.Fatalf("%#v", err)
		}
		lines := strings.Split(schema, "\n")
		if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len([]rune(lines[e.Line-1]))+1 {
			t.Errorf("%d:%d is not in the source", e.Line, e.Column)
		}
		if e.Construct == "JSON" || len(e.Path) > 900 {
			return
		}
		ix, perr := Positions([]byte(schema))
		if perr != nil {
			t.Fatalf("%v, but the source does not parse: %v", e, perr)
		}
		if line, col, ok := ix.OfKey(e.Path); !ok || e.Path != "" && (line != e.Line || col != e.Column) {
			t.Errorf("%v: its path is at %d:%d, %t", e, line, col, ok)
		}
	})
}

// Any member names: findings keep their bounds and hold no value.
func FuzzFindings(f *testing.F) {
	f.Add("a", "b/~", "\x01")
	f.Add(strings.Repeat("/", 130), strings.Repeat("é", 128), "<&>")
	f.Add("", "\u2028", strings.Repeat("~", 300))
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if len(a)+len(b)+len(c) > 4096 {
			return
		}
		answer := fmt.Sprintf(`{%s:{%s:"PRIVATE-1"},%s:["PRIVATE-2","PRIVATE-3"]}`, quote(a), quote(b), quote(c))
		schema := fmt.Sprintf(`{"properties":{%s:{"additionalProperties":{"const":"SECRET"}}},"additionalProperties":{"items":{"enum":["SECRET"]},"required":["x"]}}`, quote(a))
		s, err := JSON([]byte(schema), Options{})
		if err != nil {
			t.Fatal(err)
		}
		found := s.Validate(context.Background(), answer)
		if found == nil {
			t.Fatal("valid")
		}
		checkBounds(t, found)
		text := fmt.Sprintf("%q", found)
		if !strings.Contains(a+b+c, "PRIVATE") && strings.Contains(text, "PRIVATE") || !strings.Contains(a+b+c, "SECRET") && strings.Contains(text, "SECRET") {
			t.Errorf("a value is in the findings: %s", text)
		}
	})
}

// Any JSON text: every value is found where its pointer says.
func FuzzPositions(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b/~":null}]}`, "[\n\t\"é\",\r\n{\"\":-1e3}]", `"\u00e9"`, `{"a":{"a":{"a":[[]]}}}`, "[1", `{"x":1,"x":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		ix, err := Positions(src)
		if err != nil {
			if e := err.(*SyntaxError); e.Line < 1 || e.Column < 1 || e.Reason == "" {
				t.Fatalf("%#v", e)
			}
			return
		}
		if !json.Valid(src) {
			t.Fatalf("%q is not JSON", src)
		}
		lines := bytes.Split(src, []byte("\n"))
		var walk func(v any, pointer string, depth int)
		walk = func(v any, pointer string, depth int) {
			line, col, ok := ix.Of(pointer)
			if !ok || line > len(lines) {
				t.Fatalf("%q: %d:%d, %t", pointer, line, col, ok)
			}
			rest := []byte(string([]rune(string(lines[line-1]))[col-1:]))
			var again any
			dec := json.NewDecoder(bytes.NewReader(append(append(rest, '\n'), bytes.Join(lines[line:], []byte("\n"))...)))
			if err := dec.Decode(&again); err != nil || fmt.Sprint(again) != fmt.Sprint(v) {
				t.Fatalf("%q at %d:%d is %v, not %v (%v)", pointer, line, col, again, v, err)
			}
			if depth > 5 {
				return
			}
			switch v := v.(type) {
			case []any:
				for i := range v[:min(len(v), 5)] {
					walk(v[i], fmt.Sprintf("%s/%d", pointer, i), depth+1)
				}
			case map[string]any:
				for name, m := range v {
					walk(m, pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), depth+1)
				}
			}
		}
		var v any
		if json.Unmarshal(src, &v) == nil {
			walk(v, "", 0)
		}
	})
}

var plainRegex = regexp.MustCompile(`^[ab01()|*+?.\[\]^{},-]*$`)

// Any expression: compiled or refused, and on syntax that Go's regexp reads
// alike, the same matches.
func FuzzRegex(f *testing.F) {
	for _, seed := range []struct{ source, text string }{
		{`(a|b)*1`, "ab1"}, {`[a-b&&[^a]]+`, "b"}, {`(?i)\p{Lu}+`, "é"}, {`a{2,3}?`, "aaa"}, {`[^]a]|[b-]`, "-"}, {`(?x) a # b`, "a"},
		{`\x{1F600}[\w--\d]`, "😀é"}, {`^(?:|a)$`, ""}, {`((a*)*)*b`, "aaaa"}, {`[[:^alpha:]~~\s]`, "1"}, {`a**`, "a"},
	} {
		f.Add(seed.source, seed.text)
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		if len(source) > 200 || len(text) > 200 {
			return
		}
		p, err := Regex(source)
		if err != nil {
			if e, ok := err.(*SchemaError); !ok || e.Line < 1 || e.Column < 1 || e.Reason == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		found := p.Validate(context.Background(), text)
		if len(found) > 0 && found[0].Code == ValidationWork || !plainRegex.MatchString(source) {
			return
		}
		// Go reads nested classes and class operators as characters.
		if strings.Contains(source, "--") || strings.Count(source, "[") > 1 {
			return
		}
		re, err := regexp.Compile(`\A(?:` + source + `)\z`)
		if err != nil {
			return // repetition of a repetition
		}
		if want := re.MatchString(text); want != (found == nil) && strings.ToValidUTF8(text, "") == text {
			t.Errorf("%q on %q: %t, Go says %t", source, text, found == nil, want)
		}
	})
}
