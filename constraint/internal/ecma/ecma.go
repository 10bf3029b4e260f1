// Package ecma rewrites a regular expression of ECMA-262, as JSON Schema's
// "pattern" has it, for llguidance, which reads Rust's syntax. The two look
// alike and differ in what \d, \s, ".", "[[a]" or "[a&&b]" mean, so every
// piece is spelled out. What a derivative-based engine cannot match is named:
// lookaround, word boundaries, backreferences.
package ecma

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unsupported is a construct that the engine has no counterpart for.
type Unsupported struct {
	Construct string // "lookahead", "backreference", …
	Offset    int    // bytes into the pattern
}

func (e *Unsupported) Error() string {
	return fmt.Sprintf("%s at offset %d", e.Construct, e.Offset)
}

// maxDepth bounds nested groups.
const maxDepth = 100

// Translate returns an expression in Rust's syntax that matches the same
// texts. Groups no longer capture and nothing is lazy: neither changes
// whether a text matches.
func Translate(pattern string) (rust string, err error) {
	t := &translator{src: pattern}
	defer func() {
		if r := recover(); r != nil {
			u, ok := r.(*Unsupported)
			if !ok {
				panic(r)
			}
			rust, err = "", u
		}
	}()
	t.alternatives(0)
	if t.pos < len(t.src) {
		t.fail("an unmatched ')'", t.pos)
	}
	return t.out.String(), nil
}

type translator struct {
	src string
	pos int
	out strings.Builder
}

func (t *translator) fail(construct string, at int) {
	panic(&Unsupported{construct, at})
}

func (t *translator) has(s string) bool { return strings.HasPrefix(t.src[t.pos:], s) }

func (t *translator) next() rune {
	r, n := utf8.DecodeRuneInString(t.src[t.pos:])
	t.pos += n
	return r
}

// alternatives reads up to the end or a ')'.
func (t *translator) alternatives(depth int) {
	if depth > maxDepth {
		t.fail("deep nesting", t.pos)
	}
	for t.pos < len(t.src) && t.src[t.pos] != ')' {
		if t.src[t.pos] == '|' {
			t.pos++
			t.out.WriteByte('|')
			continue
		}
		t.term(depth)
	}
}

func (t *translator) term(depth int) {
	at := t.pos
	switch c := t.src[t.pos]; c {
	case '^', '$':
		t.pos++
		t.out.WriteByte(c)
		if t.pos < len(t.src) && strings.IndexByte("*+?", t.src[t.pos]) >= 0 {
			t.fail("a repeated anchor", at)
		}
		return
	case '(':
		t.group(depth)
	case '[':
		t.class()
	case '.':
		t.pos++
		t.out.WriteString(`[^\n\r\x{2028}\x{2029}]`)
	case '\\':
		t.escape()
	case '*', '+', '?':
		t.fail("a quantifier with nothing to repeat", at)
	default:
		t.out.WriteString(literal(t.next()))
	}
	t.quantifier()
}

func (t *translator) group(depth int) {
	at := t.pos
	t.pos++
	if t.has("?") {
		switch {
		case t.has("?:"):
			t.pos += 2
		case t.has("?=") || t.has("?!"):
			t.fail("lookahead", at)
		case t.has("?<=") || t.has("?<!"):
			t.fail("lookbehind", at)
		case t.has("?<"):
			i := strings.IndexByte(t.src[t.pos:], '>')
			if i < 0 {
				t.fail("an unfinished group name", at)
			}
			t.pos += i + 1
		default:
			t.fail("a group of an unknown kind", at)
		}
	}
	t.out.WriteString("(?:")
	t.alternatives(depth + 1)
	if !t.has(")") {
		t.fail("an unclosed group", at)
	}
	t.pos++
	t.out.WriteByte(')')
}

// quantifier reads an optional quantifier; one that is not complete is a
// literal brace.
func (t *translator) quantifier() {
	if t.pos >= len(t.src) {
		return
	}
	switch c := t.src[t.pos]; c {
	case '*', '+', '?':
		t.pos++
		t.out.WriteByte(c)
	case '{':
		q, ok := braces(t.src[t.pos:])
		if !ok {
			return
		}
		t.pos += len(q)
		t.out.WriteString(q)
	default:
		return
	}
	if t.has("?") {
		t.pos++
	}
}

// braces returns the {n}, {n,} or {n,m} that s starts with.
func braces(s string) (string, bool) {
	end := strings.IndexByte(s, '}')
	if end < 0 {
		return "", false
	}
	lo, hi, _ := strings.Cut(s[1:end], ",")
	for i, part := range []string{lo, hi} {
		if part == "" && i == 1 {
			continue
		}
		if part == "" || strings.Trim(part, "0123456789") != "" {
			return "", false
		}
	}
	return s[:end+1], true
}

const (
	digits = `0-9`
	words  = `0-9A-Za-z_`
	spaces = `\t\n\x0b\x0c\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
)

// escape reads a '\' outside a class.
func (t *translator) escape() {
	at := t.pos
	if set, negated, ok := t.set(); ok {
		if negated {
			set = "^" + set
		}
		t.out.WriteString("[" + set + "]")
		return
	}
	if t.pos+1 < len(t.src) {
		switch c := t.src[t.pos+1]; {
		case c == 'b' || c == 'B':
			t.fail("a word boundary", at)
		case c == 'k', c >= '1' && c <= '9':
			t.fail("a backreference", at)
		case c == 'p' || c == 'P':
			t.out.WriteString(t.property())
			return
		}
	}
	t.out.WriteString(literal(t.char()))
}

// set reads \d, \w, \s and their opposites, as the inside of a class.
func (t *translator) set() (set string, negated, ok bool) {
	if t.pos+1 >= len(t.src) {
		return "", false, false
	}
	switch t.src[t.pos+1] {
	case 'd':
		set = digits
	case 'D':
		set, negated = digits, true
	case 'w':
		set = words
	case 'W':
		set, negated = words, true
	case 's':
		set = spaces
	case 'S':
		set, negated = spaces, true
	default:
		return "", false, false
	}
	t.pos += 2
	return set, negated, true
}

// property reads \p{…}; the engine decides which ones it knows.
func (t *translator) property() string {
	at := t.pos
	end := strings.IndexByte(t.src[t.pos:], '}')
	if !strings.HasPrefix(t.src[t.pos+2:], "{") || end < 0 {
		t.fail("a property without braces", at)
	}
	p := t.src[t.pos : t.pos+end+1]
	if strings.Trim(p[3:len(p)-1], "=_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
		t.fail("a property of an unknown form", at)
	}
	t.pos += end + 1
	return p
}

// char reads an escape that stands for one character.
func (t *translator) char() rune {
	at := t.pos
	t.pos++
	if t.pos >= len(t.src) {
		t.fail("a backslash at the end", at)
	}
	switch c := t.next(); c {
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'v':
		return '\v'
	case 'f':
		return '\f'
	case 'r':
		return '\r'
	case '0':
		if t.pos < len(t.src) && t.src[t.pos] >= '0' && t.src[t.pos] <= '9' {
			t.fail("an octal escape", at)
		}
		return 0
	case 'c':
		if t.pos < len(t.src) && (t.src[t.pos]|0x20 >= 'a' && t.src[t.pos]|0x20 <= 'z') {
			t.pos++
			return rune(t.src[t.pos-1]) % 32
		}
		t.fail("an unfinished control escape", at)
	case 'x':
		if r, ok := t.hex(2); ok {
			return r
		}
		t.fail(`an unfinished \x`, at)
	case 'u':
		return t.unicode(at)
	default:
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '1' && c <= '9' {
			t.fail(`the escape \`+string(c), at)
		}
		return c
	}
	return 0
}

func (t *translator) unicode(at int) rune {
	if t.has("{") {
		end := strings.IndexByte(t.src[t.pos:], '}')
		if end > 1 {
			if n, err := strconv.ParseUint(t.src[t.pos+1:t.pos+end], 16, 32); err == nil && n <= 0x10FFFF && !utf16.IsSurrogate(rune(n)) {
				t.pos += end + 1
				return rune(n)
			}
		}
		t.fail(`an unfinished \u`, at)
	}
	r, ok := t.hex(4)
	if !ok {
		t.fail(`an unfinished \u`, at)
	}
	if !utf16.IsSurrogate(r) {
		return r
	}
	if t.has(`\u`) {
		t.pos += 2
		if low, ok := t.hex(4); ok {
			if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
				return full
			}
		}
	}
	t.fail("half of a surrogate pair", at)
	return 0
}

func (t *translator) hex(n int) (rune, bool) {
	if t.pos+n > len(t.src) {
		return 0, false
	}
	v, err := strconv.ParseUint(t.src[t.pos:t.pos+n], 16, 32)
	if err != nil {
		return 0, false
	}
	t.pos += n
	return rune(v), true
}

// literal spells one character so that it means itself, in a class and
// outside. Control characters are spelled as escapes: the text also passes
// through Lark, where a line ends a token.
func literal(r rune) string {
	switch {
	case r < utf8.RuneSelf && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune(" _\"',:;<>=@!%`", r)):
		return string(r)
	case r >= 0xA1 && r != 0xAD && r != 0x2028 && r != 0x2029 && r != 0xFEFF:
		return string(r)
	}
	return fmt.Sprintf(`\x{%x}`, r)
}
