package lark

import (
	"maps"
	"slices"
	"strings"
)

// Rules and terminals that no finite text satisfies. llguidance compiles
// them, and an answer that enters one can never end.

// endless refuses, among what start reaches, terminals that match nothing
// and rules that need themselves in every alternative.
func (s *scope) endless() {
	g := s.g
	for _, name := range slices.Sorted(maps.Keys(s.terms)) {
		if t := g.terms[name]; g.emptyBody(t.Body) {
			s.fail(t.Pos, cEndless, "", "no text matches the terminal %s", name)
		}
	}
	if len(s.errs) > 0 {
		return
	}
	ends := g.productive()
	var stuck []*Rule
	for name := range s.rules {
		if !ends[name] {
			stuck = append(stuck, g.rules[name])
		}
	}
	for _, r := range stuck {
		through := g.backTo(r.Name, ends)
		if through == nil {
			continue // only needs one that is stuck
		}
		how := r.Name
		if len(through) > 0 {
			how += " through " + strings.Join(through, ", ")
		}
		s.fail(r.Pos, cEndless, "add an alternative that does without it", "the rule %s can never end: it always needs %s again", r.Name, how)
	}
	if len(stuck) > 0 && len(s.errs) == 0 {
		r := slices.MinFunc(stuck, func(a, b *Rule) int { return strings.Compare(a.Name, b.Name) })
		s.fail(r.Pos, cEndless, "", "no text matches the rule %s", r.Name)
	}
}

// productive returns the rules that a finite text can satisfy.
func (g *Grammar) productive() map[string]bool {
	ends := map[string]bool{}
	for changed := true; changed; {
		changed = false
		for name, r := range g.rules {
			if ends[name] {
				continue
			}
			if terminal, read := r.asTerminal(); !read || terminal && !g.emptyBody(r.Body) || !terminal && g.ends(r.Body, ends) {
				ends[name], changed = true, true
			}
		}
	}
	return ends
}

func (g *Grammar) ends(a *Alternatives, ends map[string]bool) bool {
	return slices.ContainsFunc(a.Alts, func(alt *Alternative) bool {
		return !slices.ContainsFunc(alt.And[0].Exprs, func(x Expr) bool { return !g.endsExpr(x, ends) })
	})
}

func (g *Grammar) endsExpr(x Expr, ends map[string]bool) bool {
	switch x := x.(type) {
	case *Ref:
		if g.rules[x.Name] != nil {
			return ends[x.Name]
		}
	case *Group:
		return g.ends(x.Body, ends)
	case *Repeat:
		return x.Min == 0 || g.endsExpr(x.X, ends)
	}
	return !g.empty(x)
}

// backTo returns the rules on a way from name back to itself through rules
// that never end, or nil.
func (g *Grammar) backTo(name string, ends map[string]bool) []string {
	type step struct {
		name string
		path []string
	}
	seen := map[string]bool{}
	queue := []step{{name, []string{}}}
	for len(queue) > 0 {
		cur := queue[0]
		queue = queue[1:]
		var next []string
		g.rules[cur.name].Body.own(func(x Expr) {
			if r, ok := x.(*Ref); ok && g.rules[r.Name] != nil && !ends[r.Name] {
				next = append(next, r.Name)
			}
		})
		for _, n := range next {
			if n == name {
				return cur.path
			}
			if !seen[n] {
				seen[n] = true
				queue = append(queue, step{n, append(slices.Clone(cur.path), n)})
			}
		}
	}
	return nil
}

// emptyBody reports whether no text at all matches a terminal's body. It is
// sure when it says yes; & and ~ may hide more.
func (g *Grammar) emptyBody(a *Alternatives) bool {
	return !slices.ContainsFunc(a.Alts, func(alt *Alternative) bool {
		return !slices.ContainsFunc(alt.And, func(seq *Sequence) bool { return slices.ContainsFunc(seq.Exprs, g.empty) })
	})
}

func (g *Grammar) empty(x Expr) bool {
	switch x := x.(type) {
	case *Regexp:
		n, err := x.parse(g.options)
		return err == nil && n.matchesNothing()
	case *Ref:
		t := g.terms[x.Name]
		return t != nil && g.emptyBody(t.Body)
	case *Group:
		return g.emptyBody(x.Body)
	case *Repeat:
		return x.Min > 0 && g.empty(x.X)
	}
	return false
}

func (n *rnode) matchesNothing() bool {
	switch n.op {
	case rClass:
		return len(n.set.pairs) == 0 && n.set.unknown == ""
	case rAlt:
		return !slices.ContainsFunc(n.subs, func(s *rnode) bool { return !s.matchesNothing() })
	case rRepeat:
		return n.min > 0 && n.subs[0].matchesNothing()
	}
	return slices.ContainsFunc(n.subs, (*rnode).matchesNothing)
}
