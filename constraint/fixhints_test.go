package constraint

import (
	"slices"
	"testing"
)

// TestFixHints: what each hint says to write is held by the mask, where the
// schema before it is not.
func TestFixHints(t *testing.T) {
	needNative(t)
	cases := []struct{ construct, before, after string }{
		{"oneOf", `{"oneOf":[{"minimum":2},{"type":"integer"}]}`, `{"anyOf":[{"minimum":2},{"type":"integer"}]}`},
		{"oneOf", `{"oneOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"oneOf":[{"type":"object","properties":{"k":{"const":1}},"required":["k","a"]},{"type":"object","properties":{"k":{"const":2}},"required":["k","b"]}]}`},
		{"not", `{"not":{"type":"string"}}`, `{"type":["number","boolean"]}`},
		{"if", `{"if":{"properties":{"k":{"const":1}}},"then":{"required":["a"]}}`,
			`{"anyOf":[{"type":"object","properties":{"k":{"const":1}},"required":["k","a"]},{"type":"object","properties":{"k":{"const":2}},"required":["k"]}]}`},
		{"uniqueItems", `{"type":"array","uniqueItems":true}`, `{"type":"array"}`},
		{"contains", `{"type":"array","contains":{"type":"string"}}`, `{"type":"array","prefixItems":[{"type":"string"}],"minItems":1}`},
		{"unevaluatedItems", `{"anyOf":[{"prefixItems":[{}]}],"unevaluatedItems":false}`, `{"prefixItems":[{}],"items":false}`},
		{"unevaluatedProperties", `{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"properties":{"a":{}},"additionalProperties":false}`},
		{"dependentRequired", `{"dependentRequired":{"a":["b"]}}`, `{"properties":{"a":{},"b":{}},"anyOf":[{"required":["a","b"]},{"properties":{"a":false}}]}`},
		{"dependencies", `{"dependencies":{"a":["b"]}}`, `{"properties":{"a":{},"b":{}},"required":["a","b"]}`},
		{"dependentSchemas", `{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"anyOf":[{"properties":{"a":{},"b":{}},"required":["a","b"]},{"properties":{"a":false}}]}`},
		{"propertyNames", `{"propertyNames":{"pattern":"^x"}}`, `{"patternProperties":{"^x":{}},"additionalProperties":false}`},
		{"patternProperties", `{"patternProperties":{"^a":{},"b$":{"type":"null"}},"additionalProperties":false}`, `{"patternProperties":{"^a":{},"^b":{"type":"null"}},"additionalProperties":false}`},
		{"minProperties", `{"properties":{"a":{},"b":{}},"minProperties":2}`, `{"properties":{"a":{},"b":{}},"required":["a","b"]}`},
		{"maxProperties", `{"properties":{"a":{},"b":{}},"maxProperties":3}`, `{"properties":{"a":{},"b":{}},"required":["a","b"],"maxProperties":3}`},
		{"pattern", `{"type":"string","pattern":"^(?!x)[a-z]"}`, `{"type":"string","pattern":"^[a-wyz]"}`},
		{"minimum", `{"type":"integer","minimum":-9223372036854775808}`, `{"type":"integer","minimum":-999999999999999}`},
		{"maximum", `{"type":"number","maximum":1e20}`, `{"type":"number","maximum":999999999999999}`},
		{"exclusiveMinimum", `{"exclusiveMinimum":-1e20}`, `{"exclusiveMinimum":-999999999999999}`},
		{"exclusiveMaximum", `{"exclusiveMaximum":1e20}`, `{"exclusiveMaximum":999999999999999}`},
		{"multipleOf", `{"type":"number","multipleOf":0.07}`, `{"type":"number","multipleOf":0.25}`},
		{"const", `{"const":9007199254740993}`, `{"const":900719925474099}`},
		{"enum", `{"enum":[0.12345678901234567891,"a"]}`, `{"enum":[0.123456789012345,"a"]}`},
		{"$dynamicRef", `{"$dynamicRef":"#x","$defs":{"a":{"$dynamicAnchor":"x"}}}`, `{"$ref":"#/$defs/a","$defs":{"a":{}}}`},
	}
	shown := map[string]bool{"format": true} // only under formats: assert, below
	for _, c := range cases {
		shown[c.construct] = true
		un := mustCompile(t, JSON, c.before).Unmasked()
		if !slices.ContainsFunc(un, func(u Unmasked) bool { return u.Construct == c.construct && u.FixHint() == fixHints[c.construct] }) {
			t.Errorf("%s: the mask misses %v", c.before, un)
		}
		if by, err := mustCompile(t, JSON, c.after).Admit(LocalEngine("")); by != ByMask {
			t.Errorf("%s: %v, %v", c.after, by, err)
		}
	}
	for k := range fixHints {
		if !shown[k] {
			t.Errorf("no schema shows the hint for %s", k)
		}
	}
	assert := Options{Formats: FormatsAssert}
	if un := mustCompile(t, JSON, `{"type":"string","format":"uri-reference"}`, assert).Unmasked(); len(un) != 1 || un[0].Construct != "format" {
		t.Errorf("format: %v", un)
	}
	if un := mustCompile(t, JSON, hostileSchemas()["objects"]).Unmasked(); len(un) == 0 || un[0].FixHint() == "remove 'schema'" {
		t.Errorf("a schema that is too dear: %v", un)
	}
}
