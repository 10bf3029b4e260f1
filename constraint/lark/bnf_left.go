package lark

import "slices"

// Left recursion: llama.cpp refuses a rule that can come first in itself,
// also through others. It is taken out by Paull's method: the rules of one
// circle are put in order, each is rewritten so that it begins with none
// before it, and a rule that then begins with itself becomes a repetition.

// maxProductions bounds the growth, which can be exponential.
const maxProductions = 4000

// dropLeftRecursion returns the name of a rule that it could not rewrite, or
// "".
func (g *bgrammar) dropLeftRecursion() string {
	for range 8 {
		g.findNullable()
		circle := g.leftCircle()
		if circle == nil {
			return ""
		}
		if !g.straighten(circle) {
			return circle[0]
		}
	}
	if c := g.leftCircle(); c != nil {
		return c[0]
	}
	return ""
}

// firsts calls f for the rules that can come first in n.
func (g *bgrammar) firsts(n *bnode, f func(name string)) {
	switch n.op {
	case bRef:
		f(n.name)
	case bAlt, bRep:
		for _, s := range n.subs {
			g.firsts(s, f)
		}
	case bSeq:
		for _, s := range n.subs {
			g.firsts(s, f)
			if !g.canBeEmpty(s) {
				return
			}
		}
	}
}

// leftCircle finds a set of rules that can each come first in the others
// (Tarjan's strongly connected components), or nil.
func (g *bgrammar) leftCircle() []string {
	index, low := map[string]int{}, map[string]int{}
	onStack := map[string]bool{}
	var stack, found []string
	var visit func(name string)
	visit = func(name string) {
		index[name] = len(index) + 1
		low[name] = index[name]
		stack = append(stack, name)
		onStack[name] = true
		self := false
		g.firsts(g.rules[name], func(next string) {
			self = self || next == name
			if index[next] == 0 {
				visit(next)
				low[name] = min(low[name], low[next])
			} else if onStack[next] {
				low[name] = min(low[name], index[next])
			}
		})
		if low[name] != index[name] {
			return
		}
		i := slices.Index(stack, name)
		group := slices.Clone(stack[i:])
		for _, n := range group {
			delete(onStack, n)
		}
		stack = stack[:i]
		if found == nil && (len(group) > 1 || self) {
			found = group
		}
	}
	for _, name := range g.order {
		if index[name] == 0 {
			visit(name)
		}
	}
	return found
}

// production is head followed by rest; head is a text, a set or a rule that
// cannot be empty.
type production struct{ head, rest *bnode }

// straighten rewrites the rules of a circle.
func (g *bgrammar) straighten(circle []string) bool {
	// A rule that may be empty gives way to one that may not.
	names := make([]string, len(circle))
	bodies := map[string]*bnode{}
	for i, name := range circle {
		names[i] = g.nonEmptyRule(name)
		bodies[names[i]] = g.rules[name]
	}
	prods := map[string][]production{}
	total := 0
	for i, name := range names {
		list := g.productions(bodies[name])
		for _, before := range names[:i] {
			var out []production
			for _, p := range list {
				if p.head.op != bRef || p.head.name != before {
					out = append(out, p)
					continue
				}
				for _, q := range prods[before] {
					out = append(out, production{q.head, seq(q.rest, p.rest)})
				}
			}
			if list = out; len(list) > maxProductions {
				return false
			}
		}
		list = g.loop(name, list)
		if total += len(list); total > maxProductions {
			return false
		}
		prods[name] = list
	}
	for i, name := range names {
		var alts []*bnode
		for _, p := range prods[name] {
			alts = append(alts, seq(p.head, p.rest))
		}
		g.rules[name] = alt(alts...)
		if circle[i] != name {
			g.rules[circle[i]] = alt(ref(name), empty)
		}
	}
	return true
}

// loop turns "a: a x | y" into "a: y x*". In "a: a x a | y" the last a would
// take up the repetition a second time, so it gives way to y: y (x y)*.
func (g *bgrammar) loop(name string, list []production) []production {
	var tails []*bnode
	var out []production
	deep := false
	for _, p := range list {
		if p.head.op == bRef && p.head.name == name {
			tails = append(tails, g.withoutEmpty(p.rest))
			deep = deep || p.rest.endsWith(name)
		} else {
			out = append(out, p)
		}
	}
	if deep {
		var alts []*bnode
		for _, p := range out {
			alts = append(alts, seq(p.head, p.rest))
		}
		base := ref(g.add(name+"-one", g.at[name], alt(alts...)))
		for i, t := range tails {
			if t.endsWith(name) {
				tails[i] = t.withLast(base)
			}
		}
	}
	if tail := alt(tails...); !tail.isNone() && !tail.isEmpty() {
		again := ref(g.add(name+"-more", g.at[name], rep(tail, 0, -1)))
		g.nullable[again.name] = true
		for i := range out {
			out[i].rest = seq(out[i].rest, again)
		}
	}
	return out
}

func (n *bnode) endsWith(name string) bool {
	if n.op == bSeq && len(n.subs) > 0 {
		n = n.subs[len(n.subs)-1]
	}
	return n.op == bRef && n.name == name
}

func (n *bnode) withLast(x *bnode) *bnode {
	if n.op != bSeq {
		return x
	}
	return seq(append(slices.Clone(n.subs[:len(n.subs)-1]), x)...)
}

// productions takes n apart by what comes first; the empty text is left out.
func (g *bgrammar) productions(n *bnode) []production {
	switch n.op {
	case bLit, bSet:
		return []production{{n, empty}}
	case bRef:
		return []production{{ref(g.nonEmptyRule(n.name)), empty}}
	case bAlt:
		var out []production
		for _, s := range n.subs {
			out = append(out, g.productions(s)...)
		}
		return out
	case bRep:
		max := n.max
		if max > 0 {
			max--
		}
		return follow(g.productions(n.subs[0]), rep(n.subs[0], n.min-min(n.min, 1), max))
	}
	var out []production
	for i, s := range n.subs {
		out = append(out, follow(g.productions(s), seq(n.subs[i+1:]...))...)
		if !g.canBeEmpty(s) {
			break
		}
	}
	return out
}

func follow(list []production, rest *bnode) []production {
	for i := range list {
		list[i].rest = seq(list[i].rest, rest)
	}
	return list
}
