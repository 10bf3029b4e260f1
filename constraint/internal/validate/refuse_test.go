package validate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSchemaRefused(t *testing.T) {
	for _, c := range []struct {
		schema    string
		want      SchemaError // without Reason
		reason    string      // part of it
		construct string
	}{
		{schema: `{"type":"strng"}`, want: SchemaError{"/type", "type", "", 1, 2}, reason: "'type' may be"},
		{schema: `{"type":["string","strng"]}`, want: SchemaError{"/type/1", "type", "", 1, 19}, reason: "'type' may be"},
		{schema: `{"type":["string","string"]}`, want: SchemaError{"/type", "type", "", 1, 2}, reason: "twice"},
		{schema: "{\n  \"properties\": {\n    \"é\": {\"minLength\": -1}\n  }\n}", want: SchemaError{"/properties/é/minLength", "minLength", "", 3, 11}, reason: "at least zero"},
		{schema: `{"minLength":1.5}`, want: SchemaError{"/minLength", "minLength", "", 1, 2}, reason: "an integer"},
		{schema: `{"pattern":"("}`, want: SchemaError{"/pattern", "pattern", "", 1, 2}, reason: "regular expression"},
		{schema: `{"patternProperties":{"[":{}}}`, want: SchemaError{"/patternProperties/[", "patternProperties", "", 1, 23}, reason: "regular expression"},
		{schema: `{"items":[{}]}`, want: SchemaError{"/items", "items", "", 1, 2}, reason: "prefixItems"},
		{schema: `{"exclusiveMinimum":true}`, want: SchemaError{"/exclusiveMinimum", "exclusiveMinimum", "", 1, 2}, reason: "a number"},
		{schema: `{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":1}`, want: SchemaError{"/exclusiveMinimum", "exclusiveMinimum", "", 1, 54}, reason: "later '$schema'"},
		{schema: `{"$schema":"http://json-schema.org/draft-04/schema#","not":true}`, want: SchemaError{"/not", "not", "", 1, 54}, reason: "an object"},
		{schema: `{"multipleOf":0}`, want: SchemaError{"/multipleOf", "multipleOf", "", 1, 2}, reason: "above zero"},
		{schema: `{"required":["a","a"]}`, want: SchemaError{"/required", "required", "", 1, 2}, reason: "different strings"},
		{schema: `{"required":"a"}`, want: SchemaError{"/required", "required", "", 1, 2}, reason: "different strings"},
		{schema: `{"properties":[]}`, want: SchemaError{"/properties", "properties", "", 1, 2}, reason: "an object"},
		{schema: `{"properties":{"a":1}}`, want: SchemaError{"/properties/a", "properties", "", 1, 16}, reason: "a schema"},
		{schema: `{"allOf":[]}`, want: SchemaError{"/allOf", "allOf", "", 1, 2}, reason: "non-empty"},
		{schema: `{"anyOf":[{},{"type":1}]}`, want: SchemaError{"/anyOf/1/type", "type", "", 1, 15}, reason: "'type' may be"},
		{schema: `{"$anchor":"1a"}`, want: SchemaError{"/$anchor", "$anchor", "", 1, 2}, reason: "starts with a letter"},
		{schema: `{"$id":"http://a/#b"}`, want: SchemaError{"/$id", "$id", "", 1, 2}, reason: "fragment"},
		{schema: `{"$defs":{"a":{"$id":"http://a/"},"b":{"$id":"http://a/"}}}`, want: SchemaError{"/$defs/b/$id", "$id", "", 1, 40}, reason: "same '$id'"},
		{schema: `{"$schema":"http://json-schema.org/draft-04/schema#","definitions":{"a":{"id":"http://a/"},"b":{"id":"http://a/"}},"not":{"$ref":"http://a/"}}`,
			want: SchemaError{"/not/$ref", "$ref", "", 1, 123}, reason: "more than one"},
		{schema: `{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, want: SchemaError{"/$defs/b/$anchor", "$anchor", "", 1, 36}, reason: "same anchor"},
		{schema: `{"$schema":"http://example.org/mine"}`, want: SchemaError{"/$schema", "$schema", "", 1, 2}, reason: "not known"},
		{schema: `{"$schema":"http://json-schema.org/draft-03/schema#"}`, want: SchemaError{"/$schema", "$schema", "", 1, 2}, reason: "not known"},
		{schema: `{"$schema":4}`, want: SchemaError{"/$schema", "$schema", "", 1, 2}, reason: "a string"},
		{schema: `{"$ref":"http://example.org/s.json"}`, want: SchemaError{"/$ref", "$ref", "", 1, 2}, reason: "outside"},
		{schema: `{"$ref":"other.json#/a"}`, want: SchemaError{"/$ref", "$ref", "", 1, 2}, reason: "outside"},
		{schema: `{"$ref":"file:///etc/passwd"}`, want: SchemaError{"/$ref", "$ref", "", 1, 2}, reason: "outside"},
		{schema: `{"$ref":"#/$defs/a"}`, want: SchemaError{"/$ref", "$ref", "", 1, 2}, reason: "at nothing"},
		{schema: `{"$ref":"#a"}`, want: SchemaError{"/$ref", "$ref", "", 1, 2}, reason: "anchor"},
		{schema: `{"$ref":"#/a~2"}`, want: SchemaError{"/$ref", "$ref", "", 1, 2}, reason: "'~'"},
		{schema: `{"title":"x","$ref":"#/title"}`, want: SchemaError{"/title", "$ref", "", 1, 2}, reason: "no schema"},
		{schema: `{"$ref":"#"}`, want: SchemaError{"/$ref", "$ref", "", 1, 2}, reason: "consumes nothing"},
		{schema: `{"allOf":[{"$ref":"#"}]}`, want: SchemaError{"/allOf/0/$ref", "$ref", "", 1, 12}, reason: "consumes nothing"},
		{schema: `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`,
			want: SchemaError{"/$defs/b/not/$ref", "$ref", "", 1, 95}, reason: "consumes nothing"},
		{schema: `[]`, want: SchemaError{"", "schema", "", 1, 1}, reason: "object or a boolean"},
		{schema: `"a"`, want: SchemaError{"", "schema", "", 1, 1}, reason: "object or a boolean"},
		{schema: ``, want: SchemaError{"", "JSON", "", 1, 1}, reason: "ends"},
		{schema: "{\n\"type\": \"string\",\n}", want: SchemaError{"", "JSON", "", 3, 1}, reason: "member name"},
		{schema: `{"type":"string","type":"null"}`, want: SchemaError{"/type", "JSON", "", 1, 18}, reason: "twice"},
		{schema: `{"minimum":1` + strings.Repeat("0", 1000) + `}`, want: SchemaError{"/minimum", "JSON", "", 1, 12}, reason: "longer than 1000"},
		{schema: `{"minimum":1e9999999999999999}`, want: SchemaError{"/minimum", "JSON", "", 1, 12}, reason: "exponent"},
		{schema: strings.Repeat(`{"not":`, 300) + `{}` + strings.Repeat(`}`, 300), want: SchemaError{strings.Repeat("/not", 64), "JSON", "", 1, 1793}, reason: "deeper"},
		{schema: `{"description":"\ud800"}`, want: SchemaError{"/description", "JSON", "", 1, 17}, reason: "surrogate"},
		{schema: "{\"a\":\"\xff\"}", want: SchemaError{"", "JSON", "", 1, 7}, reason: "UTF-8"},
	} {
		s, err := JSON([]byte(c.schema), Options{})
		got, ok := err.(*SchemaError)
		if !ok {
			t.Errorf("%.80s: error %v, schema %v", c.schema, err, s != nil)
			continue
		}
		if diff := cmp.Diff(&c.want, got, cmpopts.IgnoreFields(SchemaError{}, "Reason")); diff != "" {
			t.Errorf("%.80s: %s", c.schema, diff)
		}
		if !strings.Contains(got.Reason, c.reason) || strings.HasSuffix(got.Reason, ".") {
			t.Errorf("%.80s: reason %q, want %q in it", c.schema, got.Reason, c.reason)
		}
	}
}

// What looks like a fault and is none.
func TestSchemaAccepted(t *testing.T) {
	for _, schema := range []string{
		`{"$schema":"http://json-schema.org/schema#"}`,
		`{"properties":{"next":{"$ref":"#"}}}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/a"}}}}`,
		`{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{}}}`,
		`{"unknown":{"type":"strng"},"nullable":true}`,
		`{"properties":{"$ref":{"type":"string"}}}`,
		`{"enum":[{"$ref":"http://example.org/"},{"$id":"x"},{"$id":"x"}]}`,
		`{"default":{"type":"strng"},"examples":[]}`,
		`{"minLength":2.0,"maxItems":1e2}`,
		`{"$defs":{"a":{"$schema":"http://example.org/ignored"}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","items":{"id":"a","not":{"id":"a"}},"not":{"id":"a"}}`,
		`{"id":"http://a/b","items":{"id":"http://a/b"}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{},true]}`,
		`{"$id":"http://example.org/s.json","$ref":"s.json#/$defs/a","$defs":{"a":{"type":"null"}}}`,
		`{"$id":"urn:example:s","$ref":"urn:example:s#a","$defs":{"a":{"$anchor":"a"}}}`,
	} {
		if _, err := JSON([]byte(schema), Options{}); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// doubling is a schema that applies 2^n subschemas.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"integer"}}}`, n)
	return b.String()
}

func TestWorkIsBounded(t *testing.T) {
	wide := `[` + strings.Repeat(`1,`, 60000) + `1]`
	object := `{`
	for i := range 20000 {
		object += fmt.Sprintf(`"k%d":0,`, i)
	}
	object += `"z":0}`
	patterns := `{"patternProperties":{`
	for i := range 1400 {
		patterns += fmt.Sprintf(`"x%dy":{},`, i)
	}
	patterns += `"zz":{}}}`
	many := func(kw, s string, n int) string {
		return `{"items":{"` + kw + `":[` + strings.Repeat(s+",", n-1) + s + `]}}`
	}
	for _, c := range []struct{ name, schema, answer string }{
		{"allOf to the 23rd", doubling(23), `1`},
		{"allOf to the 60th", doubling(60), `1`},
		{"failing", doubling(60), `"a"`},
		{"inside not", `{"not":` + strings.Replace(doubling(60), "#/$defs", "#/not/$defs", -1) + `}`, `1`},
		{"true a thousand times", many("allOf", "true", 1000), wide},
		{"empty a thousand times", many("allOf", "{}", 1000), wide},
		{"false a thousand times", strings.Replace(many("anyOf", "false", 1000), `"items":`, `"items":{"not":`, 1) + "}", wide},
		{"many patterns", patterns, object},
		{"names", `{"propertyNames":{"allOf":[` + strings.Repeat(`{"minLength":0},`, 1000) + `true]}}`, object},
		{"long number", `{"allOf":[` + strings.Repeat(`{"multipleOf":1.5},`, 5000) + `true]}`, strings.Repeat("3", 1<<20)},
		{"long number and divisor", `{"allOf":[` + strings.Repeat(`{"multipleOf":`+strings.Repeat("7", 999)+`},`, 1000) + `true]}`, strings.Repeat("7", 999*1001)},
		{"large constant", `{"$defs":{"c":{"const":` + wide + `}},"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/c"},`, 500) + `true]}`, wide},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustJSON(t, c.schema, Options{Limits: Limits{Work: 1 << 20}})
			start := time.Now()
			f := s.Validate(context.Background(), c.answer)
			took := time.Since(start)
			if c.name == "failing" { // the eighth finding ends it first
				if len(f) != 8 || f[0].Code != SchemaViolation {
					t.Errorf("%v", f)
				}
			} else if len(f) == 0 || f[0].Code != ValidationWork {
				t.Errorf("%v", f)
			}
			if took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			t.Log(took)
		})
	}
	// One unit for each schema applied to each value, no more.
	s := mustJSON(t, `{"items":{"type":"integer"}}`, Options{Limits: Limits{Work: 11}})
	if f := s.Validate(context.Background(), `[1,2,3,4,5,6,7,8,9,10]`); f != nil {
		t.Errorf("eleven units: %v", f)
	}
	want := []Finding{{ValidationWork, "/10", "/items"}}
	if diff := cmp.Diff(want, s.Validate(context.Background(), `[1,2,3,4,5,6,7,8,9,10,11]`)); diff != "" {
		t.Error(diff)
	}
}

// A chain of references as long as a schema may be, run through again at
// every level of the answer.
func TestNestingIsBounded(t *testing.T) {
	const n = 5000
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"items":{"$ref":"#"}}}}`, n)
	s := mustJSON(t, b.String(), Options{})
	if f := s.Validate(context.Background(), `[[]]`); f != nil {
		t.Errorf("two levels: %v", f)
	}
	f := s.Validate(context.Background(), strings.Repeat("[", 60)+strings.Repeat("]", 60))
	if len(f) != 1 || f[0].Code != ValidationWork {
		t.Errorf("sixty levels: %v", f)
	}
}

// countdown is a context that ends after it was asked a number of times.
type countdown struct {
	context.Context
	left *int
}

func (c countdown) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestCancelled(t *testing.T) {
	s := mustJSON(t, doubling(60), Options{})
	left := 3
	f := s.Validate(countdown{context.Background(), &left}, `1`)
	if len(f) != 1 || f[0].Code != ValidationWork {
		t.Errorf("%v", f)
	}
	if left < -2 {
		t.Errorf("asked %d more times", -left)
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if f := s.Validate(done, `{`); len(f) != 1 || f[0].Code != ValidationWork {
		t.Errorf("cancelled before: %v", f)
	}
}
