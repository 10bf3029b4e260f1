package lark

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A small reader of the regular expressions that llguidance takes (those of
// Rust's regex crate). It tells where one is malformed or asks for what
// llguidance does not do, and it is what translation and sampling work on:
// flags, case folding and classes are resolved into sets of characters.

type rop int

const (
	rEmpty rop = iota
	rClass
	rCat
	rAlt
	rRepeat
	rGroup // a capture
	rLook
)

// rnode is a node of a regular expression.
type rnode struct {
	op   rop
	at   int // byte offset in the source
	set  runeSet
	subs []*rnode
	// min and max of rRepeat; max is negative without a bound.
	min, max int
	// name of a capture; llguidance reads (?P<stop>…) as a lookahead.
	name string
	// look is what an rLook asserts: "^" and "$" stand for the ends of the
	// text, everything else is as written.
	look string
}

// rerror is a fault at a byte offset of the source.
type rerror struct {
	at        int
	msg, hint string
}

type rflags struct{ i, m, s, swap, u, crlf, x bool }

// rparser reads one expression.
type rparser struct {
	src   string
	i     int
	utf8  bool // refuse what matches bytes that are not UTF-8
	depth int
	names map[string]bool
}

// Nesting beyond this is refused by the regex crate; the recursion here
// counts a little differently, so the last levels may differ.
const maxRegexDepth = 250

// parseRegex reads src with the flags of /src/flags.
func parseRegex(src, flags string, invalidUTF8 bool) (*rnode, *rerror) {
	p := &rparser{src: src, utf8: !invalidUTF8, names: map[string]bool{}}
	f := rflags{u: !invalidUTF8}
	for i, c := range flags {
		if strings.ContainsRune(flags[:i], c) {
			return nil, &rerror{len(src) + 1 + i, "the flag " + string(c) + " stands twice", "write it once"}
		}
		if c == 'l' {
			return nil, &rerror{len(src) + 1 + i, "the flag l is not supported", "remove it"}
		}
		f.set(c, true)
	}
	var n *rnode
	err := catch(func() {
		n = p.alternation(&f)
		if p.i < len(p.src) { // only a ) can stop it
			p.fail(p.i, "the ) closes nothing", `write \) for the character`)
		}
		n = p.anchors(n, true, true)
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

func catch(f func()) (err *rerror) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*rerror)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	f()
	return nil
}

func (p *rparser) fail(at int, msg, hint string) { panic(&rerror{at, msg, hint}) }

func (f *rflags) set(c rune, on bool) bool {
	switch c {
	case 'i':
		f.i = on
	case 'm':
		f.m = on
	case 's':
		f.s = on
	case 'U':
		f.swap = on
	case 'u':
		f.u = on
	case 'R':
		f.crlf = on
	case 'x':
		f.x = on
	default:
		return false
	}
	return true
}

func (p *rparser) eof() bool { return p.i >= len(p.src) }

func (p *rparser) peek() rune {
	r, _ := utf8.DecodeRuneInString(p.src[p.i:])
	return r
}

func (p *rparser) next() rune {
	r, n := utf8.DecodeRuneInString(p.src[p.i:])
	p.i += n
	return r
}

func (p *rparser) take(s string) bool {
	if strings.HasPrefix(p.src[p.i:], s) {
		p.i += len(s)
		return true
	}
	return false
}

// space skips white space and comments where the flag x allows them.
func (p *rparser) space(f *rflags) {
	for f.x && !p.eof() {
		switch c := p.peek(); {
		case unicode.IsSpace(c):
			p.next()
		case c == '#':
			for !p.eof() && p.next() != '\n' {
			}
		default:
			return
		}
	}
}

func (p *rparser) alternation(f *rflags) *rnode {
	if p.depth++; p.depth > maxRegexDepth {
		p.fail(p.i, "it is nested more than 250 deep", "")
	}
	defer func() { p.depth-- }()
	out := &rnode{op: rAlt, at: p.i}
	for {
		out.subs = append(out.subs, p.concat(f))
		if p.eof() || p.peek() != '|' {
			break
		}
		p.i++
	}
	if len(out.subs) == 1 {
		return out.subs[0]
	}
	return out
}

func (p *rparser) concat(f *rflags) *rnode {
	out := &rnode{op: rCat, at: p.i}
	// repeatable is false after a setting of flags, which cannot be repeated.
	repeatable := false
	for {
		p.space(f)
		if p.eof() || p.peek() == '|' || p.peek() == ')' {
			break
		}
		at := p.i
		switch p.peek() {
		case '*', '+', '?', '{':
			if !repeatable {
				p.fail(at, "there is nothing to repeat before "+string(p.peek()), `write \`+string(p.peek())+` for the character`)
			}
			last := out.subs[len(out.subs)-1]
			out.subs[len(out.subs)-1] = p.quantifier(last, f)
			continue
		case '(':
			n, isFlags := p.group(f)
			if isFlags {
				repeatable = false
				continue
			}
			out.subs = append(out.subs, n)
		default:
			out.subs = append(out.subs, p.atom(f))
		}
		repeatable = true
	}
	switch len(out.subs) {
	case 0:
		return &rnode{op: rEmpty, at: out.at}
	case 1:
		return out.subs[0]
	}
	return out
}

func (p *rparser) quantifier(x *rnode, f *rflags) *rnode {
	at := p.i
	out := &rnode{op: rRepeat, at: x.at, subs: []*rnode{x}, max: -1}
	if p.depth+repeats(out) > maxRegexDepth {
		p.fail(at, "it is nested more than 250 deep", "")
	}
	switch p.next() {
	case '+':
		out.min = 1
	case '?':
		out.max = 1
	case '{':
		p.counts(out, at, f)
	}
	p.space(f)
	p.take("?") // lazy or greedy is the same set of texts
	return out
}

// repeats counts the repetitions directly inside each other.
func repeats(n *rnode) int {
	c := 0
	for n.op == rRepeat {
		n = n.subs[0]
		c++
	}
	return c
}

func (p *rparser) counts(out *rnode, at int, f *rflags) {
	const hint = `write {2}, {2,} or {2,5}; write \{ for the character`
	number := func() int {
		p.spaces()
		from := p.i
		for !p.eof() && p.peek() >= '0' && p.peek() <= '9' {
			p.i++
		}
		digits := p.src[from:p.i]
		p.spaces()
		if digits == "" {
			p.fail(at, "the repetition has no number where one belongs", hint)
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil {
			p.fail(from, "the number of repetitions is too large", "")
		}
		return int(n)
	}
	out.min = number()
	out.max = out.min
	if p.take(",") {
		p.space(f)
		out.max = -1
		if !p.eof() && p.peek() != '}' {
			if out.max = number(); out.max < out.min {
				p.fail(at, "the repetition ends before it begins", "put the smaller number first")
			}
		}
	}
	if !p.take("}") {
		p.fail(at, "the repetition is not closed", hint)
	}
}

func (p *rparser) spaces() {
	for !p.eof() && unicode.IsSpace(p.peek()) {
		p.next()
	}
}

// group reads ( … ), or (?flags), which it applies to f.
func (p *rparser) group(f *rflags) (n *rnode, isFlags bool) {
	at := p.i
	p.i++
	p.space(f)
	for _, s := range []string{"?=", "?!", "?<=", "?<!"} {
		if strings.HasPrefix(p.src[p.i:], s) {
			p.fail(at, "lookaround is not supported", "say with ~ and & of terminals what must not match, or write the expression without it")
		}
	}
	inner := *f
	out := &rnode{op: rGroup, at: at}
	switch {
	case p.take("?P<") || p.take("?<"):
		out.name = p.captureName()
	case p.take("?P=") || p.take("?P>"), p.take("?>"), p.take("?|"):
		p.fail(at, "this kind of group is not supported", "write (?: … )")
	case p.take("?"):
		out.op = rCat
		if p.setFlags(at, &inner) {
			*f = inner
			return nil, true
		}
	}
	body := p.alternation(&inner)
	if !p.take(")") {
		p.fail(at, "the ( is never closed", `close it with ), or write \( for the character`)
	}
	out.subs = []*rnode{body}
	return out, false
}

func (p *rparser) captureName() string {
	from := p.i
	for !p.eof() && p.peek() != '>' {
		c, at := p.next(), p.i
		ok := c == '_' || unicode.IsLetter(c)
		if at > from+1 {
			ok = ok || c == '.' || c == '[' || c == ']' || unicode.IsNumber(c)
		}
		if !ok {
			p.fail(from, "the name of the group is not a name", "write letters, digits and _")
		}
	}
	name := p.src[from:p.i]
	switch {
	case !p.take(">"):
		p.fail(from, "the name of the group is never closed", "close it with >")
	case name == "":
		p.fail(from, "the name of the group is empty", "")
	case p.names[name]:
		p.fail(from, "two groups have the name "+name, "rename one")
	}
	p.names[name] = true
	return name
}

// setFlags reads flags up to ) or : and reports whether it was ).
func (p *rparser) setFlags(at int, f *rflags) bool {
	on, seen, dangling := true, "", false
	for {
		if p.eof() {
			p.fail(at, "the ( is never closed", `close it with ), or write \( for the character`)
		}
		fat := p.i
		c := p.next()
		switch {
		case c == ':' || c == ')':
			if dangling {
				p.fail(fat, "no flag follows the -", "")
			}
			if c == ')' && seen == "" {
				p.fail(at, "there is nothing to repeat before ?", `write \( for the character`)
			}
			return c == ')'
		case strings.ContainsRune(seen, c):
			p.fail(fat, "the flag "+string(c)+" stands twice", "write it once")
		case c == '-':
			on, dangling = false, true
		case f.set(c, on):
			dangling = false
		default:
			p.fail(fat, "there is no flag "+string(c), "the flags are i, m, s, u, x, R and U")
		}
		seen += string(c)
	}
}

// anchors removes ^ and $ at the ends, where they say nothing, and refuses
// every other assertion.
func (p *rparser) anchors(n *rnode, start, end bool) *rnode {
	switch n.op {
	case rLook:
		if n.look == "^" && start || n.look == "$" && end {
			return &rnode{op: rEmpty, at: n.at}
		}
		hint := "remove it"
		if n.look == "^" || n.look == "$" {
			hint = "the whole text must match anyway: remove it, or write \\" + n.look + " for the character"
		}
		p.fail(n.at, n.look+" is not supported here", hint)
	case rAlt:
		for i, s := range n.subs {
			n.subs[i] = p.anchors(s, start, end)
		}
	case rGroup:
		n.subs[0] = p.anchors(n.subs[0], start, end)
	case rRepeat:
		// Once is the thing itself; repeating an assertion changes nothing.
		x := n.subs[0]
		once := n.min == 1 && n.max == 1 || x.op == rLook && n.min > 0
		n.subs[0] = p.anchors(x, start && once, end && once)
	case rCat:
		flat := flatten(n, nil)
		first, last := 0, len(flat)-1
		for first < len(flat) && flat[first].op == rLook && flat[first].look == "^" {
			first++
		}
		for last >= 0 && flat[last].op == rLook && flat[last].look == "$" {
			last--
		}
		for i, s := range flat {
			flat[i] = p.anchors(s, start && i <= first, end && i >= last)
		}
		n.subs = flat
	}
	return n
}

// flatten resolves groups without a capture and drops what is empty.
func flatten(n *rnode, out []*rnode) []*rnode {
	for _, s := range n.subs {
		switch s.op {
		case rEmpty:
		case rCat:
			out = flatten(s, out)
		default:
			out = append(out, s)
		}
	}
	return out
}
