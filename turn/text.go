package turn

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// NotText says why data, called what, is not text in UTF-8, and what to do
// about it; both are empty when it is text.
func NotText(what string, data []byte) (msg, hint string) {
	at := 0
	for at < len(data) {
		r, n := utf8.DecodeRune(data[at:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	if at == len(data) {
		return "", ""
	}
	for _, m := range []struct{ mark, name string }{
		{"\xff\xfe\x00\x00", "UTF-32"}, {"\x00\x00\xfe\xff", "UTF-32"}, {"\xff\xfe", "UTF-16"}, {"\xfe\xff", "UTF-16"},
	} {
		if bytes.HasPrefix(data, []byte(m.mark)) {
			return fmt.Sprintf("%s is %s, not UTF-8: it begins with % X", what, m.name, m.mark),
				fmt.Sprintf("save it as UTF-8, for example with iconv -f %s -t UTF-8", m.name)
		}
	}
	if data[at] == 0 {
		return fmt.Sprintf("%s is binary, not text: the byte at offset %d is zero", what, at), "give text in UTF-8"
	}
	return fmt.Sprintf("%s is not UTF-8: the byte at offset %d is 0x%02X", what, at, data[at]),
		"save it as UTF-8; if it is no text at all, it cannot be answered"
}
