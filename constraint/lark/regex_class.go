package lark

import (
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// atom reads one character, class or assertion.
func (p *rparser) atom(f *rflags) *rnode {
	at := p.i
	switch c := p.next(); c {
	case '.':
		set := []rune{0, '\n' - 1, '\n' + 1, utf8.MaxRune}
		switch {
		case f.s:
			set = []rune{0, utf8.MaxRune}
		case f.crlf:
			set = []rune{0, '\n' - 1, '\n' + 1, '\r' - 1, '\r' + 1, utf8.MaxRune}
		}
		if !f.u {
			if p.utf8 {
				p.fail(at, ". without Unicode matches bytes that are not UTF-8", "leave out the flag -u")
			}
			return &rnode{op: rClass, at: at, set: runeSet{pairs: intersect(set, []rune{0, 255}), bytes: true}}
		}
		return &rnode{op: rClass, at: at, set: newSet(set)}
	case '^':
		return &rnode{op: rLook, at: at, look: p.lineAnchor("^", f)}
	case '$':
		return &rnode{op: rLook, at: at, look: p.lineAnchor("$", f)}
	case '[':
		p.i = at
		return &rnode{op: rClass, at: at, set: p.class(f)}
	case '\\':
		e := p.escape(at, f)
		if e.look != "" {
			return &rnode{op: rLook, at: at, look: e.look}
		}
		if e.isClass {
			return &rnode{op: rClass, at: at, set: p.finish(at, e.set, f)}
		}
		return p.literal(at, e.r, e.byteEscape, f)
	default:
		return p.literal(at, c, false, f)
	}
}

// lineAnchor names an assertion; with the flag m it is about lines, which
// llguidance does not do.
func (p *rparser) lineAnchor(s string, f *rflags) string {
	if f.m {
		return s + " with the flag m"
	}
	return s
}

func (p *rparser) literal(at int, r rune, byteEscape bool, f *rflags) *rnode {
	set := runeSet{pairs: []rune{r, r}}
	if !f.u && r > 0x7f {
		switch {
		case byteEscape && p.utf8:
			p.fail(at, "the byte is not UTF-8", "leave out the flag -u")
		case byteEscape:
			set.bytes = true
		}
	}
	if f.i && !set.bytes {
		set.pairs = fold(set.pairs, f.u)
	}
	return &rnode{op: rClass, at: at, set: set}
}

// finish refuses a class that can match bytes that are not UTF-8.
func (p *rparser) finish(at int, set runeSet, f *rflags) runeSet {
	if !f.u && p.utf8 && set.bytes && len(set.pairs) > 0 && set.pairs[len(set.pairs)-1] > 0x7f {
		p.fail(at, "the class matches bytes that are not UTF-8", "leave out the flag -u")
	}
	return set
}

// escaped is what a backslash begins.
type escaped struct {
	r          rune
	byteEscape bool // \xHH
	isClass    bool
	set        runeSet
	look       string
}

func (p *rparser) escape(at int, f *rflags) escaped {
	if p.eof() {
		p.fail(at, "nothing follows the backslash", `write \\ for the character`)
	}
	c := p.next()
	switch {
	case c >= '0' && c <= '9':
		p.fail(at, "backreferences are not supported", `write \x00 to \x1f for a control character`)
	case c == 'x' || c == 'u' || c == 'U':
		r, fixed := p.hex(at, c, f)
		return escaped{r: r, byteEscape: c == 'x' && fixed}
	case c == 'p' || c == 'P':
		return escaped{isClass: true, set: p.property(at, c == 'P', f)}
	case strings.ContainsRune("dswDSW", c):
		return escaped{isClass: true, set: p.perl(c, f)}
	case c < utf8.RuneSelf && !isAlnum(c) && c != '<' && c != '>':
		return escaped{r: c}
	}
	switch c {
	case 'a':
		return escaped{r: '\a'}
	case 'f':
		return escaped{r: '\f'}
	case 't':
		return escaped{r: '\t'}
	case 'n':
		return escaped{r: '\n'}
	case 'r':
		return escaped{r: '\r'}
	case 'v':
		return escaped{r: '\v'}
	case 'A':
		return escaped{look: "^"}
	case 'z':
		return escaped{look: "$"}
	case 'b', 'B', '<', '>':
		if c == 'b' && strings.HasPrefix(p.src[p.i:], "{") {
			if j := strings.IndexByte(p.src[p.i:], '}'); j > 1 && !isDigit(rune(p.src[p.i+1])) {
				p.i += j + 1
			}
		}
		return escaped{look: `\` + string(c)}
	}
	hint := ""
	switch c {
	case 'Z':
		hint = "the whole text must match anyway: remove it"
	case 'k', 'g':
		hint = "backreferences are not supported"
	case 'e':
		hint = `write \x1b`
	case 'h':
		hint = `write [ \t]`
	}
	if c > utf8.RuneSelf {
		hint = "write the character without the backslash"
	}
	p.fail(at, `\`+string(c)+" has no meaning", hint)
	panic("unreachable")
}

func isDigit(c rune) bool { return c >= '0' && c <= '9' }
func isAlnum(c rune) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// hex reads what follows \x, \u or \U; fixed is false for \x{…}.
func (p *rparser) hex(at int, kind rune, f *rflags) (r rune, fixed bool) {
	p.space(f)
	digits := ""
	if p.take("{") {
		for {
			p.space(f)
			if p.eof() {
				p.fail(at, "the { is never closed", "close it with }")
			}
			if p.take("}") {
				break
			}
			digits += string(p.next())
		}
	} else {
		fixed = true
		n := map[rune]int{'x': 2, 'u': 4, 'U': 8}[kind]
		for len(digits) < n && !p.eof() {
			p.space(f)
			if p.eof() || !strings.ContainsRune("0123456789abcdefABCDEF", p.peek()) {
				break
			}
			digits += string(p.next())
		}
		if len(digits) < n {
			p.fail(at, `\`+string(kind)+" needs "+strconv.Itoa(n)+" hexadecimal digits", "")
		}
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || strings.HasPrefix(digits, "+") || n > utf8.MaxRune || n >= 0xD800 && n <= 0xDFFF {
		p.fail(at, `\`+string(kind)+" is not followed by the number of a character", "")
	}
	return rune(n), fixed
}

func (p *rparser) perl(c rune, f *rflags) runeSet {
	if f.u {
		return perlClasses()[c]
	}
	return asciiClasses()[c]
}

// Both tables are made once and shared: nothing writes to a set it did not
// make.
var perlClasses = sync.OnceValue(func() map[rune]runeSet {
	return withNegated(map[rune]runeSet{
		'd': {pairs: table(unicode.Nd)},
		's': {pairs: table(unicode.White_Space)},
		'w': {pairs: table(unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc, unicode.Join_Control)},
	})
})

var asciiClasses = sync.OnceValue(func() map[rune]runeSet {
	return withNegated(map[rune]runeSet{
		'd': {pairs: []rune{'0', '9'}, bytes: true},
		's': {pairs: []rune{'\t', '\r', ' ', ' '}, bytes: true},
		'w': {pairs: []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}, bytes: true},
	})
})

func withNegated(m map[rune]runeSet) map[rune]runeSet {
	for _, c := range "dsw" {
		m[unicode.ToUpper(c)] = m[c].negate()
	}
	return m
}

// class reads [ … ], with nested classes and the operators &&, -- and ~~.
func (p *rparser) class(f *rflags) runeSet {
	open := p.i
	if p.depth++; p.depth > maxRegexDepth {
		p.fail(open, "it is nested more than 250 deep", "")
	}
	defer func() { p.depth-- }()
	p.i++
	unclosed := func() {
		if p.eof() {
			p.fail(open, "the [ is never closed", `close it with ], or write \[ for the character`)
		}
	}
	p.space(f)
	negated := p.take("^")
	p.space(f)
	cur := runeSet{bytes: !f.u}
	first := true
	for ; p.take("-"); p.space(f) {
		cur.add(p, open, '-', '-', f)
		first = false
	}
	if first && p.take("]") {
		cur.add(p, open, ']', ']', f)
	}
	var acc *runeSet
	op := ""
	combine := func() {
		if acc == nil {
			c := cur
			acc = &c
		} else {
			c := acc.combine(op, cur)
			acc = &c
		}
		cur = runeSet{bytes: !f.u}
	}
	for {
		p.space(f)
		unclosed()
		switch {
		case p.peek() == '[':
			if s, ok := p.posix(f); ok {
				cur.union(s)
				continue
			}
			cur.union(p.class(f))
		case p.take("]"):
			combine()
			out := *acc
			out.pairs = normal(out.pairs)
			if negated {
				out = out.negate()
			}
			return p.finish(open, out, f)
		case strings.HasPrefix(p.src[p.i:], "&&"), strings.HasPrefix(p.src[p.i:], "--"), strings.HasPrefix(p.src[p.i:], "~~"):
			combine()
			op = p.src[p.i : p.i+2]
			p.i += 2
		default:
			p.classRange(&cur, f, unclosed)
		}
	}
}

func (p *rparser) classRange(cur *runeSet, f *rflags, unclosed func()) {
	at := p.i
	item := func() escaped {
		iat := p.i
		if c := p.next(); c != '\\' {
			return escaped{r: c}
		}
		e := p.escape(iat, f)
		if e.look != "" {
			p.fail(iat, e.look+" cannot stand in a class", "")
		}
		return e
	}
	from := item()
	p.space(f)
	unclosed()
	isRange := p.peek() == '-'
	if isRange {
		save := p.i
		p.i++
		p.space(f)
		if !p.eof() && (p.peek() == ']' || p.peek() == '-') {
			isRange, p.i = false, save
		}
	}
	if !isRange {
		if from.isClass {
			cur.union(from.set)
		} else {
			cur.addByte(p, at, from.r, from.r, from.byteEscape, f)
		}
		return
	}
	unclosed()
	to := item()
	switch {
	case from.isClass || to.isClass:
		p.fail(at, "a range goes from one character to one character", `write \- for the character -`)
	case from.r > to.r:
		p.fail(at, "the range ends before it begins", `put the smaller character first, or write \- for the character -`)
	}
	cur.addByte(p, at, from.r, to.r, from.byteEscape || to.byteEscape, f)
}

// posix reads [:alpha:] inside a class; anything else is left unread.
func (p *rparser) posix(f *rflags) (runeSet, bool) {
	rest := p.src[p.i:]
	end := strings.Index(rest, ":]")
	if !strings.HasPrefix(rest, "[:") || end < 2 {
		return runeSet{}, false
	}
	name, neg := strings.CutPrefix(rest[2:end], "^")
	pairs, ok := posixClasses[name]
	if !ok {
		return runeSet{}, false
	}
	p.i += end + 2
	set := runeSet{pairs: []rune(pairs), bytes: !f.u}
	if f.i {
		set.pairs = fold(set.pairs, f.u)
	}
	if neg {
		set = set.negate()
	}
	return set, true
}

var posixClasses = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "ascii": "\x00\x7f", "blank": "\t\t  ", "cntrl": "\x00\x1f\x7f\x7f",
	"digit": "09", "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ",
	"upper": "AZ", "word": "09AZ__az", "xdigit": "09AFaf",
}
