package lark

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// print brings the rules into a form the engine takes and writes them, one a
// line, root first.
func (d dialect) print(g *bgrammar, root string) string {
	g.findNullable()
	g.solid()
	if stuck := g.dropLeftRecursion(); stuck != "" {
		d.refuse(g.at[stuck], cLeft, "begin its alternatives with something else", "the rule %s, which begins with itself,", stuck)
	}
	g.dropBarren()
	g.prune(root)
	if g.rules[root].isNone() {
		d.refuse(Pos{1, 1}, cEndless, "", "a grammar that no text matches")
	}
	if d == gbnf {
		for i := 0; i < len(g.order); i++ { // rules are added while it runs
			g.rules[g.order[i]] = g.smallRepeats(g.order[i], g.rules[g.order[i]])
		}
		g.prune(root)
	}
	var b strings.Builder
	for _, name := range g.order {
		b.WriteString(name + " ::= ")
		d.node(&b, g.rules[name], 0)
		b.WriteByte('\n')
	}
	return b.String()
}

// llama.cpp takes repetitions up to 2000 and counts the rules inside a
// repeated group; above that it refuses, or drops an upper bound silently. So
// large ones are made of smaller ones, and what is repeated is one rule.
const maxRepeat = 1000

// smallRepeats rewrites the repetitions in n, a part of the named rule.
func (g *bgrammar) smallRepeats(name string, n *bnode) *bnode {
	if len(n.subs) == 0 {
		return n
	}
	var subs []*bnode
	for _, s := range n.subs {
		subs = append(subs, g.smallRepeats(name, s))
	}
	switch n.op {
	case bSeq:
		return seq(subs...)
	case bAlt:
		return alt(subs...)
	}
	x := subs[0]
	if n.max < 0 && n.min <= 1 || n.min == 0 && n.max == 1 {
		return &bnode{op: bRep, subs: subs, min: n.min, max: n.max}
	}
	if x.op == bSeq || x.op == bAlt || x.op == bRep {
		x = ref(g.add(name+"-item", g.at[name], x))
	}
	at := &repeater{g, name}
	if n.max < 0 {
		return seq(at.exactly(x, n.min), rep(x, 0, -1))
	}
	if n.max <= maxRepeat {
		return rep(x, n.min, n.max)
	}
	return seq(at.exactly(x, n.min), at.upTo(x, n.max-n.min))
}

type repeater struct {
	g    *bgrammar
	name string
}

// block returns a rule for k times x.
func (r *repeater) block(x *bnode, k int) *bnode {
	return ref(r.g.add(r.name+"-item", r.g.at[r.name], rep(x, k, k)))
}

func (r *repeater) exactly(x *bnode, n int) *bnode {
	if n <= maxRepeat {
		return rep(x, n, n)
	}
	return seq(r.exactly(r.block(x, maxRepeat), n/maxRepeat), rep(x, n%maxRepeat, n%maxRepeat))
}

// upTo is at most n times x: some full blocks and less than one, or all
// blocks and the rest. A text can be read in one way only.
func (r *repeater) upTo(x *bnode, n int) *bnode {
	if n <= maxRepeat {
		return rep(x, 0, n)
	}
	full := r.block(x, maxRepeat)
	blocks, rest := n/maxRepeat, n%maxRepeat
	return alt(
		seq(r.upTo(full, blocks-1), rep(x, 0, maxRepeat-1)),
		seq(r.exactly(full, blocks), rep(x, 0, rest)),
	)
}

// node writes n. level is 0 at the top of a rule, 1 inside a sequence, 2
// before a repetition.
func (d dialect) node(b *strings.Builder, n *bnode, level int) {
	paren := func(at int, f func()) {
		if level < at {
			f()
			return
		}
		b.WriteByte('(')
		f()
		b.WriteByte(')')
	}
	switch n.op {
	case bLit:
		b.WriteByte('"')
		for _, r := range n.text {
			b.WriteString(escape(r, `"\`))
		}
		b.WriteByte('"')
	case bSet:
		d.set(b, n.set)
	case bRef:
		b.WriteString(n.name)
	case bSeq:
		if n.isEmpty() {
			b.WriteString(`""`)
			return
		}
		paren(2, func() {
			for i, s := range n.subs {
				if i > 0 {
					b.WriteByte(' ')
				}
				d.node(b, s, 1)
			}
		})
	case bAlt:
		paren(1, func() {
			for i, s := range n.subs {
				if i > 0 {
					b.WriteString(" | ")
				}
				d.node(b, s, 0)
			}
		})
	case bRep:
		paren(2, func() {
			d.node(b, n.subs[0], 2)
			switch {
			case n.min == 0 && n.max < 0:
				b.WriteByte('*')
			case n.min == 1 && n.max < 0:
				b.WriteByte('+')
			case n.min == 0 && n.max == 1:
				b.WriteByte('?')
			case n.max < 0:
				fmt.Fprintf(b, "{%d,}", n.min)
			case n.min == n.max:
				fmt.Fprintf(b, "{%d}", n.min)
			default:
				fmt.Fprintf(b, "{%d,%d}", n.min, n.max)
			}
		})
	}
}

// set writes a class; one that leaves out ASCII only, as what it leaves out.
// llama.cpp takes the first byte of a character for a left-out one when it
// can begin one, so other characters are never left out.
func (d dialect) set(b *strings.Builder, pairs []rune) {
	b.WriteByte('[')
	if pairs[len(pairs)-1] == utf8.MaxRune && pairs[0] != utf8.MaxRune {
		if out := (runeSet{pairs: pairs}).negate().pairs; len(out) > 0 && out[len(out)-1] <= unicode.MaxASCII {
			b.WriteByte('^')
			pairs = out
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString(escape(pairs[i], `-]^["\`))
		if pairs[i+1] > pairs[i]+1 {
			b.WriteByte('-')
		}
		if pairs[i+1] > pairs[i] {
			b.WriteString(escape(pairs[i+1], `-]^["\`))
		}
	}
	b.WriteByte(']')
}

// escape writes r so that both dialects read it in a text and in a class.
func escape(r rune, special string) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r == '"' || r == '\\':
		return `\` + string(r)
	case r < 0x80 && (r < ' ' || r == 0x7f || strings.ContainsRune(special, r)):
		// Always four digits: XGrammar reads \x as long as it goes.
		return fmt.Sprintf(`\u%04X`, r)
	case r < 0x80 || unicode.IsPrint(r):
		return string(r)
	case r <= 0xFFFF:
		return fmt.Sprintf(`\u%04X`, r)
	}
	return fmt.Sprintf(`\U%08X`, r)
}
