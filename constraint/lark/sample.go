package lark

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sample draws a text of the grammar: an answer that follows its rules and
// terminals as written. Where a terminal can run on into what follows it,
// llguidance reads it as far as it goes and may refuse the text. The error,
// an *Error, names a construct that texts cannot be drawn from: &, ~, lazy,
// tokens, parameters, other grammars, most JSON Schemas.
func (g *Grammar) Sample(r *rand.Rand) (string, error) {
	return gbnf.catch(func() string {
		s := &sampler{Rand: r, g: g, begun: g.options.AllowInitialSkip}
		s.heights()
		s.rule(g.rules["start"])
		return string(s.out)
	})
}

// maxSampleDepth is where a sample begins to take the shortest way out.
const maxSampleDepth = 12

type sampler struct {
	*rand.Rand
	g   *Grammar
	out []byte
	// begun says that ignored text may come before the next terminal.
	begun bool
	// height is how many rules deep the shortest text of a rule is.
	height map[string]int
	// none remembers which expressions match no text.
	none  map[Expr]bool
	depth int
}

func (s *sampler) refuse(p Pos, construct, format string, args ...any) {
	panic(untranslatable{errAt(p, construct, "", "no text can be drawn from %s", fmt.Sprintf(format, args...))})
}

const tooHigh = 1 << 30

// heights finds for each rule the alternative that ends soonest.
func (s *sampler) heights() {
	s.height, s.none = map[string]int{}, map[Expr]bool{}
	for changed := true; changed; {
		changed = false
		for name, r := range s.g.rules {
			h := 1 + s.bodyHeight(r.Body)
			if old, ok := s.height[name]; h < tooHigh && (!ok || h < old) {
				s.height[name], changed = h, true
			}
		}
	}
}

func (s *sampler) bodyHeight(a *Alternatives) int {
	low := tooHigh
	for _, alt := range a.Alts {
		low = min(low, s.altHeight(alt))
	}
	return low
}

func (s *sampler) altHeight(alt *Alternative) int {
	high := 0
	for _, x := range alt.And[0].Exprs {
		high = max(high, s.exprHeight(x))
	}
	return high
}

func (s *sampler) exprHeight(x Expr) int {
	switch x := x.(type) {
	case *Group:
		return s.bodyHeight(x.Body)
	case *Repeat:
		if x.Min > 0 {
			return s.exprHeight(x.X)
		}
	case *Ref:
		if s.g.rules[x.Name] != nil {
			if h, ok := s.height[x.Name]; ok {
				return h
			}
			return tooHigh
		}
	}
	none, known := s.none[x]
	if !known {
		none = s.g.empty(x)
		s.none[x] = none
	}
	if none {
		return tooHigh
	}
	return 0
}

func (s *sampler) rule(r *Rule) {
	if r.Param {
		s.refuse(r.Pos, cParam, "a rule with a parameter")
	}
	if r.isLazy() {
		s.refuse(r.Pos, cLazy, "a lazy rule")
	}
	if m := r.attr("max_tokens"); m != nil && m.Tokens > 0 {
		s.refuse(m.Pos, cAttribute, "a number of tokens")
	}
	s.depth++
	defer func() { s.depth-- }()
	switch terminal, read := r.asTerminal(); {
	case !read:
	case terminal:
		s.lexeme(func() { s.termBody(r.Body) })
	default:
		s.ruleBody(r.Body)
	}
}

// choose picks an alternative, near the end of the depth the shortest.
func (s *sampler) choose(a *Alternatives) *Alternative {
	alt := a.Alts[s.IntN(len(a.Alts))]
	if s.depth > maxSampleDepth {
		low := s.bodyHeight(a)
		for i, n := s.IntN(len(a.Alts)), 0; n < len(a.Alts); i, n = (i+1)%len(a.Alts), n+1 {
			if s.altHeight(a.Alts[i]) == low {
				return a.Alts[i]
			}
		}
	}
	if s.altHeight(alt) >= tooHigh {
		for _, other := range a.Alts {
			if s.altHeight(other) < tooHigh {
				return other
			}
		}
	}
	return alt
}

func (s *sampler) ruleBody(a *Alternatives) {
	alt := s.choose(a)
	if alt.If != nil {
		s.refuse(alt.If.Pos, cParam, "%%if")
	}
	for _, x := range alt.And[0].Exprs {
		s.ruleExpr(x)
	}
}

func (s *sampler) ruleExpr(x Expr) {
	switch x := x.(type) {
	case *Group:
		s.ruleBody(x.Body)
		return
	case *Maybe:
		if s.depth <= maxSampleDepth && s.IntN(2) == 0 && s.bodyHeight(x.Body) < tooHigh {
			s.ruleBody(x.Body)
		}
		return
	case *Repeat:
		for range s.times(x.Min, x.Max, s.exprHeight(x.X) < tooHigh) {
			s.ruleExpr(x.X)
		}
		return
	case *Ref:
		if r := s.g.rules[x.Name]; r != nil {
			s.rule(r)
			return
		}
	case *Nested:
		inner := &sampler{Rand: s.Rand, g: x.Grammar, depth: s.depth + 1}
		inner.heights()
		inner.rule(x.Grammar.rules["start"])
		s.out = append(s.out, inner.out...)
		s.begun = s.begun || len(inner.out) > 0
		return
	case *JSON:
		s.json(x)
		s.begun = true
		return
	case *Special:
		s.refuse(x.Pos, cSpecial, "a special token")
	case *GrammarRef:
		s.refuse(x.Pos, cGrammar, "another grammar")
	}
	s.lexeme(func() { s.termExpr(x) })
}

// times draws how often something is repeated; more says whether it can be
// at all.
func (s *sampler) times(min, max int, more bool) int {
	n := min
	for more && (max < 0 || n < max) && s.depth <= maxSampleDepth && s.IntN(3) > 0 {
		n++
	}
	return n
}

// lexeme writes a terminal, and sometimes text that is ignored before it.
func (s *sampler) lexeme(f func()) {
	start := len(s.out)
	if s.begun {
		s.skip()
	}
	body := len(s.out)
	f()
	if len(s.out) == body {
		s.out = s.out[:start]
		return
	}
	s.begun = true
}

func (s *sampler) skip() {
	var list []*Ignore
	for _, it := range s.g.Items {
		if ig, ok := it.(*Ignore); ok {
			list = append(list, ig)
		}
	}
	for len(list) > 0 && s.IntN(3) == 0 {
		s.termBody(list[s.IntN(len(list))].Body)
		if s.g.options.IgnoreOnce {
			return
		}
	}
}

func (s *sampler) termBody(a *Alternatives) {
	alt := s.choose(a)
	if len(alt.And) > 1 {
		s.refuse(alt.And[1].Pos, cAnd, "&")
	}
	for _, x := range alt.And[0].Exprs {
		s.termExpr(x)
	}
}

func (s *sampler) termExpr(x Expr) {
	switch x := x.(type) {
	case *Group:
		s.termBody(x.Body)
	case *Maybe:
		if s.IntN(2) == 0 && !s.g.emptyBody(x.Body) {
			s.termBody(x.Body)
		}
	case *Repeat:
		for range s.times(x.Min, x.Max, !s.g.empty(x.X)) {
			s.termExpr(x.X)
		}
	case *Ref:
		s.termBody(s.g.terms[x.Name].Body)
	case *Literal:
		for _, r := range x.Value {
			if x.Fold {
				r = s.char(fold([]rune{r, r}, !s.g.options.AllowInvalidUTF8))
			}
			s.out = utf8.AppendRune(s.out, r)
		}
	case *Range:
		s.out = utf8.AppendRune(s.out, s.char([]rune{[]rune(x.From)[0], []rune(x.To)[0]}))
	case *Regexp:
		n, _ := x.parse(s.g.options)
		s.regex(n, x)
	case *RegexExt:
		chunks, _ := readExt(x.Source)
		from := s.IntN(len(chunks) + 1)
		to := from + s.IntN(len(chunks)-from+1)
		s.out = append(s.out, strings.Join(chunks[from:to], "")...)
	case *Not:
		s.refuse(x.Pos, cNot, "~")
	}
}

func (s *sampler) regex(n *rnode, x *Regexp) {
	switch n.op {
	case rClass:
		if n.set.unknown != "" || n.set.bytes && len(n.set.pairs) > 0 && n.set.pairs[len(n.set.pairs)-1] > unicode.MaxASCII {
			s.refuse(x.at(n.at), cRegex, "this class")
		}
		if len(n.set.pairs) == 0 {
			s.refuse(x.at(n.at), cRegex, "an empty class")
		}
		s.out = utf8.AppendRune(s.out, s.char(n.set.pairs))
	case rAlt:
		i := s.IntN(len(n.subs))
		for n.subs[i].matchesNothing() && !n.matchesNothing() {
			i = s.IntN(len(n.subs))
		}
		s.regex(n.subs[i], x)
	case rRepeat:
		for range s.times(n.min, n.max, !n.subs[0].matchesNothing()) {
			s.regex(n.subs[0], x)
		}
	case rGroup:
		if n.name == "stop" {
			s.refuse(x.at(n.at), cRegex, "a lookahead")
		}
		s.regex(n.subs[0], x)
	case rCat:
		for _, sub := range n.subs {
			s.regex(sub, x)
		}
	}
}

// char draws a character, more often a printable ASCII one where there is
// one.
func (s *sampler) char(pairs []rune) rune {
	if plain := intersect(pairs, []rune{' ', '~'}); len(plain) > 0 && s.IntN(5) > 0 {
		pairs = plain
	}
	for {
		i := s.IntN(len(pairs)/2) * 2
		r := pairs[i] + rune(s.IntN(int(pairs[i+1]-pairs[i])+1))
		if utf8.ValidRune(r) {
			return r
		}
	}
}
