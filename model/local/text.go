package local

import (
	"strings"
	"unicode/utf8"
)

// answerText collects the bytes of an answer's tokens and hands out whole
// characters only: a token may end in the middle of one.
type answerText struct {
	bytes []byte
	sent  int // bytes handed out
}

func (t *answerText) add(b []byte) { t.bytes = append(t.bytes, b...) }

// next returns what is new and whole.
func (t *answerText) next() string {
	end := wholeRunes(t.bytes[t.sent:]) + t.sent
	s := string(t.bytes[t.sent:end])
	t.sent = end
	return strings.ToValidUTF8(s, "\uFFFD")
}

// all returns the text; a character that the end cut in two is left out, and
// bytes that are no UTF-8 at all become U+FFFD.
func (t *answerText) all() string {
	return strings.ToValidUTF8(string(t.bytes[:wholeRunes(t.bytes)]), "\uFFFD")
}

// wholeRunes is the length of b without an unfinished character at its end.
func wholeRunes(b []byte) int {
	for i := 1; i <= min(3, len(b)); i++ {
		c := b[len(b)-i]
		if utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return len(b) - i
			}
			return len(b)
		}
	}
	return len(b)
}

// cut drops what follows the first n bytes.
func (t *answerText) cut(n int) {
	t.bytes = t.bytes[:n]
	t.sent = min(t.sent, n)
}
