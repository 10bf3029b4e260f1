package jsontree

import (
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string that starts at the present quote.
func (p *parser) str() (string, error) {
	p.pos++
	start := p.pos
	var buf []byte // nil while nothing had to be decoded
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		switch {
		case c == '"':
			s := p.src[start:p.pos]
			p.pos++
			if buf != nil {
				return string(buf), nil
			}
			return string(s), nil
		case c == '\\':
			if buf == nil {
				buf = append(make([]byte, 0, p.pos-start+16), p.src[start:p.pos]...)
			}
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			buf = utf8.AppendRune(buf, r)
		case c < 0x20:
			return "", p.fail("a control character inside a string; write it as \\u%04x", c)
		case c < utf8.RuneSelf:
			if buf != nil {
				buf = append(buf, c)
			}
			p.pos++
		default:
			r, n := utf8.DecodeRune(p.src[p.pos:])
			if r == utf8.RuneError && n <= 1 {
				return "", p.fail("bytes that are not UTF-8")
			}
			if buf != nil {
				buf = append(buf, p.src[p.pos:p.pos+n]...)
			}
			p.pos += n
		}
	}
	return "", p.fail("the JSON ends inside a string")
}

func (p *parser) escape() (rune, error) {
	if p.pos+1 >= len(p.src) {
		return 0, p.fail("the JSON ends inside a string")
	}
	c := p.src[p.pos+1]
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	for i := range len(from) {
		if from[i] == c {
			p.pos += 2
			return rune(to[i]), nil
		}
	}
	if c != 'u' {
		return 0, p.fail("\\%c is no escape of JSON", c)
	}
	r, ok := p.hex()
	if !ok {
		return 0, p.fail("four hexadecimal digits should stand after \\u")
	}
	at := p.pos
	p.pos += 6
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if p.pos+1 < len(p.src) && p.src[p.pos] == '\\' && p.src[p.pos+1] == 'u' {
		if low, ok := p.hex(); ok {
			if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
				p.pos += 6
				return full, nil
			}
		}
	}
	p.pos = at
	return 0, p.fail("half of a surrogate pair")
}

// hex reads the four digits of the \u escape at the present position.
func (p *parser) hex() (rune, bool) {
	if p.pos+6 > len(p.src) {
		return 0, false
	}
	var r rune
	for _, c := range p.src[p.pos+2 : p.pos+6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
