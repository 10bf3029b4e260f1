package validate

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rustWriter writes a tree in regexp2's default syntax. Only groups,
// alternatives, repetitions, characters and classes of plain ranges occur.
type rustWriter struct{ b strings.Builder }

func (w *rustWriter) raw(s string) { w.b.WriteString(s) }

// node writes n; with atom it becomes one unit that can be repeated.
func (w *rustWriter) node(n *rustNode, atom bool) {
	if w.b.Len() > 16*maxPatternBytes {
		return // refused by the caller
	}
	grouped := atom && n.op != opClass
	if grouped {
		w.raw("(?:")
	}
	switch n.op {
	case opStart:
		w.raw(`\A`)
	case opEnd:
		w.raw(`\z`)
	case opClass:
		w.class(n.set)
	case opConcat:
		for _, s := range n.subs {
			w.node(s, s.op == opAlternate)
		}
	case opAlternate:
		for i, s := range n.subs {
			if i > 0 {
				w.raw("|")
			}
			w.node(s, s.op == opAlternate)
		}
	case opRepeat:
		w.node(n.subs[0], true)
		switch {
		case n.min == 0 && n.max < 0:
			w.raw("*")
		case n.min == 1 && n.max < 0:
			w.raw("+")
		case n.min == 0 && n.max == 1:
			w.raw("?")
		default:
			w.raw("{" + strconv.Itoa(n.min) + ",")
			if n.max >= 0 {
				w.raw(strconv.Itoa(n.max))
			}
			w.raw("}")
		}
	}
	if grouped {
		w.raw(")")
	}
}

func (w *rustWriter) class(s runeSet) {
	switch {
	case len(s) == 0:
		w.raw("(?!)") // nothing
		return
	case len(s) == 1 && s[0].lo == s[0].hi && utf8.ValidRune(s[0].lo):
		w.char(s[0].lo)
		return
	}
	w.raw("[")
	for _, r := range s {
		lo, hi := r.lo, r.hi
		if !utf8.ValidRune(lo) { // a surrogate, which text cannot hold
			lo = 0xE000
		}
		if !utf8.ValidRune(hi) {
			hi = 0xD7FF
		}
		if lo > hi {
			continue
		}
		w.char(lo)
		if hi > lo {
			w.raw("-")
			w.char(hi)
		}
	}
	w.raw("]")
}

// char writes one character so that it stands for itself, in a class and
// outside. (An escaped '-' cannot start a range in regexp2.)
func (w *rustWriter) char(r rune) {
	if r < 0x80 && !alphanumeric(byte(r)) {
		fmt.Fprintf(&w.b, `\x%02x`, r)
		return
	}
	w.b.WriteRune(r)
}
