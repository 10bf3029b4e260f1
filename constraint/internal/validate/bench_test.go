package validate

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// order is a schema and an answer of about 1 MiB like those of real tasks:
// objects in an array, with numbers, enums, patterns and optional members.
func order() (schema, answer string) {
	schema = `{"type":"object","properties":{"orders":{"type":"array","items":{"$ref":"#/$defs/order"}}},"required":["orders"],"additionalProperties":false,
"$defs":{"order":{"type":"object","properties":{"id":{"type":"string","pattern":"^[A-Z]{2}-\\d+$"},"status":{"enum":["open","paid","sent"]},
"total":{"type":"number","minimum":0,"multipleOf":0.01},"note":{"type":"string","maxLength":200},
"lines":{"type":"array","minItems":1,"items":{"anyOf":[{"type":"null"},{"type":"object","properties":{"sku":{"type":"string"},"n":{"type":"integer","minimum":1}},"required":["sku","n"],"additionalProperties":false}]}}},
"required":["id","status","total","lines"],"additionalProperties":false}}}`
	var b strings.Builder
	b.WriteString(`{"orders":[`)
	for i := 0; b.Len() < 1<<20-400; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"AB-%d","status":"paid","total":%d.%02d,"note":"%s","lines":[{"sku":"s%d","n":%d},null,{"sku":"téa","n":2}]}`,
			i, i*3, i%100, strings.Repeat("words and words ", 6), i, i+1)
	}
	b.WriteString(`]}`)
	return schema, b.String()
}

func BenchmarkValidate1MiB(b *testing.B) {
	schema, answer := order()
	s := mustJSON(b, schema, Options{})
	if f := s.Validate(context.Background(), answer); f != nil {
		b.Fatal(f)
	}
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	for b.Loop() {
		s.Validate(context.Background(), answer)
	}
}

// As many values as an answer may have.
func BenchmarkValidateNodes(b *testing.B) {
	s := mustJSON(b, `{"items":{"type":"object","properties":{"a":{"type":"integer","minimum":1}}},"unevaluatedItems":false}`, Options{})
	answer := `[` + strings.Repeat(`{"a":12345},`, 32766) + `{}]`
	if f := s.Validate(context.Background(), answer); f != nil {
		b.Fatal(f)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Validate(context.Background(), answer)
	}
}

// hostile are schemas within 1 MiB, 16,384 values and depth 64 that cost
// others seconds to compile.
func hostile() map[string]string {
	wide := func(value string, n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"k%d":%s`, i, strings.ReplaceAll(value, "#", fmt.Sprint(i))))
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	deep := strings.Repeat(`{"properties":{"`+strings.Repeat("k", 1000)+`":`, 31) + wide(`{}`, 8000) + strings.Repeat(`}}`, 31)
	return map[string]string{
		"wide":        `{"properties":` + wide(`true`, 16382) + `}`,
		"wide-typed":  `{"properties":` + wide(`{"type":"string"}`, 8190) + `}`,
		"deep-names":  strings.Replace(deep, `{"k0"`, `{"properties":{"k0"`, 1) + `}`,
		"doubling":    doubling(3000),
		"patterns":    `{"properties":` + wide(`{"pattern":"^(a|b#)*$"}`, 8190) + `}`,
		"big-pattern": `{"pattern":"` + strings.Repeat(`(a{0,1000}){0,1000}|`, 3000) + `"}`,
		"classes":     `{"pattern":"` + strings.Repeat(`[\\p{L}\\p{N}]{1,1000}`, 3000) + `"}`,
		"groups":      `{"pattern":"` + strings.Repeat(`(`, 100) + strings.Repeat(`)*`, 100) + `"}`,
		"many-groups": `{"properties":` + wide(`{"pattern":"#`+strings.Repeat(`(`, 99)+strings.Repeat(`)*`, 99)+`"}`, 2000) + `}`,
		"enum":        `{"enum":[` + strings.Repeat(`0,`, 16000) + `1]}`,
		"references":  `{"$defs":` + wide(`{"$ref":"#/$defs/k0/not"}`, 8100) + `,"x":1}`,
		"anchors":     `{"$defs":` + wide(`{"$dynamicAnchor":"a#"}`, 4000) + `,"allOf":[` + strings.Repeat(`{"$dynamicRef":"#a1"},`, 4000) + `true]}`,
		"resources":   `{"$defs":` + wide(`{"$id":"http://a/#","$dynamicAnchor":"a"}`, 2000) + `,"allOf":[` + strings.Repeat(`{"$dynamicRef":"http://a/1#a"},`, 3000) + `true]}`,
		"errors":      `{"properties":` + wide(`true`, 16000) + `,"type":"strng"}`,
	}
}

func BenchmarkAdmit(b *testing.B) {
	for name, schema := range hostile() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				JSON([]byte(schema), Options{})
			}
		})
	}
}

func BenchmarkWork(b *testing.B) {
	s := mustJSON(b, doubling(23), Options{})
	for b.Loop() {
		if f := s.Validate(context.Background(), `1`); len(f) != 1 {
			b.Fatal(f)
		}
	}
}

func BenchmarkRegexAdmit(b *testing.B) {
	for name, source := range map[string]string{
		"word": `\w+`, "fold": `(?i)[^a]*\p{L}+`, "classes": strings.Repeat(`[^a-c]\w`, 200), "repeats": `((a{0,1000}){0,1000}){0,1000}`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Regex(source)
			}
		})
	}
}
