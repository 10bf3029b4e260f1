package agents

import (
	"testing"

	"go.yaml.in/yaml/v4"
)

func TestInlineSchema(t *testing.T) {
	for _, c := range []struct{ name, in, want, bad string }{
		{"keys keep their order", "type: object\nproperties: {b: {type: integer}, a: {enum: [x, 1, null, true]}}", `{"type":"object","properties":{"b":{"type":"integer"},"a":{"enum":["x",1,null,true]}}}`, ""},
		{"numbers keep their digits", "maximum: 12345678901234567890.10", `{"maximum":12345678901234567890.10}`, ""},
		{"JSON in YAML", `{"pattern": "^\\d<\"$"}`, `{"pattern":"^\\d<\"$"}`, ""},
		{"text stays as it is", "|\n  { \"type\" : \"null\" }", "{ \"type\" : \"null\" }", ""},
		{"true", "true", "true", ""},
		{"a number JSON has not", "maximum: 0x10", "", `1:10: output.schema: "0x10" is no value of JSON; write the schema as JSON`},
		{"infinity", "maximum: .inf", "", `1:10: output.schema: ".inf" is no value of JSON; write the schema as JSON`},
		{"an alias", "a: &x {}\nb: *x", "", "2:4: output.schema: an alias is not read in a schema; write the schema as JSON"},
		{"empty", "''", "", "1:1: output.schema is empty; write a schema or remove the key"},
	} {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(c.in), &doc); err != nil {
			t.Fatal(c.name, err)
		}
		got, f := inlineSchema(doc.Content[0])
		bad := ""
		if f != nil {
			f.File = "f"
			bad = f.String()[len("f:"):]
		}
		if got != c.want || bad != c.bad {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, got, bad, c.want, c.bad)
		}
	}
}
