package turn_test

import (
	"strings"
	"testing"

	"agentgraph/turn"
)

func TestNotText(t *testing.T) {
	for _, tt := range []struct{ data, msg, hint string }{
		{"", "", ""},
		{"plain, Grüße, 日本, \u2028, \ufffd, \x1b", "", ""},
		{"\ufeffwith a mark", "", ""},
		{"a\x00b", "it is binary, not text: the byte at offset 1 is zero", "give text"},
		{"\x7fELF\x02\x01\x01\x00", "it is binary, not text: the byte at offset 7 is zero", "give text"},
		{"caf\xe9 au lait", "it is not UTF-8: the byte at offset 3 is 0xE9", "save it as UTF-8"},
		{"cut \xe6\x97", "it is not UTF-8: the byte at offset 4 is 0xE6", "save it as UTF-8"},
		{"\xff\xfeh\x00i\x00", "it is UTF-16, not UTF-8: it begins with FF FE", "iconv -f UTF-16 "},
		{"\xfe\xff\x00h\x00i", "it is UTF-16, not UTF-8: it begins with FE FF", "iconv -f UTF-16 "},
		{"\xff\xfe\x00\x00h\x00\x00\x00", "it is UTF-32, not UTF-8: it begins with FF FE 00 00", "iconv -f UTF-32 "},
	} {
		msg, hint := turn.NotText("it", []byte(tt.data))
		if msg != tt.msg || !strings.Contains(hint, tt.hint) || (msg == "") != (hint == "") {
			t.Errorf("%q: %q, %q; want %q, %q", tt.data, msg, hint, tt.msg, tt.hint)
		}
	}
}
