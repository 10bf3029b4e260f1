package constraint

import (
	"fmt"
	"strings"
	"testing"
)

// hostileSchemas try to make admission expensive.
func hostileSchemas() map[string]string {
	list := func(n int, f func(i int) string) string {
		out := make([]string, n)
		for i := range out {
			out[i] = f(i)
		}
		return strings.Join(out, ",")
	}
	doubling := func(kw string, n int) string {
		s := `{"$ref":"#/$defs/a0","$defs":{`
		for i := range n {
			next := fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i+1)
			s += fmt.Sprintf(`"a%d":{"%s":[%s,%s]},`, i, kw, next, next)
		}
		return s + fmt.Sprintf(`"a%d":{"type":"string"}}}`, n)
	}
	return map[string]string{
		"deep":           strings.Repeat(`{"items":`, 63) + `{}` + strings.Repeat(`}`, 63),
		"too deep":       strings.Repeat(`{"items":`, 100_000) + `{}` + strings.Repeat(`}`, 100_000),
		"wide":           `{"properties":{` + list(8000, func(i int) string { return fmt.Sprintf(`"p%d":true`, i) }) + `}}`,
		"wide required":  `{"properties":{` + list(4000, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"integer"}`, i) }) + `},"required":[` + list(4000, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}`,
		"enum":           `{"enum":[` + list(16000, func(i int) string { return fmt.Sprintf(`"value %d"`, i) }) + `]}`,
		"allOf doubling": doubling("allOf", 12),
		"anyOf doubling": doubling("anyOf", 12),
		"ref doubling":   doubling("allOf", 40),
		"oneOf":          `{"oneOf":[` + list(1500, func(i int) string { return fmt.Sprintf(`{"properties":{"k":{"const":%d}},"required":["k"]}`, i) }) + `]}`,
		"patterns":       `{"patternProperties":{` + list(150, func(i int) string { return fmt.Sprintf(`"^%d.*(a|b)*%d$":true`, i, i) }) + `}}`,
		"catastrophic":   `{"type":"string","pattern":"^(([a-z]+)+)+$","minLength":400,"maxLength":4000}`,
		"repetitions":    `{"type":"string","pattern":"^((((a{1,99}){1,99}){1,99}){1,99})$"}`,
		"classes":        `{"type":"string","pattern":"^[\\w\\W]*[^a]{50}[\\s\\S]*b.{60}$"}`,
		"intersections":  `{"allOf":[` + list(60, func(i int) string { return fmt.Sprintf(`{"pattern":"a.{%d}b"}`, i) }) + `]}`,
		"min items":      `{"type":"array","items":{"type":"array","items":{"type":"array","minItems":60000},"minItems":60000},"minItems":60000}`,
		"counted strings": `{"properties":{` + list(300, func(i int) string {
			return fmt.Sprintf(`"p%d":{"type":"string","minLength":%d,"maxLength":%d}`, i, i*100, i*100+50000)
		}) + `}}`,
		"numbers": `{"properties":{` + list(800, func(i int) string {
			return fmt.Sprintf(`"p%d":{"type":"number","minimum":%d.123456789,"maximum":%d.987654321}`, i, i, i+12345)
		}) + `}}`,
		"formats": `{"properties":{` + list(800, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string","format":"date-time"}`, i) }) + `}}`,
		"objects": `{"properties":{` + list(1500, func(i int) string {
			return fmt.Sprintf(`"p%d":{"properties":{"k":{"const":%d}},"required":["k"]}`, i, i)
		}) + `},"required":[` + list(1500, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}`,
		"mutual recursion": `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/b"}},{"type":"null"}]},"b":{"allOf":[{"properties":{"x":{"$ref":"#/$defs/a"}}},{"properties":{"x":{"$ref":"#/$defs/b"}}}]}}}`,
	}
}

// TestHostileSchemas: each ends, in an admission or a refusal with a reason.
func TestHostileSchemas(t *testing.T) {
	for name, s := range hostileSchemas() {
		for _, e := range []Enforce{EnforceMask, EnforceValidate} {
			con, err := Compile(Spec{Kind: JSON, Source: []byte(s)}, Options{Enforce: e})
			if err != nil && err.Error() == "" {
				t.Errorf("%s: an empty refusal", name)
			}
			if err == nil && con.judge == nil {
				t.Errorf("%s: admitted without a judge", name)
			}
		}
	}
}

// BenchmarkHostile shows what each costs, cold.
func BenchmarkHostile(b *testing.B) {
	for name, s := range hostileSchemas() {
		for _, e := range []Enforce{EnforceMask, EnforceValidate} {
			b.Run(name+"/"+string(e), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c := &compiled{opt: Options{Enforce: e, Formats: FormatsMask, Limits: Standard}}
					_ = c.compile(JSON, []byte(s))
					if v, err := ByteVocabulary(); err == nil {
						v.protos.clear()
					}
				}
			})
		}
	}
}
