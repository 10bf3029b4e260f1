package validate

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape reads a backslash and what follows it, outside a class.
func (p *rustParser) escape() (*rustNode, *SchemaError) {
	off := p.pos
	if set, ok, err := p.classEscape(); err != nil {
		return nil, err
	} else if ok {
		return &rustNode{op: opClass, set: set, off: off}, nil
	}
	if p.pos+1 < len(p.src) {
		switch p.src[p.pos+1] {
		case 'A':
			p.pos += 2
			return &rustNode{op: opStart, off: off}, nil
		case 'z':
			p.pos += 2
			return &rustNode{op: opEnd, off: off}, nil
		case 'b', 'B', '<', '>':
			return nil, p.fail(off, "word boundaries cannot be enforced; say the same with character classes")
		}
	}
	r, err := p.runeEscape()
	if err != nil {
		return nil, err
	}
	return p.literal(r, off), nil
}

// classEscape reads \d, \w, \s, \p{…} and their opposites; ok is false, and
// nothing is read, when there is none.
func (p *rustParser) classEscape() (set runeSet, ok bool, err *SchemaError) {
	if p.pos+1 >= len(p.src) {
		return nil, false, p.fail(p.pos, "the expression ends in a backslash")
	}
	off := p.pos
	c := p.src[off+1]
	switch c {
	case 'd', 'D':
		set = decimalDigits
	case 's', 'S':
		set = whiteSpace
	case 'w', 'W':
		set = wordRunes
	case 'p', 'P':
		p.pos += 2
		set, err = p.property(off)
		if err != nil {
			return nil, false, err
		}
		p.pos -= 2
	default:
		return nil, false, nil
	}
	p.pos += 2
	if p.flags.fold && (c == 'p' || c == 'P') {
		set = set.folded()
	}
	if c >= 'A' && c <= 'Z' {
		set = set.negated()
	}
	return set, true, nil
}

func (p *rustParser) property(off int) (runeSet, *SchemaError) {
	name := ""
	if p.peek() == '{' {
		end := strings.IndexByte(p.src[p.pos:], '}')
		if end < 0 {
			return nil, p.fail(off, "'\\p{' has no '}'")
		}
		name = p.src[p.pos+1 : p.pos+end]
		p.pos += end + 1
	} else if p.more() {
		name = string(p.next())
	}
	set, ok := property(name)
	if !ok {
		return nil, p.fail(off, "the Unicode property %q is not known here", name)
	}
	return set, nil
}

// runeEscape reads an escape that stands for one character.
func (p *rustParser) runeEscape() (rune, *SchemaError) {
	off := p.pos
	p.next()
	if !p.more() {
		return 0, p.fail(off, "the expression ends in a backslash")
	}
	r := p.next()
	switch r {
	case 'a':
		return '\a', nil
	case 'f':
		return '\f', nil
	case 't':
		return '\t', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 'v':
		return '\v', nil
	case 'x':
		return p.hex(off, 2)
	case 'u':
		return p.hex(off, 4)
	case 'U':
		return p.hex(off, 8)
	}
	switch {
	case r >= '0' && r <= '9':
		return 0, p.fail(off, "back-references and octal escapes cannot be enforced")
	case r < 0x80 && !alphanumeric(byte(r)) && r != '<' && r != '>' && r > ' ' && r != 0x7f,
		r == ' ' && p.flags.verbose, r == ' ':
		return r, nil
	}
	return 0, p.fail(off, "there is no escape '\\%c'", r)
}

func (p *rustParser) hex(off, n int) (rune, *SchemaError) {
	var digits string
	if p.peek() == '{' {
		end := strings.IndexByte(p.src[p.pos:], '}')
		if end < 0 {
			return 0, p.fail(off, "the escape's '{' has no '}'")
		}
		digits = p.src[p.pos+1 : p.pos+end]
		p.pos += end + 1
	} else {
		if p.pos+n > len(p.src) {
			return 0, p.fail(off, "the escape wants %d hexadecimal digits", n)
		}
		digits = p.src[p.pos : p.pos+n]
		p.pos += n
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !utf8.ValidRune(rune(v)) || v > unicode.MaxRune {
		return 0, p.fail(off, "the escape is not the hexadecimal number of a character")
	}
	return rune(v), nil
}

// class reads "[…]".
func (p *rustParser) class() (runeSet, *SchemaError) {
	off := p.pos
	p.next()
	if p.depth++; p.depth > maxGroups {
		return nil, p.fail(off, "classes are nested deeper than 100 levels")
	}
	defer func() { p.depth-- }()
	p.skip()
	negate := false
	if p.peek() == '^' {
		p.next()
		negate = true
	}
	p.skip()
	var acc, union runeSet
	var op byte // of the operator before union; 0: none yet
	combine := func() {
		switch op {
		case 0:
			acc = union
		case '&':
			acc = acc.and(union)
		case '-':
			acc = acc.minus(union)
		case '~':
			acc = acc.minus(union).or(union.minus(acc))
		}
		union = nil
	}
	// A '-' and then a ']' are literal at the very start.
	first := true
	for p.peek() == '-' {
		p.next()
		union = union.or(runeSet{{'-', '-'}})
		first = false
		p.skip()
	}
	if first && p.peek() == ']' {
		p.next()
		union = runeSet{{']', ']'}}
	}
	for {
		p.skip()
		if !p.more() {
			return nil, p.fail(off, "'[' has no ']'")
		}
		rest := p.src[p.pos:]
		switch {
		case rest[0] == ']':
			p.next()
			combine()
			if negate {
				acc = acc.negated()
			}
			return acc, nil
		case hasAny(rest, "&&", "--", "~~"):
			p.pos += 2
			combine()
			op = rest[0]
		case rest[0] == '[':
			if set, ok := p.posix(); ok {
				union = union.or(set)
				continue
			}
			set, err := p.class()
			if err != nil {
				return nil, err
			}
			union = union.or(set)
		default:
			set, err := p.classItem(off)
			if err != nil {
				return nil, err
			}
			union = union.or(set)
		}
	}
}

// classItem reads one character, range or class escape.
func (p *rustParser) classItem(open int) (runeSet, *SchemaError) {
	off := p.pos
	lo, set, err := p.classAtom()
	if err != nil || set != nil {
		return set, err
	}
	hi := lo
	p.skip()
	if p.peek() == '-' {
		mark := p.pos
		p.next()
		p.skip()
		if !p.more() {
			return nil, p.fail(open, "'[' has no ']'")
		}
		if p.peek() == ']' || p.peek() == '-' {
			p.pos = mark // a literal '-', or the operator '--'
		} else if hi, set, err = p.classAtom(); err != nil {
			return nil, err
		} else if set != nil {
			return nil, p.fail(off, "a range ends in a character, not in a class")
		}
	}
	if hi < lo {
		return nil, p.fail(off, "the range runs backwards")
	}
	out := runeSet{{lo, hi}}
	if p.flags.fold {
		out = out.folded()
	}
	return out, nil
}

func (p *rustParser) classAtom() (rune, runeSet, *SchemaError) {
	if p.peek() != '\\' {
		return p.next(), nil, nil
	}
	set, ok, err := p.classEscape()
	if err != nil {
		return 0, nil, err
	}
	if ok {
		if set == nil {
			set = runeSet{}
		}
		return 0, set, nil
	}
	r, err := p.runeEscape()
	return r, nil, err
}

var posixClasses = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "ascii": "\x00\x7f", "blank": "\t\t  ", "cntrl": "\x00\x1f\x7f\x7f",
	"digit": "09", "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ",
	"upper": "AZ", "word": "09AZ__az", "xdigit": "09AFaf",
}

// posix reads "[:name:]"; when there is none, nothing is read.
func (p *rustParser) posix() (runeSet, bool) {
	rest, ok := strings.CutPrefix(p.src[p.pos:], "[:")
	if !ok {
		return nil, false
	}
	name, _, ok := strings.Cut(rest, ":]")
	if !ok {
		return nil, false
	}
	bare, negate := strings.CutPrefix(name, "^")
	pairs, ok := posixClasses[bare]
	if !ok {
		return nil, false
	}
	p.pos += len("[:") + len(name) + len(":]")
	var set runeSet
	for i := 0; i < len(pairs); i += 2 {
		set = set.or(runeSet{{rune(pairs[i]), rune(pairs[i+1])}})
	}
	if p.flags.fold {
		set = set.folded()
	}
	if negate {
		set = set.negated()
	}
	return set, true
}
