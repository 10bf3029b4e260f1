package relax

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentgraph/constraint/internal/jsontree"
	"github.com/google/go-cmp/cmp"
)

func run(t *testing.T, schema string, opt Options) (*Result, *Problem) {
	t.Helper()
	tree, err := jsontree.Parse([]byte(schema), jsontree.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	if opt.Visits == 0 {
		opt.Visits = 1000
	}
	opt.AnswerBytes, opt.AnswerNodes = 1<<20, 65536
	return Relax(tree, opt)
}

func TestText(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"nothing to do", `{ "type" : "object", "properties":{"b":{},"a":{}} }`, `{ "type" : "object", "properties":{"b":{},"a":{}} }`},
		{"an expression spelled out", `{"pattern":"^\\d$"}`, `{"pattern":"^[0-9]$"}`},
		{"an unknown format", `{"format":"colour","type":"string"}`, `{"type":"string"}`},
		{"siblings of $ref in draft 7", `{"$schema":"http://json-schema.org/draft-07/schema","$ref":"#/definitions/a","type":"null","definitions":{"a":{}}}`,
			`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","definitions":{"a":{}}}`},
		{"exclusive bounds of draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true,"exclusiveMaximum":false}`,
			`{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":1}`},
		{"oneOf that excludes", `{"oneOf":[{"type":"null"},{"type":"string"}]}`, `{"anyOf":[{"type":"null"},{"type":"string"}]}`},
		{"oneOf beside anyOf", `{"anyOf":[{"type":"null"}],"oneOf":[{"type":"null"}]}`, `{"anyOf":[{"type":"null"}],"allOf":[{"anyOf":[{"type":"null"}]}]}`},
		{"contains asks for an item", `{"contains":{"type":"null"}}`, `{"minItems":1}`},
		{"what is under not is gone with it", `{"not":{"uniqueItems":true},"type":"array"}`, `{"type":"array"}`},
		{"unevaluated alone", `{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"properties":{"a":{}},"additionalProperties":false}`},
		{"unevaluated beside what went", `{"dependentSchemas":{"a":{"properties":{"b":{}}}},"unevaluatedProperties":false}`, `{}`},
		{"patterns next to additionalProperties", `{"patternProperties":{"^a":{}},"anyOf":[{}],"additionalProperties":false}`, `{"anyOf":[{}],"patternProperties":{"^a":{}},"additionalProperties":false}`},
		{"a pattern of names nobody can hold", `{"patternProperties":{"^(?=a)":{"type":"null"}},"additionalProperties":{"type":"string"}}`, `{"additionalProperties":{"anyOf":[{"type":"null"},{"type":"string"}]}}`},
		{"a constant with too many digits", `{"const":9007199254740993}`, `{"type":["number"]}`},
		{"a part that never ends", `{"properties":{"a":{"$ref":"#/$defs/e"}},"$defs":{"e":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/e"}}}}`,
			`{"properties":{"a":false},"$defs":{"e":false}}`},
		{"a bound nobody can reach", `{"type":"string","maxLength":99999999}`, `{"type":"string"}`},
		{"dynamic references without anchors", `{"properties":{"a":{"$dynamicRef":"#"}}}`, `{"properties":{"a":{"$ref":"#"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, p := run(t, c.in, Options{})
			if p != nil {
				t.Fatalf("%+v", p)
			}
			if got := string(r.Root.Bytes()); got != c.out {
				t.Errorf("got  %s\nwant %s", got, c.out)
			}
		})
	}
}

// TestCost: what is too dear for the engine as a whole loses its expressions,
// or is opened; what people write is left alone.
func TestCost(t *testing.T) {
	many := func(n int, f string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"p%d":`+f, i, i))
		}
		return strings.Join(all, ",")
	}
	const number, object = `{"type":"number","minimum":%d.123456789}`, `{"type":"object","properties":{"k":{"const":%d}}}`
	for _, c := range []struct {
		name, schema string
		items        []string // constructs, each once
		holds        string   // what is still in the text
	}{
		{"200 bounds", `{"properties":{` + many(200, number) + `}}`, nil, `"minimum"`},
		{"800 bounds", `{"properties":{` + many(800, number) + `}}`, []string{"minimum"}, `"p799":{"type":"number"}`},
		{"400 objects", `{"properties":{` + many(400, object) + `}}`, nil, `"p399":{`},
		{"800 objects", `{"type":"object","properties":{` + many(800, object) + `}}`, []string{"schema"}, `{"type":"object"}`},
	} {
		r, p := run(t, c.schema, Options{Visits: 10_000})
		if p != nil {
			t.Fatalf("%s: %+v", c.name, p)
		}
		var items []string
		for _, it := range r.Items {
			if !slices.Contains(items, it.Construct) {
				items = append(items, it.Construct)
			}
		}
		if d := cmp.Diff(c.items, items); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if text := string(r.Root.Bytes()); !strings.Contains(text, c.holds) {
			t.Errorf("%s: the text holds no %s", c.name, c.holds)
		}
	}
}

func TestItemsAreNamedInOrder(t *testing.T) {
	r, p := run(t, `{"properties":{"a":{"uniqueItems":true},"b":{"type":"string","pattern":"a(?!b)","format":"iri"}},"if":{},"then":{"type":"object"}}`,
		Options{AssertFormats: true, Asserted: func(f string) bool { return f == "iri" }})
	if p != nil {
		t.Fatalf("%+v", p)
	}
	want := []Item{
		{"uniqueItems", "/properties/a", 20, ""},
		{"pattern", "/properties/b", 61, "lookahead"},
		{"format", "/properties/b", 80, "the format 'iri'"},
		{"if", "", 97, ""},
	}
	if d := cmp.Diff(want, r.Items); d != "" {
		t.Error(d)
	}
}

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		text, plain string
		exact       bool
	}{
		{"0", "0", true}, {"-0.0", "0", true}, {"1e3", "1000", true}, {"12.50", "12.5", true}, {"1E-3", "0.001", true},
		{"9007199254740993", "9007199254740993", false}, {"0.1", "0.1", true}, {"0.12345678901234567891", "0.12345678901234567891", false},
		{"-120e-1", "-12", true}, {"1e400", "", false},
	} {
		d, ok := parseDecimal(c.text)
		if !ok {
			t.Errorf("%s is not read", c.text)
			continue
		}
		if _, exact := d.float(); exact != c.exact {
			t.Errorf("%s: exact %v", c.text, exact)
		}
		if c.plain != "" && d.plain() != c.plain {
			t.Errorf("%s: plain %s, want %s", c.text, d.plain(), c.plain)
		}
	}
	if _, ok := parseDecimal("1e999999999999"); ok {
		t.Error("an exponent past any use is read")
	}
}

func TestReorder(t *testing.T) {
	schema := jsontree.Raw(`{"properties":{"b":{},"a":{"$ref":"#/$defs/x"}},"oneOf":[
		{"properties":{"k":{"const":1},"z":{},"y":{}}},{"properties":{"k":{"const":2},"y":{},"z":{}}}],
		"$defs":{"x":{"properties":{"q":{},"p":{}}}}}`)
	v := jsontree.Raw(`{"more":1,"a":{"p":1,"q":2},"z":1,"y":2,"k":2,"b":0}`)
	Reorder(schema, v)
	if got, want := string(v.Compact()), `{"b":0,"a":{"q":2,"p":1},"k":2,"y":2,"z":1,"more":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
