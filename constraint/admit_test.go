package constraint

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestConstructs: what the mask does not hold is refused by name and place
// under mask, and left to validation under validate, where the mask still
// takes everything the schema takes.
func TestConstructs(t *testing.T) {
	needNative(t)
	for _, c := range []struct {
		schema, construct, path string
		yes, no                 string // no is invalid; the mask may take it
	}{
		{`{"properties":{"notes":{"type":"array","items":{"type":"array","uniqueItems":true}}}}`, "uniqueItems", "/properties/notes/items", `{"notes":[[1,2]]}`, `{"notes":[[1,1]]}`},
		{`{"not":{"type":"string"}}`, "not", "", `1`, `"x"`},
		{`{"if":{"type":"string"},"then":{"maxLength":1}}`, "if", "", `"a"`, `"ab"`},
		{`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, "oneOf", "", `1`, `3`},
		{`{"type":"array","contains":{"type":"integer"}}`, "contains", "", `["a",1]`, `["a"]`},
		{`{"dependentRequired":{"a":["b"]}}`, "dependentRequired", "", `{"a":1,"b":2}`, `{"a":1}`},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, "dependentSchemas", "", `{"a":1,"b":2}`, `{"a":1}`},
		{`{"dependencies":{"a":["b"]}}`, "dependencies", "", `{"a":1,"b":2}`, `{"a":1}`},
		{`{"propertyNames":{"maxLength":1}}`, "propertyNames", "", `{"a":1}`, `{"ab":1}`},
		{`{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, "unevaluatedProperties", "", `{"a":1}`, `{"b":1}`},
		{`{"anyOf":[{"prefixItems":[{"type":"integer"}]}],"unevaluatedItems":false}`, "unevaluatedItems", "", `[1]`, `[1,2]`},
		{`{"properties":{"a":{},"b":{},"c":{}},"minProperties":2}`, "minProperties", "", `{"a":1,"c":2}`, `{"b":1}`},
		{`{"properties":{"a":{},"b":{},"c":{}},"maxProperties":2}`, "maxProperties", "", `{"a":1,"c":2}`, `{"a":1,"b":1,"c":1}`},
		{`{"patternProperties":{"^a":{"type":"integer"},"b$":{"minimum":2}},"additionalProperties":false}`, "patternProperties", "", `{"ab":3}`, `{"ab":1}`},
		{`{"patternProperties":{"^(?=a)":{"type":"integer"}},"additionalProperties":false}`, "patternProperties", "", `{"ab":3}`, `{"ab":"x"}`},
		{`{"type":"string","pattern":"^(?!x)"}`, "pattern", "", `"a"`, `"x"`},
		{`{"type":"string","pattern":"\\bcat\\b"}`, "pattern", "", `"a cat"`, `"cats"`},
		{`{"type":"integer","minimum":-9223372036854775808}`, "minimum", "", `-5`, `-9223372036854775809`},
		{`{"type":"integer","maximum":18446744073709551615}`, "maximum", "", `18446744073709551615`, `18446744073709551616`},
		{`{"type":"number","maximum":1e20}`, "maximum", "", `5`, `200000000000000000000`},
		{`{"type":"number","multipleOf":0.07}`, "multipleOf", "", `0.14`, `0.15`},
		{`{"enum":[0.12345678901234567891,"a"]}`, "enum", "", `"a"`, `"b"`},
		{`{"$dynamicRef":"#x","$defs":{"a":{"$dynamicAnchor":"x","type":"string"}}}`, "$dynamicRef", "", `"a"`, `1`},
	} {
		t.Run(c.schema, func(t *testing.T) {
			con := mustCompile(t, JSON, c.schema)
			_, err := con.Admit(Engine{Name: "llguidance", Masks: true, Kinds: []Kind{JSON}})
			var r *Refusal
			if !errors.As(err, &r) || r.Construct != c.construct || r.Path != c.path || r.Line != 1 || !r.Capability {
				t.Fatalf("Admit under mask: %v (%+v)", err, r)
			}
			loose := mustCompile(t, JSON, c.schema, Options{Enforce: EnforceValidate})
			if by, err := loose.Admit(LocalEngine("")); by != ByMaskValidation {
				t.Errorf("Admit under validate: %v, %v", by, err)
			}
			if !maskTakes(t, loose, c.yes) || !valid(loose, c.yes) {
				t.Errorf("%s: mask %v, validation %v (%s)", c.yes, maskTakes(t, loose, c.yes), valid(loose, c.yes), loose.grammar.text)
			}
			if valid(loose, c.no) {
				t.Errorf("%s is valid", c.no)
			}
		})
	}
}

// TestExactConstructs: keywords that say nothing here, or that the mask can
// hold after all, are no reason to refuse.
func TestExactConstructs(t *testing.T) {
	needNative(t)
	for _, schema := range []string{
		`{"type":"array","uniqueItems":false}`,
		`{"type":"array","uniqueItems":true,"maxItems":1}`,
		`{"not":false}`, `{"if":{"type":"string"}}`, `{"then":{"type":"string"}}`,
		`{"oneOf":[{"type":"integer"},{"type":"string"}]}`,
		`{"oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"],"type":"object"},{"properties":{"k":{"const":"b"}},"required":["k"],"type":"object"}]}`,
		`{"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":{"a":{"type":"string"},"b":{"enum":[1,2]}}}`,
		`{"oneOf":[{"type":"integer","maximum":3},{"type":"integer","exclusiveMinimum":3}]}`,
		`{"oneOf":[{"type":"array","maxItems":1},{"type":"array","minItems":2}]}`,
		`{"oneOf":[{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false},{"type":"object","required":["b"],"properties":{"b":{}}}]}`,
		`{"anyOf":[{"type":"integer"}],"oneOf":[{"minimum":5,"type":"integer"},{"maximum":4,"type":"integer"}]}`,
		`{"type":"object","oneOf":[{"properties":{"a":{}},"required":["a"],"additionalProperties":false},{"properties":{"b":{}},"required":["b"],"additionalProperties":false}]}`,
		`{"oneOf":[{"type":"object","properties":{"m":{"type":"string"}},"required":["m"]},{"type":"object","patternProperties":{"^(m|n)$":{"type":"null"}},"required":["k"]}]}`,
		`{"type":"array","contains":true}`,
		`{"type":"array","contains":{"type":"integer"},"minContains":0}`,
		`{"properties":{"a":{}},"unevaluatedProperties":false}`,
		`{"prefixItems":[{}],"unevaluatedItems":false}`,
		`{"dependentRequired":{"a":["b"]},"required":["b"]}`,
		`{"properties":{"a":{},"b":{}},"required":["a","b"],"minProperties":2}`,
		`{"type":"object","properties":{"a":{},"b":{}},"minProperties":1,"additionalProperties":false}`,
		`{"patternProperties":{"^a":{"type":"integer"},"^b":{"minimum":2}}}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"a":{"$recursiveRef":"#"}}}`,
		`{"type":"string","pattern":"a.*?b"}`, `{"type":"string","format":"idn-email"}`,
	} {
		con := mustCompile(t, JSON, schema)
		if by, err := con.Admit(LocalEngine("")); by != ByMask {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestRefusalWording(t *testing.T) {
	con := mustCompile(t, JSON, "{\"properties\":{\"notes\":{\"items\":{\n \"uniqueItems\":true}}}}")
	_, err := con.Admit(Engine{Name: "vllm", Kinds: []Kind{JSON}, Declared: DeclaredServer})
	const want = "system/.schema-t.json:2:2: schema at /properties/notes/items: 'uniqueItems' is not enforced by vllm; remove it, or allow it with enforce: validate"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestAdmitByDeclaringSource(t *testing.T) {
	strict := mustCompile(t, JSON, `{"type":"string"}`)
	loose := mustCompile(t, JSON, `{"type":"string"}`, Options{Enforce: EnforceValidate})
	seen := map[string]bool{}
	for _, d := range []Declared{DeclaredLocal, DeclaredServer, DeclaredPlugin, DeclaredScript} {
		e := Engine{Name: "m", Declared: d, Where: "models: big"}
		_, err := strict.Admit(e)
		var r *Refusal
		if !errors.As(err, &r) || !strings.Contains(r.Hint, "models: big") || !strings.Contains(r.Hint, "enforce: validate") || seen[r.Hint] {
			t.Errorf("%s: %v", d, err)
			continue
		}
		seen[r.Hint] = true
		if by, err := loose.Admit(e); by != ByValidation || err != nil {
			t.Errorf("%s under validate: %v, %v", d, by, err)
		}
	}
	if by, err := strict.Admit(Engine{Name: "vllm", Declared: DeclaredServer, Kinds: []Kind{JSON}}); by != ByServerValidation || err != nil {
		t.Errorf("a server that passed its probe: %v, %v", by, err)
	}
	if _, err := strict.Admit(Engine{Name: "vllm", Declared: DeclaredServer, Kinds: []Kind{Regex}}); err == nil {
		t.Error("a server whose probe for this kind failed is taken")
	}
}

func TestAdmission(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 70) + `{}` + strings.Repeat(`}`, 70)
	wide := `{"enum":[` + strings.Repeat("1,", 20000) + `1]}`
	expanding := `{"$ref":"#/$defs/a0","$defs":{`
	for i := range 20 {
		expanding += fmt.Sprintf(`"a%d":{"properties":{"x":{"$ref":"#/$defs/a%d"},"y":{"$ref":"#/$defs/a%d"}}},`, i, i+1, i+1)
	}
	expanding += `"a20":{"type":"string"}}}`
	for _, c := range []struct {
		name, schema, want string
		construct, limit   string
	}{
		{"size", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, "schema_bytes: 1048576", "size", "schema_bytes"},
		{"depth", deep, "depth than schema_depth: 64", "size", "schema_depth"},
		{"nodes", wide, "nodes than schema_nodes: 16384", "size", "schema_nodes"},
		{"visits", expanding, "schema_visits", "$ref", "schema_visits"},
		{"self", `{"$ref":"#"}`, "consumes nothing", "$ref", ""},
		{"cycle", `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#"}]}}}`, "consumes nothing", "$ref", ""},
		{"endless", "{\"type\":\"object\",\n\"properties\":{\"c\":{\"$ref\":\"#\"}},\"required\":[\"c\"]}", "f.json:2:19: schema at /properties/c: every answer would have to contain itself", "$ref", ""},
		{"endless array", `{"type":"array","items":{"$ref":"#"},"minItems":1}`, "contain itself", "$ref", ""},
		{"endless through allOf", `{"type":"object","allOf":[{"required":["c"]},{"properties":{"c":{"$ref":"#"}}}]}`, "contain itself", "$ref", ""},
		{"endless below", "{\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#/$defs/n\"}},\"required\":[\"n\"],\n\"$defs\":{\"n\":{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{\"n\":{\"$ref\":\"#/$defs/n\"}}}}}", "contain itself", "$ref", ""},
		{"types", `{"type":"string","allOf":[{"type":"integer"}]}`, "exclude each other", "type", ""},
		{"forbidden", `{"type":"object","properties":{"a":false},"required":["a"]}`, "schema at /properties/a: what has to be here is forbidden", "required", ""},
		{"not anything", `{"not":{}}`, "this 'not' accepts nothing", "not", ""},
		{"external", `{"$ref":"https://example.com/s.json"}`, "outside this schema", "$ref", ""},
		{"file", `{"$ref":"other.json#/a"}`, "outside this schema", "$ref", ""},
		{"dialect", `{"$schema":"https://example.com/mine"}`, "not known here", "$schema", ""},
		{"type", `{"properties":{"a":{"type":"strng"}}}`, "f.json:1:", "type", ""},
		{"metaschema", `{"minLength":-1}`, "f.json:1:", "minLength", ""},
		{"pattern", `{"pattern":"("}`, "f.json:1:", "pattern", ""},
		{"weakened", `{"x-guidance":{"lenient":true}}`, "weaken the schema silently", "x-guidance", ""},
		{"guidance", `{"x-guidance":{"compact":true}}`, "no option of x-guidance", "x-guidance", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(Spec{Kind: JSON, Source: []byte(c.schema), File: "f.json"}, Options{})
			var r *Refusal
			if !errors.As(err, &r) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), c.want) || r.Construct != c.construct || r.Limit != c.limit {
				t.Errorf("%v\nconstruct %q, limit %q; want %q, %q, %q", err, r.Construct, r.Limit, c.want, c.construct, c.limit)
			}
		})
	}
}

func TestUnsatisfiableByTheEngine(t *testing.T) {
	needNative(t)
	for _, c := range []struct{ schema, path string }{
		{`{"type":"object","properties":{"a":{"type":"string","minLength":3,"maxLength":2}},"required":["a"]}`, "/properties/a"},
		{`{"type":"integer","minimum":3,"maximum":2}`, ""},
		{`{"type":"string","pattern":"^a$","minLength":2}`, ""},
	} {
		_, err := Compile(Spec{Kind: JSON, Source: []byte(c.schema)}, Options{})
		var r *Refusal
		if !errors.As(err, &r) || !strings.Contains(r.Reason, "no answer can satisfy") || r.Path != c.path {
			t.Errorf("%s: %v", c.schema, err)
		}
	}
}

// TestOptionalEndlessPartIsClosed: a member that could be started and never
// ended is not offered.
func TestOptionalEndlessPartIsClosed(t *testing.T) {
	needNative(t)
	c := mustCompile(t, JSON, `{"type":"object","properties":{"n":{"$ref":"#/$defs/n"},"b":{"type":"integer"}},"additionalProperties":false,
		"$defs":{"n":{"type":"object","required":["n"],"properties":{"n":{"$ref":"#/$defs/n"}}}}}`)
	if maskTakes(t, c, `{"n":{`) || !maskTakes(t, c, `{"b":1}`) {
		t.Error("the endless member is offered")
	}
	if got, ended := prefer(t, c, `"n{:`, 300); !ended {
		t.Errorf("the walk does not end: %s", got)
	}
}

func TestStrictPreset(t *testing.T) {
	schema := `{"enum":[` + strings.Repeat("1,", 4095) + `1]}`
	if _, err := Compile(Spec{Kind: JSON, Source: []byte(schema)}, Options{Limits: Strict}); err == nil {
		t.Error("4097 nodes pass the strict preset")
	}
}
