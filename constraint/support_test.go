package constraint

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//go:generate go test -run TestSupportTable -update .

var update = flag.Bool("update", false, "write the generated documents")

// supportRows are the constructs of the table, each with a schema that uses
// it. What the table says of them is asked of Compile and Admit.
var supportRows = []struct {
	title string
	rows  [][2]string
}{
	{"Any value", [][2]string{
		{"`type`", `{"type":["string","null"]}`},
		{"`enum`, `const`", `{"enum":["a",1,null]}`},
		{"`enum`, `const` with more digits than a double", `{"const":9007199254740993}`},
		{"`$ref` inside the schema, also recursive", `{"properties":{"a":{"$ref":"#"}}}`},
		{"`$ref` out of the schema", `{"$ref":"https://example.com/a.json"}`},
		{"`$ref` that consumes nothing", `{"$ref":"#"}`},
		{"required without end", `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`},
		{"`$dynamicRef` with a `$dynamicAnchor`", `{"$dynamicRef":"#x","$defs":{"a":{"$dynamicAnchor":"x"}}}`},
		{"unknown `$schema`", `{"$schema":"https://example.com/dialect"}`},
	}},
	{"Combined schemas", [][2]string{
		{"`allOf`", `{"allOf":[{"type":"string"},{"maxLength":3}]}`},
		{"`anyOf`", `{"anyOf":[{"type":"string"},{"type":"integer"}]}`},
		{"`oneOf`, branches exclude each other", `{"oneOf":[{"type":"string"},{"type":"integer"}]}`},
		{"`oneOf`, branches may overlap", `{"oneOf":[{"minimum":2},{"type":"integer"}]}`},
		{"`not`", `{"not":{"type":"string"}}`},
		{"`if`, `then`, `else`", `{"if":{"type":"string"},"then":{"maxLength":2}}`},
	}},
	{"Strings", [][2]string{
		{"`minLength`, `maxLength`", `{"type":"string","maxLength":20}`},
		{"`pattern`", `{"type":"string","pattern":"^[a-z]+$"}`},
		{"`pattern` with lookaround", `{"type":"string","pattern":"^(?!x)"}`},
		{"`pattern` with `\\b` or a backreference", `{"type":"string","pattern":"\\bcat"}`},
		{"`format`: " + strings.Join([]string{"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"}, ", "), `{"type":"string","format":"date"}`},
		{"`format`: any other (an annotation)", `{"type":"string","format":"iri"}`},
	}},
	{"Numbers", [][2]string{
		{"`minimum`, `maximum`, exclusive ones", `{"type":"integer","minimum":0,"maximum":10}`},
		{"bounds of 64-bit integers: `maximum` 2⁶³−1", `{"type":"integer","minimum":0,"maximum":9223372036854775807}`},
		{"bounds of 64-bit integers: `minimum` −2⁶³", `{"type":"integer","minimum":-9223372036854775808}`},
		{"bounds from 10¹⁵ on a number with a fraction", `{"type":"number","maximum":1e15}`},
		{"`multipleOf`", `{"type":"number","multipleOf":0.25}`},
		{"`multipleOf` that a double cannot step (0.07)", `{"type":"number","multipleOf":0.07}`},
	}},
	{"Arrays", [][2]string{
		{"`items`, `prefixItems`", `{"type":"array","prefixItems":[{"type":"string"}],"items":false}`},
		{"`minItems`, `maxItems`", `{"type":"array","maxItems":4}`},
		{"`uniqueItems`", `{"type":"array","uniqueItems":true}`},
		{"`contains`, `minContains`, `maxContains`", `{"type":"array","contains":{"type":"string"}}`},
		{"`unevaluatedItems` alone", `{"prefixItems":[{}],"unevaluatedItems":false}`},
		{"`unevaluatedItems` beside combined schemas", `{"anyOf":[{"prefixItems":[{}]}],"unevaluatedItems":false}`},
	}},
	{"Objects", [][2]string{
		{"`properties`, `required`, `additionalProperties`", `{"properties":{"a":{}},"required":["a"],"additionalProperties":false}`},
		{"`patternProperties`, no name matches two", `{"patternProperties":{"^a":{},"^b":{}}}`},
		{"`patternProperties`, a name may match two", `{"patternProperties":{"^a":{"type":"string"},"b$":{"maxLength":3}},"additionalProperties":false}`},
		{"`minProperties`, `maxProperties`, all listed members required", `{"properties":{"a":{}},"required":["a"],"maxProperties":3}`},
		{"`minProperties`, `maxProperties`, some optional", `{"properties":{"a":{},"b":{}},"minProperties":2}`},
		{"`propertyNames`", `{"propertyNames":{"maxLength":3}}`},
		{"`dependentRequired`, `dependencies`", `{"dependentRequired":{"a":["b"]}}`},
		{"`dependentSchemas`", `{"dependentSchemas":{"a":{"required":["b"]}}}`},
		{"`unevaluatedProperties` alone", `{"properties":{"a":{}},"unevaluatedProperties":false}`},
		{"`unevaluatedProperties` beside combined schemas", `{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`},
	}},
}

// supportCell asks what becomes of a schema on an engine.
func supportCell(schema string, enforce Enforce, e Engine) string {
	con, err := Compile(Spec{Kind: JSON, Source: []byte(schema)}, Options{Enforce: enforce})
	if err != nil {
		return "refused"
	}
	by, err := con.Admit(e)
	if err != nil {
		return "refused"
	}
	return string(by)
}

func supportTable() string {
	local := LocalEngine("")
	server := Engine{Name: "a server", Declared: DeclaredServer, Kinds: []Kind{JSON}}
	none := Engine{Name: "a script", Declared: DeclaredScript}
	var b strings.Builder
	b.WriteString(`# What enforces which part of a JSON Schema

This page is generated from the code that decides; do not edit it
(` + "`go generate ./constraint`" + `). Each row is a schema that uses the construct,
compiled and admitted:

- **mask**: every token is masked by the whole schema.
- **mask+validation**: the mask holds the rest; validation decides this part.
- **server+validation**: the server constrains, validation decides.
- **validation**: nothing is constrained; validation decides.
- **refused**: no turn starts; the error names the construct, the path, and
  line and column.

Every answer is validated in any case. The engines: ` + "`local`" + ` masks in this
process with ` + local.Name + `; ` + "`server`" + ` stands for a server that passed its probe for
JSON Schema; ` + "`none`" + ` for a model that declares no constraints (under
` + "`enforce: mask`" + ` it is always refused).
`)
	for _, s := range supportRows {
		fmt.Fprintf(&b, "\n## %s\n\n| Construct | local, `enforce: mask` | local, `enforce: validate` | server, `mask` | server, `validate` | none, `validate` |\n|---|---|---|---|---|---|\n", s.title)
		for _, r := range s.rows {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r[0],
				supportCell(r[1], EnforceMask, local), supportCell(r[1], EnforceValidate, local),
				supportCell(r[1], EnforceMask, server), supportCell(r[1], EnforceValidate, server),
				supportCell(r[1], EnforceValidate, none))
		}
	}
	return b.String()
}

// TestSupportTable compares docs/schema-support.md with what the code does.
func TestSupportTable(t *testing.T) {
	needNative(t)
	path := filepath.Join("..", "docs", "schema-support.md")
	got := supportTable()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("docs/schema-support.md is out of date; run go generate ./constraint\n%s", d)
	}
}
