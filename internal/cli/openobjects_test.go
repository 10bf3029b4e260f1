package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpenObjects(t *testing.T) {
	for _, tt := range []struct {
		name, schema string
		want         []openObject
	}{
		{"closed", `{"properties":{"a":{}},"additionalProperties":false}`, nil},
		{"says so", `{"properties":{"a":{}},"additionalProperties":{"type":"string"}}`, nil},
		{"open", `{"properties":{"a":{}}}`, []openObject{{"", 1, 1}}},
		{"free-form", `{"type":"object"}`, nil},
		{"nested", "{\"additionalProperties\":false,\n  \"properties\": {\"a/b\": {\"properties\":{}}}}", []openObject{{"/properties/a~1b", 2, 25}}},
		{"in a list", `{"items":{"properties":{}},"prefixItems":[{"properties":{}}]}`, []openObject{{"/items", 1, 10}, {"/prefixItems/0", 1, 43}}},
		{"closed around", `{"unevaluatedProperties":false,"allOf":[{"properties":{"a":{}}}]}`, nil},
		{"a property called properties", `{"additionalProperties":false,"properties":{"properties":{"type":"string"}}}`, nil},
		{"not a schema", `{"enum":[{"properties":{}}],"const":{"properties":{}}}`, nil},
		{"wide characters", `{"title":"äö","$defs":{"x":{"properties":{}}}}`, []openObject{{"/$defs/x", 1, 28}}},
		{"not JSON", `{"properties":`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := openObjects([]byte(tt.schema))
			if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(openObject{})); d != "" {
				t.Error(d)
			}
		})
	}
}
