package lark

import (
	"strings"
	"testing"
)

// BenchmarkParse reads dense grammars, one near the limit of size.
func BenchmarkParse(b *testing.B) {
	var big strings.Builder
	big.WriteString("start: r0\n")
	for i := 0; big.Len() < MaxSize-200; i++ {
		n := strings.Repeat("x", i%7)
		big.WriteString(strings.ReplaceAll("rN: \"a\" (\"b\" | /[c-e]+/ T)* [\"f\" T~2..3]\n  | T & T rN \"g\"\n", "N", n+strings.Repeat("y", i/7%50)+strings.Repeat("z", i/350)))
	}
	for name, src := range map[string]string{
		"small": "start: \"yes\" | \"no\" REASON?\nREASON: /[a-z ]{1,40}/\n",
		"limit": big.String(),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				_, _ = Parse([]byte(src))
			}
		})
	}
}
