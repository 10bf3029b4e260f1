package validate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustJSON(t testing.TB, schema string, opt Options) *Schema {
	t.Helper()
	s, err := JSON([]byte(schema), opt)
	if err != nil {
		t.Fatalf("schema %.200s: %v", schema, err)
	}
	return s
}

func judge(t testing.TB, schema, answer string) []Finding {
	t.Helper()
	return mustJSON(t, schema, Options{}).Validate(context.Background(), answer)
}

// Inputs with which other validators and engines went wrong.
func TestKnownTraps(t *testing.T) {
	const objectRef = `{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"type":"integer"}]},"b":{"$ref":"#/properties/a/anyOf/1"}},"required":["b"]}`
	const draft4Ref = `"properties":{"a":{"$ref":"#/definitions/s","maxLength":1}},"definitions":{"s":{"type":"string"}}}`
	for _, c := range []struct {
		name, schema string
		yes, not     []string
	}{
		{"escaped punctuation", `{"type":"string","pattern":"^go\\!$"}`, []string{`"go!"`}, []string{`"go"`, `"go\\!"`}},
		{"ASCII digits", `{"type":"string","pattern":"^v\\d+$"}`, []string{`"v12"`}, []string{`"v"`, `"v٣"`, `"v12\n"`}},
		{"ASCII words", `{"pattern":"^\\w+$"}`, []string{`"a_9"`}, []string{`"é"`}},
		{"white space of ECMA-262", `{"pattern":"^\\s$"}`, []string{`"\ufeff"`, `"\u00a0"`}, []string{`"\u0085"`}},
		{"unanchored", `{"pattern":"b"}`, []string{`"abc"`}, []string{`"ac"`}},
		{"code points", `{"pattern":"^.$"}`, []string{`"😀"`, `"\ud83d\ude00"`}, []string{`"ab"`, `"\n"`}},
		{"property escapes", `{"pattern":"^\\p{Lu}\\-$"}`, []string{`"É-"`}, []string{`"é-"`, `"p{Lu}-"`}},
		{"range from a dash", `{"pattern":"^[\\--/]$"}`, []string{`"-"`, `"."`, `"/"`}, []string{`"+"`, `","`}},
		{"dash in a class", `{"pattern":"^[+\\-a]$"}`, []string{`"-"`, `"+"`, `"a"`}, []string{`","`}},
		{"lone brace", `{"pattern":"^{.*}$"}`, []string{`"{a}"`}, []string{`"a"`}},
		{"lookahead", `{"pattern":"^(?=.*\\d)[a-z0-9]+$"}`, []string{`"a1"`}, []string{`"ab"`}},
		{"long bounds", `{"type":"object","properties":{"q":{"type":"string","maxLength":2000}}}`,
			[]string{`{"q":"` + strings.Repeat("😀", 2000) + `"}`}, []string{`{"q":"` + strings.Repeat("a", 2001) + `"}`}},
		{"reference through an index", objectRef, []string{`{"b":1}`, `{"a":null,"b":1.0}`}, []string{`{"b":null}`, `{"b":"1"}`, `{}`}},
		{"pattern with maxLength", `{"type":"string","pattern":"^[a-z]+$","maxLength":3}`, []string{`"abc"`}, []string{`"abcd"`}},
		{"draft-04 hides", `{"$schema":"http://json-schema.org/draft-04/schema#",` + draft4Ref, []string{`{"a":"xyz"}`}, []string{`{"a":1}`}},
		{"draft-07 hides", `{"$schema":"http://json-schema.org/draft-07/schema",` + draft4Ref, []string{`{"a":"xyz"}`}, nil},
		{"2019-09 does not", `{"$schema":"https://json-schema.org/draft/2019-09/schema",` + draft4Ref, nil, []string{`{"a":"xyz"}`}},
		{"nor 2020-12", `{` + draft4Ref, []string{`{"a":"x"}`}, []string{`{"a":"xyz"}`}},
		{"duplicate on an open object", `{"properties":{"a":{"type":"integer"}}}`, []string{`{"a":1,"q":2}`},
			[]string{`{"a":1,"q":2,"q":3}`, `{"q":1,"\u0071":1}`, `{"a":{"b":[{"c":1,"c":1}]}}`}},
		{"draft-04 bounds", `{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true,"maximum":3,"exclusiveMaximum":false}`,
			[]string{`2`, `3`}, []string{`1`, `4`}},
		{"dependencies everywhere", `{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, []string{`{"a":1,"b":1}`, `{}`}, []string{`{"a":1}`, `{"c":1}`}},
		{"formats are annotations", `{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`, []string{`"x"`}, nil},
		{"unevaluated in a branch", `{"anyOf":[{"properties":{"a":true},"required":["a"]},{"properties":{"b":true}}],"unevaluatedProperties":false}`,
			[]string{`{"a":1}`, `{"b":1}`, `{"a":1,"b":1}`}, []string{`{"c":1}`}},
		{"empty enum of 2020-12", `{"enum":[]}`, nil, []string{`1`}},
		{"quiet failure inside not", `{"not":{"items":{"type":"integer"}}}`, []string{`["a"]`}, []string{`[1]`, `"a"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustJSON(t, c.schema, Options{})
			for _, a := range c.yes {
				if f := s.Validate(context.Background(), a); f != nil {
					t.Errorf("%.80s is refused: %v", a, f)
				}
			}
			for _, a := range c.not {
				if f := s.Validate(context.Background(), a); f == nil {
					t.Errorf("%.80s passes", a)
				}
			}
		})
	}
}

func TestExactNumbers(t *testing.T) {
	big := "1" + strings.Repeat("0", 400)
	for _, c := range []struct {
		schema, answer string
		valid          bool
	}{
		{`{"const":9007199254740993}`, `9007199254740993`, true},
		{`{"const":9007199254740993}`, `9007199254740992`, false},
		{`{"const":9007199254740993}`, `9007199254740993.0`, true},
		{`{"const":1}`, `1.0`, true},
		{`{"const":1}`, `10e-1`, true},
		{`{"const":0}`, `-0`, true},
		{`{"const":0}`, `0e999999999999999999999999`, true},
		{`{"const":100}`, `1e2`, true},
		{`{"enum":[0.1]}`, `0.10`, true},
		{`{"enum":[0.1]}`, `0.1000000000000000055511151231257827`, false},
		{`{"type":"integer"}`, `1e400`, true},
		{`{"type":"integer"}`, `1.5e1`, true},
		{`{"type":"integer"}`, `1.5`, false},
		{`{"type":"integer"}`, `1e-1`, false},
		{`{"maximum":9223372036854775807}`, `9223372036854775808`, false},
		{`{"maximum":9223372036854775807}`, `9223372036854775807`, true},
		{`{"minimum":-9223372036854775808}`, `-9223372036854775809`, false},
		{`{"exclusiveMinimum":0}`, `1e-400`, true},
		{`{"exclusiveMinimum":0}`, `-1e-400`, false},
		{`{"maximum":1e400}`, `9.99e399`, true},
		{`{"maximum":1e400}`, `1.01e400`, false},
		{`{"maximum":0.3}`, `0.30000000000000004`, false},
		{`{"minimum":-0.3}`, `-0.30000000000000004`, false},
		{`{"multipleOf":0.1}`, `0.3`, true},
		{`{"multipleOf":0.01}`, `19.99`, true},
		{`{"multipleOf":0.01}`, `0.075`, false},
		{`{"multipleOf":0.25}`, `0.5`, true},
		{`{"multipleOf":0.25}`, `0.50`, true},
		{`{"multipleOf":3}`, big, false},
		{`{"multipleOf":7}`, strings.Repeat("7", 5000), true},
		{`{"multipleOf":7}`, strings.Repeat("7", 5000) + "1", false},
		{`{"multipleOf":2}`, `1e999999999`, true},
		{`{"multipleOf":3}`, `1e999999999`, false},
		{`{"multipleOf":1e-999999999}`, `1e999999999`, true},
		{`{"multipleOf":1e10}`, `5`, false},
		{`{"multipleOf":123456789012345678901234567890}`, `370370367037037036703703703670`, true},
		{`{"multipleOf":1}`, `-4`, true},
		{`{"multipleOf":2.5}`, `-7.5`, true},
		{`{"uniqueItems":true}`, `[1,1.0]`, false},
		{`{"uniqueItems":true}`, `[1e2,100.0,1]`, false},
		{`{"uniqueItems":true}`, `[9007199254740993,9007199254740992]`, true},
		{`{"maxLength":2.0}`, `"ab"`, true},
		{`{"maxLength":1e30}`, `"ab"`, true},
		{`{"minLength":1e30}`, `"ab"`, false},
	} {
		if f := judge(t, c.schema, c.answer); (f == nil) != c.valid {
			t.Errorf("%s, %.60s: %v, want valid %t", c.schema, c.answer, f, c.valid)
		}
	}
}

// A text that is not acceptable, and the one finding about it.
func TestTextRefused(t *testing.T) {
	small := Options{Limits: Limits{AnswerBytes: 100, AnswerNodes: 10, AnswerDepth: 4}}
	s := mustJSON(t, `true`, small)
	for _, c := range []struct {
		text, code, at string
	}{
		{``, MalformedJSON, ``},
		{` `, MalformedJSON, ``},
		{`{"a":`, MalformedJSON, `/a`},
		{`{"a" 1}`, MalformedJSON, `/a`},
		{`{a:1}`, MalformedJSON, ``},
		{`{"a":1,}`, MalformedJSON, ``},
		{`[1,]`, MalformedJSON, `/1`},
		{`[1 2]`, MalformedJSON, ``},
		{`[01]`, MalformedJSON, `/0`},
		{`+1`, MalformedJSON, ``},
		{`1.`, MalformedJSON, ``},
		{`.5`, MalformedJSON, ``},
		{`1e`, MalformedJSON, ``},
		{`-`, MalformedJSON, ``},
		{`NaN`, MalformedJSON, ``},
		{`nul`, MalformedJSON, ``},
		{`{} x`, MalformedJSON, ``},
		{"\ufeff{}", MalformedJSON, ``},
		{`'a'`, MalformedJSON, ``},
		{`"a`, MalformedJSON, ``},
		{"\"a\nb\"", MalformedJSON, ``},
		{`"\x"`, MalformedJSON, ``},
		{`"\u12"`, MalformedJSON, ``},
		{`"\ud800"`, MalformedJSON, ``},
		{`"\udc00"`, MalformedJSON, ``},
		{`"\ud800\ud800"`, MalformedJSON, ``},
		{`["\ud800x"]`, MalformedJSON, `/0`},
		{`{"\udfff":1}`, MalformedJSON, ``},
		{"\"\xff\"", MalformedJSON, ``},
		{"\"\xed\xa0\x80\"", MalformedJSON, ``}, // a surrogate in UTF-8
		{`{"a":1,"a":1}`, JSONStructure, `/a`},
		{`{"a":[{"b":1,"c":2,"b":3}]}`, JSONStructure, `/a/0/b`},
		{`1e9999999999999999`, JSONStructure, ``},
		{`[[[[[]]]]]`, JSONStructure, `/0/0/0/0`},
		{`[1,2,3,4,5,6,7,8,9,10]`, JSONStructure, `/9`},
		{strings.Repeat(" ", 101), JSONBytes, ``},
	} {
		got := s.Validate(context.Background(), c.text)
		if diff := cmp.Diff([]Finding{{c.code, c.at, ""}}, got); diff != "" {
			t.Errorf("%.40q: %s", c.text, diff)
		}
	}
	for _, text := range []string{" \t\r\n1 \n", `[[[[]]]]`, `[1,2,3,4,5,6,7,8,9]`, `"\u0000\ud83d\ude00\/"`, `-0.0e-0`, strings.Repeat(" ", 99) + "1"} {
		if f := s.Validate(context.Background(), text); f != nil {
			t.Errorf("%.40q: %v", text, f)
		}
	}
	// More members than are looked up one by one.
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf(`"k%d":0`, i))
	}
	many = append(many, `"k17":0`)
	if f := judge(t, `true`, "{"+strings.Join(many, ",")+"}"); len(f) != 1 || f[0].Instance != "/k17" {
		t.Errorf("a duplicate among 40 members: %v", f)
	}
}

func TestFindings(t *testing.T) {
	v := func(instance, schema string) Finding { return Finding{SchemaViolation, instance, schema} }
	for _, c := range []struct {
		name, schema, answer string
		want                 []Finding
	}{
		{"type", `{"type":"object"}`, `1`, []Finding{v("", "/type")}},
		{"each missing name", `{"required":["a","b","c"]}`, `{"b":1}`, []Finding{v("", "/required/0"), v("", "/required/2")}},
		{"a member too many", `{"properties":{"a":true},"additionalProperties":false}`, `{"a":1,"x/y~z":2}`,
			[]Finding{v("/x~1y~0z", "/additionalProperties")}},
		{"through a reference", `{"$defs":{"s":{"maxLength":1}},"items":{"$ref":"#/$defs/s"}}`, `["a","ab"]`,
			[]Finding{v("/1", "/$defs/s/maxLength")}},
		{"order of the answer", `{"additionalProperties":{"type":"integer"}}`, `{"z":"","a":"","m":1}`,
			[]Finding{v("/z", "/additionalProperties/type"), v("/a", "/additionalProperties/type")}},
		{"not", `{"not":{"type":"string"}}`, `"a"`, []Finding{v("", "/not")}},
		{"false", `{"properties":{"a":false}}`, `{"a":1}`, []Finding{v("/a", "/properties/a")}},
		{"several alternatives", `{"anyOf":[{"minimum":3},{"minimum":5}]}`, `1`, []Finding{v("", "/anyOf")}},
		{"the one alternative of that type", `{"anyOf":[{"type":"null"},{"type":"object","required":["a"]}]}`, `{}`,
			[]Finding{v("", "/anyOf/1/required/0")}},
		{"the one with that constant", `{"oneOf":[{"properties":{"k":{"const":"x"},"n":{"type":"integer"}}},{"properties":{"k":{"const":"y"},"n":{"type":"string"}}}]}`,
			`{"k":"x","n":""}`, []Finding{v("/n", "/oneOf/0/properties/n/type")}},
		{"two alternatives hold", `{"oneOf":[{"minimum":0},{"maximum":9}]}`, `5`, []Finding{v("", "/oneOf")}},
		{"names", `{"propertyNames":{"maxLength":1}}`, `{"a":1,"bc":2}`, []Finding{v("/bc", "/propertyNames/maxLength")}},
		{"unique", `{"uniqueItems":true}`, `[1,2,1]`, []Finding{v("/2", "/uniqueItems")}},
		{"contains", `{"contains":{"const":1},"minContains":2}`, `[1]`, []Finding{v("", "/minContains")}},
		{"dependent", `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"a":{"minProperties":3}}}`, `{"a":1}`,
			[]Finding{v("", "/dependentRequired/a/0"), v("", "/dependentSchemas/a/minProperties")}},
		{"unevaluated", `{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`,
			[]Finding{v("/b", "/unevaluatedProperties")}},
		{"then", `{"if":{"minimum":1},"then":{"maximum":3}}`, `5`, []Finding{v("", "/then/maximum")}},
		{"patternProperties", `{"patternProperties":{"^a":{"type":"null"}}}`, `{"ab":1}`, []Finding{v("/ab", "/patternProperties/^a/type")}},
		{"at most eight", `{"items":{"type":"null"}}`, `[1,1,1,1,1,1,1,1,1,1]`, []Finding{
			v("/0", "/items/type"), v("/1", "/items/type"), v("/2", "/items/type"), v("/3", "/items/type"),
			v("/4", "/items/type"), v("/5", "/items/type"), v("/6", "/items/type"), v("/7", "/items/type")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustJSON(t, c.schema, Options{})
			for range 3 {
				if diff := cmp.Diff(c.want, s.Validate(context.Background(), c.answer)); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

func TestConcurrent(t *testing.T) {
	s := mustJSON(t, `{"properties":{"a":{"enum":[[1,{"b":2}],"x"]},"c":{"pattern":"^a+$"}},"dependentRequired":{"a":["c"]}}`, Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if f := s.Validate(context.Background(), `{"a":[1,{"b":2.0}],"c":"aaa"}`); f != nil {
					t.Error(f)
				}
				if f := s.Validate(context.Background(), `{"a":[1,{"b":3}],"c":"b"}`); len(f) != 2 {
					t.Error(f)
				}
			}
		})
	}
	wg.Wait()
}

func TestFormats(t *testing.T) {
	for format, c := range map[string]struct{ yes, not []string }{
		"date":                  {[]string{"2024-02-29", "0000-01-01"}, []string{"2023-02-29", "2024-1-01", "2024-13-01", "2024-00-10", "2024-04-31", "x", "2024-01-01T", "２024-01-01"}},
		"time":                  {[]string{"00:00:00Z", "23:59:60Z", "15:59:60-08:00", "12:00:00.5z", "12:00:00+23:59"}, []string{"24:00:00Z", "12:00:60Z", "12:00:00", "12:00:00.Z", "12:00:00+24:00", "12:00:00+1:00", "1:00:00Z"}},
		"date-time":             {[]string{"2026-11-30T03:00:00Z", "2026-11-30t03:00:00.123+01:00"}, []string{"2026-11-30 03:00:00Z", "2026-11-30", "2026-11-31T03:00:00Z", "2026-11-30T03:00"}},
		"duration":              {[]string{"P1Y2M3DT4H5M6S", "PT1M", "P4W", "P1D"}, []string{"P", "PT", "1D", "P1", "P1S", "PT1D", "P1M1Y", "P1W1D", "P1DT"}},
		"email":                 {[]string{"a@b.c", "a.b+c@example.org", `"a b"@x.y`, "a@[127.0.0.1]", "a@[IPv6:::1]"}, []string{"a", "@b.c", "a@", ".a@b.c", "a..b@c.d", "a b@c.d", "a@-b.c", "a@[1.2.3]", "é@x.y"}},
		"hostname":              {[]string{"localhost", "a-b.example", "1.2"}, []string{"", "-a", "a-", "a..b", "a_b", "é", strings.Repeat("a", 64), "a."}},
		"ipv4":                  {[]string{"0.0.0.0", "255.255.255.255"}, []string{"256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5", "::1"}},
		"ipv6":                  {[]string{"::", "::1", "2001:db8::ff00:42:8329", "::ffff:1.2.3.4"}, []string{"1.2.3.4", ":::", "fe80::1%eth0", "12345::"}},
		"uri":                   {[]string{"http://a.b/c?d#e", "urn:isbn:1", "mailto:a@b", "http://[::1]:80/", "x:", "http://u:p@h/%20"}, []string{"//a", "a", "", "http://a b", "http://[::1", "http://a/%zz", "1:a", "http://a:x/", "http://é", `http://a\b`, "http://a/{b}"}},
		"uri-reference":         {[]string{"", "a", "//a/b", "../c?d", "#e", "http://a"}, []string{`\a`, "a b", "1:a"}},
		"iri":                   {[]string{"http://é/ü"}, []string{"é", "http://a b"}},
		"uri-template":          {[]string{"http://a/{b}{?c,d*}{+e:3}", "x"}, []string{"{", "}", "{}", "{a b}", "a b", "{a{b}}"}},
		"uuid":                  {[]string{"123e4567-e89b-12d3-a456-426614174000", "ABCDEF00-0000-0000-0000-000000000000"}, []string{"123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g", ""}},
		"regex":                 {[]string{"^a$", `\d+`, "(?=a)"}, []string{"(", "*", `[`}},
		"json-pointer":          {[]string{"", "/a/b~0~1", "/"}, []string{"a", "/~", "/~2", "#/a"}},
		"relative-json-pointer": {[]string{"0", "1/a", "0#"}, []string{"", "01", "-1/a", "a", "0##"}},
		"nobody-knows-this":     {[]string{"anything"}, nil},
	} {
		schema := fmt.Sprintf(`{"format":%q}`, format)
		s := mustJSON(t, schema, Options{AssertFormats: true})
		if f := s.Validate(context.Background(), "1"); f != nil {
			t.Errorf("%s: a number is refused", format)
		}
		for _, text := range c.yes {
			if f := s.Validate(context.Background(), quote(text)); f != nil {
				t.Errorf("%s: %q is refused", format, text)
			}
		}
		for _, text := range c.not {
			if diff := cmp.Diff([]Finding{{SchemaViolation, "", "/format"}}, s.Validate(context.Background(), quote(text))); diff != "" {
				t.Errorf("%s: %q: %s", format, text, diff)
			}
			if f := judge(t, schema, quote(text)); f != nil {
				t.Errorf("%s: %q is refused though formats are annotations", format, text)
			}
		}
	}
	if len(Formats()) != len(formats) {
		t.Error("Formats is not the whole list")
	}
}

func TestMatchTimeout(t *testing.T) {
	s := mustJSON(t, `{"items":{"pattern":"^(a|a)*(a|aa)*$"}}`, Options{MatchTimeout: 100 * time.Millisecond})
	start := time.Now()
	text := `["` + strings.Repeat("a", 5000) + `b"]`
	f := s.Validate(context.Background(), text)
	if diff := cmp.Diff([]Finding{{ValidationWork, "/0", "/items"}}, f); diff != "" {
		t.Error(diff)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}
