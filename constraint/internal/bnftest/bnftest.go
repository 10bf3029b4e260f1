// Package bnftest reads the grammars that package lark prints for llama.cpp
// and XGrammar and recognises texts by them. It is an independent judge for
// tests: it shares no code with the translation and is strict where the
// engines are strict or would go on silently.
package bnftest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Dialect is whose rules a grammar must follow.
type Dialect int

// GBNF is llama.cpp's dialect, EBNF XGrammar's.
const (
	GBNF Dialect = iota
	EBNF
)

// maxRepeat is llama.cpp's: above it an upper bound is dropped without a word.
const maxRepeat = 2000

type op int

const (
	opText op = iota
	opSet
	opSeq
	opAlt
	opRep
	opRef
)

type node struct {
	op       op
	id       int
	text     string
	pairs    []rune
	negated  bool
	subs     []*node
	min, max int // max < 0: none
	name     string
}

// Grammar is a grammar that was read.
type Grammar struct {
	rules map[string]*node
	nodes int
}

// Parse reads a grammar and checks it as its engine would.
func Parse(src string, d Dialect) (*Grammar, error) {
	p := &parser{src: src, d: d, g: &Grammar{rules: map[string]*node{}}}
	if err := p.grammar(); err != nil {
		return nil, err
	}
	for _, r := range p.refs {
		if p.g.rules[r] == nil {
			return nil, fmt.Errorf("the rule %s is not defined", r)
		}
	}
	if p.g.rules["root"] == nil {
		return nil, fmt.Errorf("there is no root")
	}
	return p.g, p.g.leftRecursion()
}

type parser struct {
	src  string
	i    int
	d    Dialect
	g    *Grammar
	refs []string
}

type syntaxError string

func (e syntaxError) Error() string { return string(e) }

func (p *parser) fail(format string, args ...any) {
	panic(syntaxError(fmt.Sprintf("at byte %d: ", p.i) + fmt.Sprintf(format, args...)))
}

func (p *parser) grammar() (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	for p.i < len(p.src) {
		name := p.name()
		p.space()
		if !p.take("::=") {
			p.fail("no ::= after %s", name)
		}
		p.space()
		if p.g.rules[name] != nil {
			p.fail("%s is defined twice", name)
		}
		p.g.rules[name] = p.alternatives()
		if !p.take("\n") {
			p.fail("the rule %s does not end with its line", name)
		}
	}
	return nil
}

func (p *parser) space() {
	for p.i < len(p.src) && p.src[p.i] == ' ' {
		p.i++
	}
}

func (p *parser) take(s string) bool {
	if strings.HasPrefix(p.src[p.i:], s) {
		p.i += len(s)
		return true
	}
	return false
}

func (p *parser) peek() byte {
	if p.i < len(p.src) {
		return p.src[p.i]
	}
	return 0
}

func isName(c byte) bool {
	return c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (p *parser) name() string {
	from := p.i
	for isName(p.peek()) {
		p.i++
	}
	name := p.src[from:p.i]
	if name == "" || p.d == EBNF && (name[0] == '-' || name[0] >= '0' && name[0] <= '9') {
		p.fail("%q is not the name of a rule", name)
	}
	return name
}

func (p *parser) node(n node) *node {
	p.g.nodes++
	n.id = p.g.nodes
	return &n
}

func (p *parser) alternatives() *node {
	alts := []*node{p.sequence()}
	for p.take("|") {
		p.space()
		alts = append(alts, p.sequence())
	}
	return p.node(node{op: opAlt, subs: alts})
}

func (p *parser) sequence() *node {
	var list []*node
	for {
		switch c := p.peek(); {
		case c == '"':
			list = append(list, p.text())
		case c == '[':
			list = append(list, p.set())
		case c == '(':
			p.i++
			p.space()
			list = append(list, p.alternatives())
			if !p.take(")") {
				p.fail("a ( is not closed")
			}
		case isName(c):
			name := p.name()
			p.refs = append(p.refs, name)
			list = append(list, p.node(node{op: opRef, name: name}))
		case c == '*' || c == '+' || c == '?' || c == '{':
			if len(list) == 0 {
				p.fail("nothing to repeat")
			}
			x := list[len(list)-1]
			if x.op == opRep {
				p.fail("a repetition is repeated")
			}
			min, max := p.bounds()
			list[len(list)-1] = p.node(node{op: opRep, subs: []*node{x}, min: min, max: max})
		default:
			if len(list) == 0 {
				p.fail("an alternative without a word")
			}
			return p.node(node{op: opSeq, subs: list})
		}
		p.space()
	}
}

func (p *parser) bounds() (min, max int) {
	switch c := p.peek(); c {
	case '*':
		p.i++
		return 0, -1
	case '+':
		p.i++
		return 1, -1
	case '?':
		p.i++
		return 0, 1
	}
	p.i++
	number := func() int {
		from := p.i
		for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
			p.i++
		}
		n, err := strconv.Atoi(p.src[from:p.i])
		if err != nil {
			p.fail("a bound is not a number")
		}
		if p.d == GBNF && n > maxRepeat {
			p.fail("the bound %d is over %d and would be dropped", n, maxRepeat)
		}
		return n
	}
	min = number()
	max = min
	if p.take(",") {
		max = -1
		if p.peek() != '}' {
			max = number()
		}
	}
	if !p.take("}") {
		p.fail("a { is not closed")
	}
	if max >= 0 && max < min || max == 0 {
		p.fail("the bounds %d and %d", min, max)
	}
	return min, max
}

func (p *parser) char() rune {
	r, n := utf8.DecodeRuneInString(p.src[p.i:])
	if n == 0 || r == '\n' || r == utf8.RuneError && n == 1 {
		p.fail("the line ends too early")
	}
	p.i += n
	if r != '\\' {
		return r
	}
	c := p.peek()
	p.i++
	digits := 0
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case '\\', '"':
		return rune(c)
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		p.fail("the escape \\%c does not mean the same everywhere", c)
	}
	if p.i+digits > len(p.src) {
		p.fail("an escape is cut off")
	}
	v, err := strconv.ParseUint(p.src[p.i:p.i+digits], 16, 32)
	if err != nil || v > utf8.MaxRune {
		p.fail("a bad escape")
	}
	p.i += digits
	return rune(v)
}

func (p *parser) text() *node {
	p.i++
	var b strings.Builder
	for p.peek() != '"' {
		b.WriteRune(p.char())
	}
	p.i++
	return p.node(node{op: opText, text: b.String()})
}

func (p *parser) set() *node {
	p.i++
	n := node{op: opSet, negated: p.take("^")}
	for p.peek() != ']' {
		if c := p.peek(); c == '^' || c == '-' || c == '[' {
			p.fail("%c stands bare in a set", c)
		}
		from := p.char()
		to := from
		if p.take("-") {
			to = p.char()
		}
		if to < from {
			p.fail("a range runs backwards")
		}
		n.pairs = append(n.pairs, from, to)
	}
	p.i++
	if len(n.pairs) == 0 {
		p.fail("an empty set")
	}
	return p.node(n)
}
