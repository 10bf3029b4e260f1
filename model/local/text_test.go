package local

import (
	"testing"
	"unicode/utf8"
)

// TestAnswerText feeds a text byte by byte: what comes out is whole at every
// step and adds up.
func TestAnswerText(t *testing.T) {
	const text = "a ü ☃ 🎉 é"
	var a answerText
	got := ""
	for i := range len(text) {
		a.add([]byte{text[i]})
		part := a.next()
		if !utf8.ValidString(part) {
			t.Errorf("byte %d: %q is cut", i, part)
		}
		got += part
	}
	if got != text || a.all() != text {
		t.Errorf("got %q and %q", got, a.all())
	}
	for _, tt := range []struct{ in, want string }{
		{"ok\xf0\x9f\x8e", "ok"}, {"\xff\xfeok", "\ufffdok"}, {"", ""}, {"\x80", "\ufffd"},
	} {
		var a answerText
		a.add([]byte(tt.in))
		if got := a.all(); got != tt.want {
			t.Errorf("%q gives %q, want %q", tt.in, got, tt.want)
		}
	}
}
