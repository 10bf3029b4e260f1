package constraint

import (
	"context"
	"strings"
	"testing"
)

const benchSchema = `{"type":"object","properties":{"rating":{"type":"integer","minimum":1,"maximum":5},"reasoning":{"type":"string","maxLength":120}},"required":["rating","reasoning"],"additionalProperties":false}`

// BenchmarkAnswer follows one answer byte by byte: a mask, then the byte.
func BenchmarkAnswer(b *testing.B) {
	needNative(b)
	c := mustCompile(b, JSON, benchSchema)
	text := `{"rating":3,"reasoning":"boils fast, but leaks at the seam"}`
	v, err := ByteVocabulary()
	if err != nil {
		b.Fatal(err)
	}
	mask := make([]uint32, v.MaskWords())
	b.ReportAllocs()
	for b.Loop() {
		m, err := c.NewMatcher(v)
		if err != nil {
			b.Fatal(err)
		}
		for i := range len(text) {
			if err := m.Mask(mask); err != nil {
				b.Fatal(err)
			}
			if err := m.Accept(uint32(text[i])); err != nil {
				b.Fatal(err)
			}
		}
		m.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(text)), "ns/token")
}

// TestStepsDoNotAllocate: a token costs no memory on Go's side.
func TestStepsDoNotAllocate(t *testing.T) {
	needNative(t)
	m := byteMatcher(t, mustCompile(t, JSON, `{"type":"array","items":{"type":"number"}}`))
	mask := make([]uint32, m.v.MaskWords())
	buf := make([]uint32, forcedAtOnce)
	if err := m.Accept('['); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(50, func() {
		_ = m.Mask(mask)
		_, _ = m.Forced(buf)
		_ = m.Accept('1')
		_ = m.Accept(',')
	}); n > 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// BenchmarkCompile admits and compiles a schema that was not seen before.
func BenchmarkCompile(b *testing.B) {
	needNative(b)
	for b.Loop() {
		c := &compiled{opt: Options{Enforce: EnforceMask, Formats: FormatsMask, Limits: Standard}}
		if r := c.compile(JSON, []byte(benchSchema)); r != nil {
			b.Fatal(r)
		}
		v, _ := ByteVocabulary()
		v.protos.clear()
	}
}

// BenchmarkValidateMiB judges an answer of 1 MiB, by schema and by grammar.
func BenchmarkValidateMiB(b *testing.B) {
	items := strings.Repeat(`"some text here",`, 60_000)
	text := "[" + items[:len(items)-1] + "]"
	b.Run("json", func(b *testing.B) {
		c := mustCompile(b, JSON, `{"type":"array","items":{"type":"string","maxLength":20}}`)
		for b.Loop() {
			if !valid(c, text) {
				b.Fatal(c.Validate(context.Background(), text))
			}
		}
	})
	b.Run("lark", func(b *testing.B) {
		needNative(b)
		c := mustCompile(b, Lark, `start: "[" item ("," item)* "]"`+"\nitem: /\"[a-z ]*\"/\n")
		for b.Loop() {
			if !valid(c, text) {
				b.Fatal(c.Validate(context.Background(), text))
			}
		}
	})
}
