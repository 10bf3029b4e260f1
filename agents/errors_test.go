package agents

import "testing"

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		`plain, "quoted" \ Grüße 日本 👍`: `plain, "quoted" \ Grüße 日本 👍`,
		"a\nb":                         `a\nb`,
		"\x1b[31mred\x07\x7f":          `\x1b[31mred\a\x7f`,
		"caf\xe9 \ufffd":               "caf\\xe9 \ufffd",
		"evil\u202etxt.exe\u2028":      `evil\u202etxt.exe\u2028`,
		"tab\tand\rreturn":             `tab\tand\rreturn`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if twice := Printable(Printable(in)); twice != want {
			t.Errorf("%q twice: %q", in, twice)
		}
	}
	f := Finding{File: "a\nb", Line: 1, Msg: "no\x1b", Hint: "do\r"}
	if got, want := f.String(), `a\nb:1:1: no\x1b; do\r`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
