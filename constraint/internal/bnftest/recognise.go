package bnftest

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Accepts reports whether the grammar matches all of text.
func (g *Grammar) Accepts(text string) bool {
	m := &matcher{g: g, text: text, known: map[[2]int][]int{}}
	return slices.Contains(m.ends(g.rules["root"], 0), len(text))
}

type matcher struct {
	g     *Grammar
	text  string
	known map[[2]int][]int
}

// ends returns where n can end when it begins at pos, sorted.
func (m *matcher) ends(n *node, pos int) []int {
	key := [2]int{n.id, pos}
	if out, ok := m.known[key]; ok {
		return out
	}
	out := m.find(n, pos)
	slices.Sort(out)
	out = slices.Compact(out)
	m.known[key] = out
	return out
}

func (m *matcher) find(n *node, pos int) []int {
	switch n.op {
	case opText:
		if strings.HasPrefix(m.text[pos:], n.text) {
			return []int{pos + len(n.text)}
		}
	case opSet:
		if r, size := utf8.DecodeRuneInString(m.text[pos:]); size > 0 && n.contains(r) {
			return []int{pos + size}
		}
	case opRef:
		return slices.Clone(m.ends(m.g.rules[n.name], pos))
	case opAlt:
		var out []int
		for _, s := range n.subs {
			out = append(out, m.ends(s, pos)...)
		}
		return out
	case opSeq:
		at := []int{pos}
		for _, s := range n.subs {
			at = m.step(s, at)
		}
		return at
	case opRep:
		var out []int
		at := []int{pos}
		for i := 0; len(at) > 0 && (n.max < 0 || i <= n.max); i++ {
			if i >= n.min {
				before := len(out)
				for _, e := range at {
					if !slices.Contains(out, e) {
						out = append(out, e)
					}
				}
				if len(out) == before {
					break // nothing new can follow
				}
			}
			at = m.step(n.subs[0], at)
		}
		return out
	}
	return nil
}

func (m *matcher) step(n *node, at []int) []int {
	var out []int
	for _, p := range at {
		out = append(out, m.ends(n, p)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (n *node) contains(r rune) bool {
	in := false
	for i := 0; i < len(n.pairs); i += 2 {
		in = in || n.pairs[i] <= r && r <= n.pairs[i+1]
	}
	return in != n.negated
}

// leftRecursion refuses what llama.cpp refuses: a rule that can come first in
// itself. A repetition counts as a rule, so a repetition of what may be empty
// is refused too.
func (g *Grammar) leftRecursion() error {
	nullable := map[string]bool{}
	var empty func(n *node) bool
	empty = func(n *node) bool {
		switch n.op {
		case opText:
			return n.text == ""
		case opSet:
			return false
		case opRef:
			return nullable[n.name]
		case opAlt:
			return slices.ContainsFunc(n.subs, empty)
		case opRep:
			return n.min == 0 || empty(n.subs[0])
		}
		return !slices.ContainsFunc(n.subs, func(s *node) bool { return !empty(s) })
	}
	for changed := true; changed; {
		changed = false
		for name, n := range g.rules {
			if !nullable[name] && empty(n) {
				nullable[name], changed = true, true
			}
		}
	}
	var err error
	state := map[string]int{} // 1 while being visited, 2 after
	var first func(n *node)
	visit := func(name string) {
		switch state[name] {
		case 0:
			state[name] = 1
			first(g.rules[name])
			state[name] = 2
		case 1:
			err = fmt.Errorf("the rule %s can come first in itself", name)
		}
	}
	first = func(n *node) {
		switch n.op {
		case opRef:
			visit(n.name)
		case opAlt, opRep:
			for _, s := range n.subs {
				first(s)
			}
		case opSeq:
			for _, s := range n.subs {
				first(s)
				if !empty(s) {
					return
				}
			}
		}
	}
	var inside func(n *node)
	inside = func(n *node) {
		if n.op == opRep && n.max != 1 && empty(n.subs[0]) {
			err = fmt.Errorf("what may be empty is repeated")
		}
		for _, s := range n.subs {
			inside(s)
		}
	}
	for name, n := range g.rules {
		visit(name)
		inside(n)
	}
	return err
}
