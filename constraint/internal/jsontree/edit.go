package jsontree

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentgraph/internal/plainjson"
)

// Get returns the member's value, or nil.
func (n *Node) Get(key string) *Node {
	if m := n.member(key); m != nil {
		return m.Value
	}
	return nil
}

// Has reports whether the object has the member.
func (n *Node) Has(key string) bool { return n.member(key) != nil }

func (n *Node) member(key string) *Member {
	for i := range n.Members {
		if n.Members[i].Key == key {
			return &n.Members[i]
		}
	}
	return nil
}

// KeyOffset is where the member's name stands; -1 when there is none.
func (n *Node) KeyOffset(key string) int {
	if m := n.member(key); m != nil {
		return m.KeyStart
	}
	return -1
}

// Text is the value as it was spelled. It is not updated by changes.
func (n *Node) Text() string { return string(n.raw) }

// Clone copies the tree, so that one of the two may be changed.
func (n *Node) Clone() *Node {
	c := *n
	c.Items = make([]*Node, len(n.Items))
	for i, v := range n.Items {
		c.Items[i] = v.Clone()
	}
	c.Members = make([]Member, len(n.Members))
	for i, m := range n.Members {
		m.Value = m.Value.Clone()
		c.Members[i] = m
	}
	return &c
}

// Drop removes members and reports whether any was there.
func (n *Node) Drop(keys ...string) bool {
	kept := n.Members[:0:0]
	for _, m := range n.Members {
		drop := false
		for _, k := range keys {
			drop = drop || m.Key == k
		}
		if !drop {
			kept = append(kept, m)
		}
	}
	if len(kept) == len(n.Members) {
		return false
	}
	n.Members, n.changed = kept, true
	return true
}

// Rename gives a member another name in the same place.
func (n *Node) Rename(from, to string) {
	if m := n.member(from); m != nil {
		m.Key, m.rawKey, n.changed = to, quote(to), true
	}
}

// Set replaces a member's value in its place, or adds the member at the end.
func (n *Node) Set(key string, v *Node) {
	n.changed = true
	if m := n.member(key); m != nil {
		m.Value = v
		return
	}
	n.Members = append(n.Members, Member{Key: key, KeyStart: -1, rawKey: quote(key), Value: v})
}

// Move puts a member right before another one.
func (n *Node) Move(key, before string) {
	m := n.member(key)
	if m == nil || !n.Has(before) || key == before {
		return
	}
	moved := *m
	out := make([]Member, 0, len(n.Members))
	for _, o := range n.Members {
		if o.Key == before {
			out = append(out, moved)
		}
		if o.Key != key {
			out = append(out, o)
		}
	}
	n.Members, n.changed = out, true
}

// Replace turns the node into another value in the same place.
func (n *Node) Replace(v *Node) {
	start, end := n.Start, n.End
	*n = *v
	n.Start, n.End, n.replaced = start, end, true
}

// Raw makes a node out of JSON text; it panics on text that is not JSON.
func Raw(text string) *Node {
	n, err := Parse([]byte(text), Bounds{})
	if err != nil {
		panic("jsontree: " + err.Error())
	}
	return n
}

// Bytes writes the value: what was not changed as it was spelled.
func (n *Node) Bytes() []byte {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

// dirty says that raw, the node's own spelling, is out of date.
func (n *Node) dirty() bool {
	if n.changed {
		return true
	}
	for _, v := range n.Items {
		if v.replaced || v.dirty() {
			return true
		}
	}
	for _, m := range n.Members {
		if m.Value.replaced || m.Value.dirty() {
			return true
		}
	}
	return false
}

func (n *Node) write(b *bytes.Buffer) {
	switch {
	case !n.dirty():
		b.Write(n.raw)
	case n.Kind == Array:
		b.WriteByte('[')
		for i, v := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			v.write(b)
		}
		b.WriteByte(']')
	default:
		b.WriteByte('{')
		for i, m := range n.Members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(m.rawKey)
			b.WriteByte(':')
			m.Value.write(b)
		}
		b.WriteByte('}')
	}
}

func quote(s string) []byte { return []byte(Quote(s)) }

// Quote spells s as a JSON string.
func Quote(s string) string { return plainjson.Quote(s) }

// Position turns an offset into a line and a column in characters, from 1.
func Position(src []byte, offset int) (line, col int) {
	if offset < 0 {
		return 0, 0
	}
	before := src[:min(offset, len(src))]
	line = bytes.Count(before, []byte("\n")) + 1
	return line, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// Step appends one token to a JSON pointer.
func Step(pointer, token string) string {
	if strings.ContainsAny(token, "~/") {
		token = strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
	}
	return pointer + "/" + token
}

// Index appends an array index to a JSON pointer.
func Index(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

// At follows a JSON pointer; nil when nothing is there.
func (n *Node) At(pointer string) *Node {
	if pointer == "" {
		return n
	}
	if pointer[0] != '/' {
		return nil
	}
	for _, tok := range strings.Split(pointer[1:], "/") {
		tok = strings.NewReplacer("~1", "/", "~0", "~").Replace(tok)
		switch n.Kind {
		case Object:
			if n = n.Get(tok); n == nil {
				return nil
			}
		case Array:
			i, err := strconv.Atoi(tok)
			if err != nil || i < 0 || i >= len(n.Items) || strconv.Itoa(i) != tok {
				return nil
			}
			n = n.Items[i]
		default:
			return nil
		}
	}
	return n
}

// Append adds an item to an array.
func (n *Node) Append(v *Node) { n.Items, n.changed = append(n.Items, v), true }

// RenameAt gives the i-th member another name.
func (n *Node) RenameAt(i int, to string) {
	m := &n.Members[i]
	m.Key, m.rawKey, n.changed = to, quote(to), true
}

// SortMembers orders members; equal ones keep their order.
func (n *Node) SortMembers(less func(a, b string) bool) {
	sort.SliceStable(n.Members, func(i, j int) bool { return less(n.Members[i].Key, n.Members[j].Key) })
	n.changed = true
}

// Compact writes the value without spaces and with every string in its
// shortest spelling that a mask allows; numbers keep theirs.
func (n *Node) Compact() []byte {
	var b bytes.Buffer
	n.compact(&b)
	return b.Bytes()
}

func (n *Node) compact(b *bytes.Buffer) {
	switch n.Kind {
	case String:
		spell(b, n.Str)
	case Array:
		b.WriteByte('[')
		for i, v := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			v.compact(b)
		}
		b.WriteByte(']')
	case Object:
		b.WriteByte('{')
		for i, m := range n.Members {
			if i > 0 {
				b.WriteByte(',')
			}
			spell(b, m.Key)
			b.WriteByte(':')
			m.Value.compact(b)
		}
		b.WriteByte('}')
	default:
		b.Write(n.raw)
	}
}

func spell(b *bytes.Buffer, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < 0x20 || r == 0x7F:
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}
