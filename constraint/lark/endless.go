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
		if t := g.terms[name]; g.emptyTerm(name) {
			s.fail(t.Pos, cEndless, "", "no text matches the terminal %s", name)
		}
	}
	if s.err != nil {
		return
	}
	ends := g.productive()
	var stuck []*Rule
	for name := range s.rules {
		if !ends[name] {
			stuck = append(stuck, g.rules[name])
		}
	}
	slices.SortFunc(stuck, func(a, b *Rule) int { return byPos(a.Pos, b.Pos) })
	for _, r := range stuck {
		through := g.backTo(r.Name, ends)
		if through == nil {
			continue // only needs one that is stuck
		}
		how := r.Name
		if n := len(through); n > 3 {
			how += " through " + through[0] + ", …, " + through[n-1]
		} else if n > 0 {
			how += " through " + strings.Join(through, ", ")
		}
		s.fail(r.Pos, cEndless, "add an alternative that does without it", "the rule %s can never end: it always needs %s again", r.Name, how)
		return
	}
	if len(stuck) > 0 {
		s.fail(stuck[0].Pos, cEndless, "", "no text matches the rule %s", stuck[0].Name)
	}
}

// productive returns the rules that a finite text can satisfy. Rules are
// tried after those they need, so that few rounds are enough.
func (g *Grammar) productive() map[string]bool {
	order := make([]*Rule, 0, len(g.rules))
	seen := map[string]bool{}
	var visit func(r *Rule)
	visit = func(r *Rule) {
		if seen[r.Name] {
			return
		}
		seen[r.Name] = true
		r.Body.own(func(x Expr) {
			if ref, ok := x.(*Ref); ok && g.rules[ref.Name] != nil {
				visit(g.rules[ref.Name])
			}
		})
		order = append(order, r)
	}
	for _, r := range g.rules {
		visit(r)
	}
	ends := map[string]bool{}
	for changed := true; changed; {
		changed = false
		for _, r := range order {
			if ends[r.Name] {
				continue
			}
			if terminal, read := r.asTerminal(); !read || terminal && !g.emptyBody(r.Body) || !terminal && g.ends(r.Body, ends) {
				ends[r.Name], changed = true, true
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
	from := map[string]string{} // how each rule was found
	queue := []string{name}
	for len(queue) > 0 {
		cur := queue[0]
		queue = queue[1:]
		found := false
		g.rules[cur].Body.own(func(x Expr) {
			r, ok := x.(*Ref)
			if !ok || g.rules[r.Name] == nil || ends[r.Name] {
				return
			}
			if found = found || r.Name == name; found {
				return
			}
			if _, seen := from[r.Name]; !seen {
				from[r.Name] = cur
				queue = append(queue, r.Name)
			}
		})
		if found {
			path := []string{}
			for ; cur != name; cur = from[cur] {
				path = append(path, cur)
			}
			slices.Reverse(path)
			return path
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

// emptyTerm is emptyBody for a named terminal, found out once.
func (g *Grammar) emptyTerm(name string) bool {
	t := g.terms[name]
	if t == nil {
		return false
	}
	is, known := g.nothing[name]
	if !known {
		is = g.emptyBody(t.Body)
		g.nothing[name] = is
	}
	return is
}

func (g *Grammar) empty(x Expr) bool {
	switch x := x.(type) {
	case *Regexp:
		n, err := x.parse(g.options)
		return err == nil && n.matchesNothing()
	case *Ref:
		return g.emptyTerm(x.Name)
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
