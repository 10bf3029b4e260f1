package lark

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// The grammars of llama.cpp and XGrammar have rules of characters and no
// terminals. A translation first makes such rules (here), brings them into a
// form that both engines take (bnf_left.go), and prints them (bnf_print.go).

type bop int

const (
	bLit bop = iota // text
	bSet            // one character of a set
	bSeq            // all of subs; none: the empty text
	bAlt            // one of subs; none: no text at all
	bRep            // subs[0], min to max times; max is negative without a bound
	bRef            // the rule name
)

type bnode struct {
	op       bop
	text     string
	set      []rune // pairs
	subs     []*bnode
	min, max int
	name     string
}

// bgrammar is a set of rules; root is the first of order.
type bgrammar struct {
	rules map[string]*bnode
	order []string
	// at is where a rule stands in the source, for refusals.
	at map[string]Pos
	// nonEmpty holds the names of rules made by nonEmptyRule.
	nonEmpty map[string]string
	// unskipped holds the names of rules made by firstRule.
	unskipped map[string]string
	nullable  map[string]bool
	json      map[string]string // rules for JSON that all schemas share
}

func newBGrammar() *bgrammar {
	return &bgrammar{rules: map[string]*bnode{}, at: map[string]Pos{}, nonEmpty: map[string]string{}, unskipped: map[string]string{}, json: map[string]string{}}
}

// name returns a name that is free, as close to base as may be. The names of
// both dialects are letters, digits and hyphens.
func (g *bgrammar) name(base string) string {
	clean := []byte{}
	for _, c := range []byte(base) {
		if c == '_' {
			c = '-'
		}
		if c == '-' && len(clean) == 0 {
			continue
		}
		clean = append(clean, c)
	}
	if len(clean) == 0 || clean[0] >= '0' && clean[0] <= '9' {
		clean = append([]byte("x"), clean...)
	}
	name := string(clean)
	for n := 2; ; n++ {
		if _, used := g.rules[name]; !used {
			return name
		}
		name = string(clean) + "-" + strconv.Itoa(n)
	}
}

// add enters a rule under a free name.
func (g *bgrammar) add(base string, at Pos, body *bnode) string {
	name := g.name(base)
	g.rules[name] = body
	g.order = append(g.order, name)
	g.at[name] = at
	return name
}

var empty = &bnode{op: bSeq}

func (n *bnode) isEmpty() bool { return n.op == bSeq && len(n.subs) == 0 }
func (n *bnode) isNone() bool  { return n.op == bAlt && len(n.subs) == 0 }

func lit(s string) *bnode {
	if s == "" {
		return empty
	}
	return &bnode{op: bLit, text: s}
}

func ref(name string) *bnode { return &bnode{op: bRef, name: name} }

// charSet is one character of pairs; one character alone is a text.
func charSet(pairs []rune) *bnode {
	switch {
	case len(pairs) == 0:
		return &bnode{op: bAlt}
	case len(pairs) == 2 && pairs[0] == pairs[1] && utf8.ValidRune(pairs[0]):
		return lit(string(pairs[0]))
	}
	return &bnode{op: bSet, set: pairs}
}

func seq(list ...*bnode) *bnode {
	var out []*bnode
	for _, n := range list {
		switch {
		case n.isNone():
			return n
		case n.op == bSeq:
			for _, s := range n.subs {
				out = join(out, s)
			}
		default:
			out = join(out, n)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return &bnode{op: bSeq, subs: out}
}

// join appends n, making one text of two.
func join(out []*bnode, n *bnode) []*bnode {
	if k := len(out); k > 0 && n.op == bLit && out[k-1].op == bLit {
		out[k-1] = lit(out[k-1].text + n.text)
		return out
	}
	return append(out, n)
}

func alt(list ...*bnode) *bnode {
	var out []*bnode
	hasEmpty := false
	for _, n := range list {
		subs := []*bnode{n}
		if n.op == bAlt {
			subs = n.subs
		}
		for _, s := range subs {
			if s.isEmpty() {
				if hasEmpty {
					continue
				}
				hasEmpty = true
			}
			if !slices.ContainsFunc(out, s.same) {
				out = append(out, s)
			}
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return &bnode{op: bAlt, subs: out}
}

// same compares what is cheap to compare.
func (n *bnode) same(o *bnode) bool {
	return n == o || n.op == o.op && (n.op == bRef && n.name == o.name || n.op == bLit && n.text == o.text)
}

func rep(x *bnode, min, max int) *bnode {
	switch {
	case max == 0 || x.isEmpty():
		return empty
	case x.isNone() && min == 0:
		return empty
	case x.isNone() || min == 1 && max == 1:
		return x
	}
	if max < 0 && min <= 1 {
		// (x+)* and (x+|y+)* are (x)* and (x|y)*: one way to read a text
		// is enough.
		if x.op == bRep && x.max < 0 && x.min <= 1 {
			return rep(x.subs[0], min*x.min, -1)
		}
		if x.op == bAlt && min == 0 {
			subs := slices.Clone(x.subs)
			for i, s := range subs {
				if s.op == bRep && s.max < 0 && s.min <= 1 {
					subs[i] = s.subs[0]
				}
			}
			x = alt(subs...)
		}
	}
	return &bnode{op: bRep, subs: []*bnode{x}, min: min, max: max}
}

func opt(x *bnode) *bnode { return rep(x, 0, 1) }

// refs calls f for every reference in n.
func (n *bnode) refs(f func(name string)) {
	if n.op == bRef {
		f(n.name)
	}
	for _, s := range n.subs {
		s.refs(f)
	}
}

// findNullable finds the rules that match the empty text.
func (g *bgrammar) findNullable() {
	g.nullable = map[string]bool{}
	for changed := true; changed; {
		changed = false
		for i := len(g.order) - 1; i >= 0; i-- {
			name := g.order[i]
			if !g.nullable[name] && g.canBeEmpty(g.rules[name]) {
				g.nullable[name], changed = true, true
			}
		}
	}
}

func (g *bgrammar) canBeEmpty(n *bnode) bool {
	switch n.op {
	case bSeq:
		return !slices.ContainsFunc(n.subs, func(s *bnode) bool { return !g.canBeEmpty(s) })
	case bAlt:
		return slices.ContainsFunc(n.subs, g.canBeEmpty)
	case bRep:
		return n.min == 0 || g.canBeEmpty(n.subs[0])
	case bRef:
		return g.nullable[n.name]
	}
	return false
}

// withoutEmpty matches what n matches but for the empty text.
func (g *bgrammar) withoutEmpty(n *bnode) *bnode {
	if !g.canBeEmpty(n) {
		return n
	}
	switch n.op {
	case bRef:
		return ref(g.nonEmptyRule(n.name))
	case bAlt:
		var out []*bnode
		for _, s := range n.subs {
			out = append(out, g.withoutEmpty(s))
		}
		return alt(out...)
	case bRep:
		x := g.withoutEmpty(n.subs[0])
		if n.max < 0 {
			return rep(x, 1, -1)
		}
		return rep(x, 1, n.max)
	}
	// A sequence of which every part may be empty: the first that is not.
	var out []*bnode
	for i, s := range n.subs {
		out = append(out, seq(append([]*bnode{g.withoutEmpty(s)}, n.subs[i+1:]...)...))
	}
	return alt(out...)
}

// nonEmptyRule returns the name of a rule that matches what the named one
// matches but for the empty text.
func (g *bgrammar) nonEmptyRule(name string) string {
	if !g.nullable[name] {
		return name
	}
	if n, ok := g.nonEmpty[name]; ok {
		return n
	}
	n := g.add(name+"-some", g.at[name], empty)
	g.nonEmpty[name] = n
	g.rules[n] = g.withoutEmpty(g.rules[name])
	return n
}

// unskip matches what n matches, but without what the rule skip matches at
// the beginning.
func (g *bgrammar) unskip(n *bnode, skip string) *bnode {
	if !g.leadsTo(n, skip, map[string]bool{}) {
		return n
	}
	switch n.op {
	case bRef:
		return ref(g.firstRule(n.name, skip))
	case bAlt:
		var out []*bnode
		for _, s := range n.subs {
			out = append(out, g.unskip(s, skip))
		}
		return alt(out...)
	case bRep:
		max := n.max
		if max > 0 {
			max--
		}
		x := n.subs[0]
		out := seq(g.unskip(g.withoutEmpty(x), skip), rep(x, n.min-min(n.min, 1), max))
		if g.canBeEmpty(n) {
			out = alt(out, empty)
		}
		return out
	}
	// A sequence: skip itself, or a part that may be empty, or not.
	x, rest := n.subs[0], seq(n.subs[1:]...)
	switch {
	case x.op == bRef && x.name == skip:
		return rest
	case !g.canBeEmpty(x):
		return seq(g.unskip(x, skip), rest)
	}
	return alt(seq(g.unskip(g.withoutEmpty(x), skip), rest), g.unskip(rest, skip))
}

// leadsTo reports whether the named rule can come first in n.
func (g *bgrammar) leadsTo(n *bnode, name string, seen map[string]bool) bool {
	found := false
	g.firsts(n, func(f string) {
		if found = found || f == name; found || seen[f] {
			return
		}
		seen[f] = true
		found = g.leadsTo(g.rules[f], name, seen)
	})
	return found
}

// firstRule is a rule that is the named one, unskipped.
func (g *bgrammar) firstRule(name, skip string) string {
	key := name + " " + skip
	if n, ok := g.unskipped[key]; ok {
		return n
	}
	n := g.add(name+"-first", g.at[name], empty)
	g.unskipped[key] = n
	if g.nullable[name] {
		g.nullable[n] = true
	}
	g.rules[n] = g.unskip(g.rules[name], skip)
	return n
}

// solid rewrites repetitions of what may be empty, which engines read
// endlessly or refuse: (x?)* is x*.
func (g *bgrammar) solid() {
	for i := 0; i < len(g.order); i++ { // rules are added while it runs
		g.rules[g.order[i]] = g.solidNode(g.rules[g.order[i]])
	}
}

func (g *bgrammar) solidNode(n *bnode) *bnode {
	if len(n.subs) == 0 {
		return n
	}
	var subs []*bnode
	for _, s := range n.subs {
		subs = append(subs, g.solidNode(s))
	}
	switch n.op {
	case bSeq:
		return seq(subs...)
	case bAlt:
		return alt(subs...)
	}
	if x := subs[0]; g.canBeEmpty(x) {
		return rep(g.withoutEmpty(x), 0, n.max)
	}
	return rep(subs[0], n.min, n.max)
}

// prune drops the rules that root does not need and puts the rest in the
// order in which they are first needed.
func (g *bgrammar) prune(root string) {
	var order []string
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		order = append(order, name)
		g.rules[name].refs(visit)
	}
	visit(root)
	g.order = order
}

// dropBarren takes out the rules that no text matches, and what needs them:
// "a: a*" leaves such a rule behind when its circle is taken out.
func (g *bgrammar) dropBarren() {
	fruitful := map[string]bool{}
	var matches func(n *bnode) bool
	matches = func(n *bnode) bool {
		switch n.op {
		case bRef:
			return fruitful[n.name]
		case bAlt:
			return slices.ContainsFunc(n.subs, matches)
		case bRep:
			return n.min == 0 || matches(n.subs[0])
		}
		return !slices.ContainsFunc(n.subs, func(s *bnode) bool { return !matches(s) })
	}
	for changed := true; changed; {
		changed = false
		for i := len(g.order) - 1; i >= 0; i-- {
			if name := g.order[i]; !fruitful[name] && matches(g.rules[name]) {
				fruitful[name], changed = true, true
			}
		}
	}
	if len(fruitful) == len(g.order) {
		return
	}
	var clean func(n *bnode) *bnode
	clean = func(n *bnode) *bnode {
		subs := make([]*bnode, len(n.subs))
		for i, s := range n.subs {
			subs[i] = clean(s)
		}
		switch {
		case n.op == bRef && !fruitful[n.name]:
			return &bnode{op: bAlt}
		case n.op == bSeq:
			return seq(subs...)
		case n.op == bAlt:
			return alt(subs...)
		case n.op == bRep:
			return rep(subs[0], n.min, n.max)
		}
		return n
	}
	for _, name := range g.order {
		g.rules[name] = clean(g.rules[name])
	}
}
