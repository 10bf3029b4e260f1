package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxLine bounds one line of a stream. The SDK's reader of streams has a bound
// of its own and drops an event that the connection's end cuts from its blank
// line, so streams are read here.
const maxLine = 32 << 20

var errLine = fmt.Errorf("one line of the reply is longer than %d MiB", maxLine>>20)

// lines reads lines of any length up to maxLine; the last may lack its end.
type lines struct {
	r *bufio.Reader
	b []byte
}

func newLines(r *bufio.Reader) *lines { return &lines{r: r} }

// next is the next line without its end, valid until the next call.
func (l *lines) next() ([]byte, error) {
	l.b = l.b[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.b = append(l.b, part...)
		switch {
		case len(l.b) > maxLine:
			return nil, errLine
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil:
			return bytes.TrimRight(l.b, "\r\n"), nil
		case errors.Is(err, io.EOF) && len(l.b) > 0:
			return bytes.TrimRight(l.b, "\r\n"), nil
		}
		return nil, err
	}
}

// events reads server-sent events and calls each with their data; done stops.
func events(r *bufio.Reader, each func(data []byte) (done bool, err error)) error {
	l := newLines(r)
	var data []byte
	flush := func() (bool, error) {
		if len(data) == 0 {
			return false, nil
		}
		d := data
		data = data[:0]
		return each(d)
	}
	for {
		line, err := l.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				_, ferr := flush()
				return ferr
			}
			return err
		}
		if len(line) == 0 {
			if done, err := flush(); done || err != nil {
				return err
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "data" {
			continue
		}
		if len(data) > 0 {
			data = append(data, '\n')
		}
		if data = append(data, bytes.TrimPrefix(value, []byte(" "))...); len(data) > maxLine {
			return errLine
		}
	}
}

// unquote reads a JSON string as bytes. Bytes that are no UTF-8 and halves of
// surrogate pairs stay as they are, in the hope that the next piece of the
// stream completes them: encoding/json would replace each half.
func unquote(raw json.RawMessage) ([]byte, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil, false
	}
	s := raw[1 : len(raw)-1]
	if bytes.IndexByte(s, '\\') < 0 {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		if i++; i >= len(s) {
			return nil, false
		}
		switch s[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			if i+4 >= len(s) {
				return nil, false
			}
			n, err := strconv.ParseUint(string(s[i+1:i+5]), 16, 16)
			if err != nil {
				return nil, false
			}
			i += 4
			out = appendUnit(out, uint16(n))
		default:
			out = append(out, s[i])
		}
	}
	return out, true
}

// appendUnit appends a UTF-16 unit; half a pair takes three bytes that are no
// UTF-8, which joinPairs makes whole.
func appendUnit(out []byte, u uint16) []byte {
	if !utf16.IsSurrogate(rune(u)) {
		return utf8.AppendRune(out, rune(u))
	}
	return append(out, 0xE0|byte(u>>12), 0x80|byte(u>>6)&0x3F|0x80, 0x80|byte(u)&0x3F)
}

// joinPairs makes each pair of halves one character.
func joinPairs(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	half := func(i int) (rune, bool) {
		if i+2 < len(b) && b[i] == 0xED && b[i+1] >= 0xA0 && b[i+1] <= 0xBF && b[i+2]&0xC0 == 0x80 {
			return rune(b[i]&0x0F)<<12 | rune(b[i+1]&0x3F)<<6 | rune(b[i+2]&0x3F), true
		}
		return 0, false
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if hi, ok := half(i); ok {
			if lo, ok := half(i + 3); ok {
				if r := utf16.DecodeRune(hi, lo); r != utf8.RuneError {
					out = utf8.AppendRune(out, r)
					i += 6
					continue
				}
			}
		}
		out = append(out, b[i])
		i++
	}
	return out
}

// wholeRunes is the length of what can be shown: without a character whose
// rest may still come.
func wholeRunes(b []byte) int {
	n := len(b)
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if i := len(b) - back; utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				n = i
			}
			break
		}
	}
	// The first half of a surrogate pair.
	if n >= 3 && b[n-3] == 0xED && b[n-2] >= 0xA0 && b[n-2] <= 0xAF {
		n -= 3
	}
	return n
}
