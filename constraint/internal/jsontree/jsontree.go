// Package jsontree reads JSON into a tree that remembers where each value
// stood and how it was spelled, so that an error can name a line and column
// and a changed document can be written back with every other byte, and the
// order of members, as the author left them.
//
// It is stricter than encoding/json: duplicate members, lone surrogates and
// invalid UTF-8 are errors.
package jsontree

import (
	"fmt"
	"unicode/utf8"
)

// Kind of a value.
type Kind byte

// The kinds.
const (
	Null Kind = iota
	False
	True
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Node is one value. Offsets are bytes from the start of the document; a node
// made by a caller has none.
type Node struct {
	Kind       Kind
	Start, End int
	Str        string // a String's decoded text
	Items      []*Node
	Members    []Member

	raw      []byte
	changed  bool // its own members differ from raw
	replaced bool // another value stood here
}

// Member is one name and value of an object.
type Member struct {
	Key      string
	KeyStart int
	Value    *Node
	rawKey   []byte
}

// Error is a document that is not JSON, or not JSON that everybody reads the
// same way.
type Error struct {
	Offset int
	Msg    string
}

func (e *Error) Error() string { return fmt.Sprintf("offset %d: %s", e.Offset, e.Msg) }

// Bounds end a parse early. Zero is no bound.
type Bounds struct{ Depth, Nodes int }

// BoundError says which of Bounds was exceeded: "depth" or "nodes".
type BoundError struct {
	What   string
	Offset int
}

func (e *BoundError) Error() string { return "more " + e.What + " than allowed" }

// Parse reads one document. Errors are *Error or *BoundError.
func Parse(src []byte, b Bounds) (*Node, error) {
	p := &parser{src: src, b: b}
	if b.Depth == 0 {
		p.b.Depth = 10_000
	}
	p.space()
	n, err := p.value(1)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(src) {
		return nil, p.fail("text after the end of the JSON value")
	}
	return n, nil
}

type parser struct {
	src   []byte
	pos   int
	nodes int
	b     Bounds
}

func (p *parser) fail(format string, args ...any) error {
	return &Error{Offset: p.pos, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) (*Node, error) {
	if p.pos >= len(p.src) {
		return nil, p.fail("the JSON ends where a value should stand")
	}
	if depth > p.b.Depth {
		return nil, &BoundError{"depth", p.pos}
	}
	if p.nodes++; p.b.Nodes > 0 && p.nodes > p.b.Nodes {
		return nil, &BoundError{"nodes", p.pos}
	}
	n := &Node{Start: p.pos}
	var err error
	switch c := p.src[p.pos]; {
	case c == '{':
		n.Kind, err = Object, p.object(n, depth)
	case c == '[':
		n.Kind, err = Array, p.array(n, depth)
	case c == '"':
		n.Kind = String
		n.Str, err = p.str()
	case c == '-' || c >= '0' && c <= '9':
		n.Kind, err = Number, p.number()
	default:
		n.Kind, err = p.word()
	}
	if err != nil {
		return nil, err
	}
	n.End = p.pos
	n.raw = p.src[n.Start:n.End]
	return n, nil
}

func (p *parser) word() (Kind, error) {
	for _, w := range []struct {
		text string
		kind Kind
	}{{"null", Null}, {"true", True}, {"false", False}} {
		if len(p.src)-p.pos >= len(w.text) && string(p.src[p.pos:p.pos+len(w.text)]) == w.text {
			p.pos += len(w.text)
			return w.kind, nil
		}
	}
	r, _ := utf8.DecodeRune(p.src[p.pos:])
	if r == '\'' {
		return 0, p.fail("JSON strings stand in double quotes")
	}
	return 0, p.fail("%q starts no JSON value", r)
}

func (p *parser) object(n *Node, depth int) error {
	p.pos++
	seen := map[string]bool{}
	for first := true; ; first = false {
		p.space()
		if p.pos >= len(p.src) {
			return p.fail("the JSON ends inside an object")
		}
		if p.src[p.pos] == '}' {
			if !first {
				return p.fail("a comma before the closing brace")
			}
			p.pos++
			return nil
		}
		start := p.pos
		if p.src[p.pos] != '"' {
			return p.fail("a member's name in double quotes should stand here")
		}
		key, err := p.str()
		if err != nil {
			return err
		}
		if seen[key] {
			return &Error{Offset: start, Msg: fmt.Sprintf("duplicate member %q", clip(key))}
		}
		seen[key] = true
		m := Member{Key: key, KeyStart: start, rawKey: p.src[start:p.pos]}
		p.space()
		if p.pos >= len(p.src) || p.src[p.pos] != ':' {
			return p.fail("a colon should stand after the member's name")
		}
		p.pos++
		p.space()
		if m.Value, err = p.value(depth + 1); err != nil {
			return err
		}
		n.Members = append(n.Members, m)
		p.space()
		if p.pos < len(p.src) && p.src[p.pos] == '}' {
			p.pos++
			return nil
		}
		if p.pos >= len(p.src) || p.src[p.pos] != ',' {
			return p.fail("a comma or the closing brace should stand here")
		}
		p.pos++
	}
}

func (p *parser) array(n *Node, depth int) error {
	p.pos++
	for first := true; ; first = false {
		p.space()
		if p.pos < len(p.src) && p.src[p.pos] == ']' {
			if !first {
				return p.fail("a comma before the closing bracket")
			}
			p.pos++
			return nil
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, v)
		p.space()
		if p.pos < len(p.src) && p.src[p.pos] == ']' {
			p.pos++
			return nil
		}
		if p.pos >= len(p.src) || p.src[p.pos] != ',' {
			return p.fail("a comma or the closing bracket should stand here")
		}
		p.pos++
	}
}

func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

func (p *parser) number() error {
	if p.src[p.pos] == '-' {
		p.pos++
	}
	zero := p.pos < len(p.src) && p.src[p.pos] == '0'
	start := p.pos
	if !p.digits() {
		return p.fail("a digit should stand here")
	}
	if zero && p.pos-start > 1 {
		p.pos = start
		return p.fail("a number must not start with 0")
	}
	if p.pos < len(p.src) && p.src[p.pos] == '.' {
		p.pos++
		if !p.digits() {
			return p.fail("a digit should stand after the decimal point")
		}
	}
	if p.pos < len(p.src) && (p.src[p.pos] == 'e' || p.src[p.pos] == 'E') {
		p.pos++
		if p.pos < len(p.src) && (p.src[p.pos] == '+' || p.src[p.pos] == '-') {
			p.pos++
		}
		if !p.digits() {
			return p.fail("a digit should stand in the exponent")
		}
	}
	return nil
}

// clip keeps a message short.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
