package validate

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestRegex(t *testing.T) {
	for _, c := range []struct {
		source   string
		yes, not []string
	}{
		{`\d+`, []string{"12", "v٣"[1:], "१२"}, []string{"", "1a", "a1", "12\n"}},
		{`v\d`, []string{"v٣"}, []string{"v", "v12"}},
		{`\w+`, []string{"Ⓐ", "é_9", "ी"}, []string{"-", " "}},
		{`\s`, []string{"\u2003", "\n"}, []string{"\u200b"}},
		{`.*`, []string{"", "a b"}, []string{"a\nb"}},
		{`(?s).*`, []string{"a\nb"}, nil},
		{`a|bc|`, []string{"a", "bc", ""}, []string{"abc"}},
		{`^a$`, []string{"a"}, []string{"aa", "a\n"}},
		{`^a|b$`, []string{"a", "b"}, []string{"ab", "axx"}},
		{`.*?x`, []string{"x", "axxx"}, []string{"xa"}},
		{`[a-z&&[^aeiou]]+`, []string{"xyz"}, []string{"a", "&", "["}},
		{`[a-z--m]`, []string{"a"}, []string{"m", "-"}},
		{`[a-c~~b-d]`, []string{"a", "d"}, []string{"b", "~"}},
		{`[]a]+`, []string{"]a"}, []string{"b"}},
		{`[^]a]`, []string{"b"}, []string{"]", "a"}},
		{`[a-]`, []string{"a", "-"}, []string{"b"}},
		{`[\w--\d]`, []string{"é"}, []string{"5"}},
		{`[[:alpha:]_]+`, []string{"ab_"}, []string{"é", "1"}},
		{`[[:^digit:]]`, []string{"é"}, []string{"1"}},
		{`\p{Greek}+`, []string{"αβγ"}, []string{"a"}},
		{`\pL\PL`, []string{"é1"}, []string{"1é"}},
		{`\p{sc=Latin}`, []string{"a"}, []string{"α"}},
		{`(?i)straße`, []string{"STRAßE", "ſtraẞe"}, []string{"strasse"}},
		{`(?i:k)K`, []string{"kK", "KK", "\u212aK"}, []string{"kk"}},
		{`(?i)a(?-i)b|C`, []string{"Ab", "C"}, []string{"AB", "c"}},
		{`(?x) a b c # no`, []string{"abc"}, []string{"a b c"}},
		{`(?P<y>\d{4})-(?<m>\d{2})`, []string{"2026-01"}, []string{"26-01"}},
		{`a{2}{3}`, []string{"aaaaaa"}, []string{"aaaaa"}},
		{`a**`, []string{"", "aaa"}, []string{"b"}},
		{`a{0,2}b{1,}`, []string{"b", "aabb"}, []string{"aaab", "a"}},
		{`\x41\u0042\u{1F600}\U0001F601`, []string{"AB😀😁"}, nil},
		{`[\x{1F600}-\x{1F64F}]`, []string{"😀"}, []string{"a"}},
		{`\.\*\-\_\ `, nil, nil},
		{`[^\x00-\x{10FFFF}]|a`, []string{"a"}, []string{"b", ""}},
		{`"'<>%&/:;=@` + "`" + `~!,`, []string{"\"'<>%&/:;=@`~!,"}, nil},
		{`}]`, []string{"}]"}, nil},
		{`[\^\-\]\[]+`, []string{"^-]["}, []string{`\`}},
		{"é#é", []string{"é#é"}, nil},
	} {
		p, err := Regex(c.source)
		if err != nil {
			if c.yes == nil {
				continue
			}
			t.Errorf("Regex(%q): %v", c.source, err)
			continue
		}
		for _, s := range c.yes {
			if f := p.Validate(context.Background(), s); f != nil {
				t.Errorf("%q: %q is refused (%v)", c.source, s, f)
			}
		}
		for _, s := range c.not {
			f := p.Validate(context.Background(), s)
			if len(f) != 1 || f[0] != (Finding{Code: GrammarViolation}) {
				t.Errorf("%q: %q: %v", c.source, s, f)
			}
		}
	}
}

func TestRegexRefused(t *testing.T) {
	for _, c := range []struct {
		source string
		col    int
		reason string
	}{
		{`a(?=b)`, 2, "look-around"},
		{`é(?<!b)`, 2, "look-around"},
		{`\bword`, 1, "word boundaries"},
		{`(a)\1`, 4, "back-references"},
		{`a^b`, 2, "anchor"},
		{`(a$)+`, 3, "anchor"},
		{`(?m)^a`, 5, "line breaks"},
		{`(a`, 1, "no ')'"},
		{`a)`, 2, "no '('"},
		{`[a`, 1, "no ']'"},
		{`*a`, 1, "nothing to repeat"},
		{`a{2,1}`, 2, "upper bound"},
		{`a{x}`, 2, "repetition"},
		{`[z-a]`, 2, "backwards"},
		{`[a-\d]`, 2, "not in a class"},
		{`\p{Klingon}`, 1, "Klingon"},
		{`\q`, 1, "no escape"},
		{`a\`, 2, "backslash"},
		{`(?-u)a`, 1, "bytes"},
		{`(?P<stop>a)`, 1, "stop"},
		{`\x{110000}`, 1, "hexadecimal"},
		{`\p{^Lu}`, 1, "not known"},
		{"(?x)a # c\nb", 10, "on one line"},
		{"\xff", 1, "UTF-8"},
		{strings.Repeat("(", 300), 101, "nested"},
		{strings.Repeat("a", 1<<17), 1, "longer"},
	} {
		_, err := Regex(c.source)
		e, ok := err.(*SchemaError)
		if !ok || e.Construct != "regex" || e.Line != 1 || e.Column != c.col || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("Regex(%.20q) = %v, want column %d and %q", c.source, err, c.col, c.reason)
		}
	}
	if _, err := Regex("a\n(b"); err == nil || err.(*SchemaError).Line != 2 {
		t.Errorf("line of an error: %v", err)
	}
}

func TestRegexBounded(t *testing.T) {
	p, err := Regex(`(?:a|a)*(?:a|aa)*c`)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	f := p.Validate(context.Background(), strings.Repeat("a", 5000)+"b")
	if len(f) != 1 || f[0].Code != ValidationWork && f[0].Code != GrammarViolation {
		t.Errorf("%v", f)
	}
	if d := time.Since(start); d > 10*DefaultMatchTimeout {
		t.Errorf("took %v", d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if f := p.Validate(ctx, "c"); len(f) != 1 || f[0].Code != ValidationWork {
		t.Errorf("cancelled: %v", f)
	}
	if f := p.Validate(context.Background(), "\xff"); len(f) != 1 || f[0].Code != GrammarViolation {
		t.Errorf("not UTF-8: %v", f)
	}
}
