package lark

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzParse: no input panics, an error points into the source, and what is
// read prints as text that reads as the same tree.
func FuzzParse(f *testing.F) {
	for _, s := range corpus(f) {
		f.Add(s.src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 4096 {
			t.Skip()
		}
		g, err := Parse([]byte(src))
		if err != nil {
			if strings.ToValidUTF8(src, "") == src {
				checkPosition(t, sample{"", "input", src}, err.(*Error))
			}
			return
		}
		text := g.String()
		again, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%v\nfrom %q\nprinted %q", err, src, text)
		}
		if d := cmp.Diff(dump(g), dump(again)); d != "" {
			t.Fatalf("(-read +read again):\n%s\nfrom %q\nprinted %q", d, src, text)
		}
	})
}

// FuzzRegex: no expression panics, and an error points into it.
func FuzzRegex(f *testing.F) {
	for _, s := range corpus(f) {
		if body, ok := strings.CutPrefix(s.src, "start: /"); ok && strings.HasPrefix(s.name, "regex") {
			if i := strings.LastIndexByte(body, '/'); i > 0 {
				f.Add(body[:i], strings.TrimSpace(body[i+1:]))
			}
		}
	}
	f.Fuzz(func(t *testing.T, src, flags string) {
		if len(src) > 1024 || strings.Trim(flags, "imslux") != "" || strings.ToValidUTF8(src, "") != src {
			t.Skip()
		}
		n, err := parseRegex(src, flags, false)
		if err == nil && n == nil {
			t.Fatal("nothing")
		}
		if err != nil && (err.at < 0 || err.at > len(src)+1+len(flags) || err.msg == "") {
			t.Fatalf("%+v", err)
		}
	})
}
