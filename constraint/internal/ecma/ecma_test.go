package ecma

import (
	"errors"
	"regexp/syntax"
	"testing"
)

func TestTranslate(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`^v\d+$`, `^v[0-9]+$`},
		{`^go\!$`, `^go!$`},
		{`a.b`, `a[^\n\r\x{2028}\x{2029}]b`},
		{`(a)(?:b)(?<n>c)`, `(?:a)(?:b)(?:c)`},
		{`a{2,}?b{`, `a{2,}b\x{7b}`},
		{`[\w.-]`, `[0-9A-Za-z_\x{2e}\x{2d}]`},
		{`[+--]`, `[\x{2b}-\x{2d}]`},
		{`[[]`, `[\x{5b}]`},
		{`[a&&b~~]`, `[a\x{26}\x{26}b\x{7e}\x{7e}]`},
		{`[^\D]`, `[^[^0-9]]`},
		{`[]|[^]`, `[^\x{0}-\x{10ffff}]|[\x{0}-\x{10ffff}]`},
		{`\u00e9\x41\cJ\0\/`, `éA\x{a}\x{0}\x{2f}`},
		{`\ud83d\ude00|\u{1F600}`, `😀|😀`},
		{`\p{Lu}[\p{Script=Greek}]`, `\p{Lu}[\p{Script=Greek}]`},
		{`a]}`, `a\x{5d}\x{7d}`},
		{`[\w-z]`, `[0-9A-Za-z_\x{2d}z]`},
	} {
		got, err := Translate(c.in)
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.in, got, err, c.want)
		}
	}
}

func TestUnsupported(t *testing.T) {
	for _, c := range []struct {
		in, construct string
		at            int
	}{
		{`a(?=b)`, "lookahead", 1}, {`(?!a)`, "lookahead", 0}, {`(?<=a)b`, "lookbehind", 0}, {`x(?<!a)`, "lookbehind", 1},
		{`\bfoo`, "a word boundary", 0}, {`(a)\1`, "a backreference", 3}, {`(?<n>a)\k<n>`, "a backreference", 7},
		{`(a`, "an unclosed group", 0}, {`a)`, "an unmatched ')'", 1}, {`[a`, "an unclosed class", 0},
		{`*a`, "a quantifier with nothing to repeat", 0}, {`[z-a]`, "a range out of order", 2}, {`\`, "a backslash at the end", 0},
		{`(?i:a)`, "a group of an unknown kind", 0}, {`\Z`, `the escape \Z`, 0}, {`^*`, "a repeated anchor", 0}, {`\ud800`, "half of a surrogate pair", 0},
	} {
		_, err := Translate(c.in)
		var u *Unsupported
		if !errors.As(err, &u) || u.Construct != c.construct || u.Offset != c.at {
			t.Errorf("%s: %v, want %s at %d", c.in, err, c.construct, c.at)
		}
	}
}

// FuzzTranslate: whatever comes in, what comes out parses in a syntax close
// to Rust's.
func FuzzTranslate(f *testing.F) {
	for _, s := range []string{`^[a-z]{2,3}(\.|-)\d+$`, `[^\]\\]`, `(((a)|b)*c)?`, `[\d-x]`, `\u{41}{3}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out, err := Translate(in)
		if err != nil {
			return
		}
		if _, err := syntax.Parse(out, syntax.Perl); err != nil {
			var e *syntax.Error
			// Go bounds repetitions and knows fewer properties and no nested classes.
			if errors.As(err, &e) && (e.Code == syntax.ErrInvalidRepeatSize || e.Code == syntax.ErrInvalidCharRange || e.Code == syntax.ErrLarge ||
				e.Code == syntax.ErrNestingDepth || e.Code == syntax.ErrInvalidUTF8 || e.Code == syntax.ErrInvalidRepeatOp) {
				return
			}
			t.Fatalf("%q became %q: %v", in, out, err)
		}
	})
}
