package lark

import (
	"slices"
	"strings"
)

// checker finds what is wrong between the parts of a grammar. llguidance
// compiles what start needs and nothing else; so what is wrong elsewhere is a
// warning.
type checker struct {
	grammars []string
	mixed    map[Pos]string
	err      *Error // the first in the source
	warnings []*Error
	// loose is set while walking what start does not reach.
	loose bool
}

func (c *checker) fail(p Pos, construct, hint, format string, args ...any) {
	if c.loose {
		if len(c.warnings) < maxWarnings {
			c.warnings = append(c.warnings, errAt(p, construct, hint, format, args...))
		}
		return
	}
	c.refuse(p, construct, hint, format, args...)
}

const maxWarnings = 100

// refuse is fail also where start does not reach: for text that means
// nothing wherever it stands.
func (c *checker) refuse(p Pos, construct, hint, format string, args ...any) {
	if c.err == nil || byPos(p, Pos{c.err.Line, c.err.Col}) < 0 {
		c.err = errAt(p, construct, hint, format, args...)
	}
}

// scope is one grammar and what was seen of it; nested grammars have their
// own.
type scope struct {
	*checker
	g       *Grammar
	rules   map[string]bool // seen
	terms   map[string]bool // seen
	path    []string        // terminals being walked
	onPath  map[string]bool // the same
	current *Rule           // the rule being walked
}

// grammar checks g, which begins at p.
func (c *checker) grammar(g *Grammar, p Pos) {
	s := &scope{checker: c, g: g, rules: map[string]bool{}, terms: map[string]bool{}, onPath: map[string]bool{}}
	s.declare()
	s.texts()
	start := g.rules["start"]
	if start == nil {
		hint := "add start: followed by what an answer is"
		if t := g.terms["START"]; t != nil {
			hint = "write start in lower case"
		} else if len(g.Items) > 0 {
			if r, ok := g.Items[0].(*Rule); ok {
				hint = "rename " + r.Name + " to start, or add start: " + r.Name
			}
		}
		c.fail(p, cStart, hint, "the grammar has no rule named start")
		return
	}
	for _, it := range g.Items {
		if ig, ok := it.(*Ignore); ok {
			s.termBody(ig.Body)
		}
	}
	if start.Param {
		c.fail(start.Pos, cParam, "remove ::_", "start cannot take a parameter: nothing gives it one")
	}
	s.rule(start)
	if c.err == nil {
		s.endless()
	}
	s.rest()
}

// declare enters the names.
func (s *scope) declare() {
	g := s.g
	g.rules, g.terms, g.nothing = map[string]*Rule{}, map[string]*Terminal{}, map[string]bool{}
	seen := map[string]Pos{}
	enter := func(name string, p Pos) bool {
		if at, ok := seen[name]; ok {
			s.fail(p, cDuplicate, "rename one, or join them with |", "%s is already defined at %s", short(name), at)
			return false
		}
		seen[name] = p
		return true
	}
	for _, it := range g.Items {
		switch it := it.(type) {
		case *Rule:
			if enter(it.Name, it.Pos) {
				g.rules[it.Name] = it
			}
		case *Terminal:
			if enter(it.Name, it.Pos) {
				g.terms[it.Name] = it
			}
		case *Import:
			for _, n := range it.Names {
				if enter(n.Local(), n.Pos) {
					g.terms[n.Local()] = n.terminal()
				}
			}
		case *Options:
			g.options.merge(it.Source)
		}
	}
}

// texts checks every regular expression and special token, reached or not.
func (s *scope) texts() {
	visit := func(x Expr) {
		switch x := x.(type) {
		case *Regexp:
			if _, e := x.parse(s.g.options); e != nil {
				s.refuse(x.at(e.at), cRegex, e.hint, "%s", e.msg)
			}
		case *Special:
			s.special(x)
		}
	}
	for _, it := range s.g.Items {
		switch it := it.(type) {
		case *Rule:
			for _, a := range it.Attrs {
				visitOwn(a.Value, visit)
			}
			it.Body.own(visit)
		case *Terminal:
			it.Body.own(visit)
		case *Ignore:
			it.Body.own(visit)
		}
	}
}

// own is walk without nested grammars.
func (a *Alternatives) own(f func(Expr)) {
	for _, alt := range a.Alts {
		for _, seq := range alt.And {
			for _, x := range seq.Exprs {
				visitOwn(x, f)
			}
		}
	}
}

func visitOwn(x Expr, f func(Expr)) {
	if x == nil {
		return
	}
	f(x)
	switch x := x.(type) {
	case *Group:
		x.Body.own(f)
	case *Maybe:
		x.Body.own(f)
	case *Not:
		visitOwn(x.X, f)
	case *Repeat:
		visitOwn(x.X, f)
	}
}

func (x *Regexp) parse(o Settings) (*rnode, *rerror) {
	return parseRegex(x.Source, x.Flags, o.AllowInvalidUTF8)
}

// at is the position of the n-th byte of the expression.
func (x *Regexp) at(n int) Pos {
	return offsetPos(Pos{x.Pos.Line, x.Pos.Col + 1}, x.Source+"/"+x.Flags, n)
}

// numeric reports whether x is token numbers, <[…]>.
func (x *Special) numeric() bool {
	return strings.HasPrefix(x.Text, "<[") && strings.HasSuffix(x.Text, "]>") && len(x.Text) >= 4
}

func (s *scope) special(x *Special) {
	if !x.numeric() {
		return
	}
	const hint = "write <[12]>, <[12-15,20]>, <[^12-15]> or <[*]>"
	list := x.Text[2 : len(x.Text)-2]
	list, negated := strings.CutPrefix(list, "^")
	switch {
	case list == "*" && negated:
		s.refuse(x.Pos, cSpecial, hint, "<[^*]> is no token at all")
		return
	case list == "*":
		return
	}
	n := 0
	for _, r := range strings.Split(list, ",") {
		if r == "" {
			continue
		}
		n++
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		a, err1 := parseUint(from)
		z, err2 := parseUint(to)
		if err1 != nil || err2 != nil || a > z || z >= 1<<32 {
			s.refuse(x.Pos, cSpecial, hint, "%s is not a range of token numbers", short(r))
			return
		}
	}
	if n == 0 {
		s.refuse(x.Pos, cSpecial, hint, "there are no token numbers in %s", short(x.Text))
	}
}

// rest walks what start does not reach.
func (s *scope) rest() {
	was := s.loose
	s.loose = true
	defer func() { s.loose = was }()
	for _, it := range s.g.Items {
		switch it := it.(type) {
		case *Rule:
			if s.g.rules[it.Name] == it && !s.rules[it.Name] {
				s.fail(it.Pos, cUnused, "remove it, or use it", "start never needs the rule %s", it.Name)
				s.rule(it)
			}
		case *Terminal:
			if s.g.terms[it.Name] == it && !s.terms[it.Name] {
				s.fail(it.Pos, cUnused, "remove it, or use it", "start never needs the terminal %s", it.Name)
				s.term(it)
			}
		}
	}
}

func (s *scope) rule(r *Rule) {
	if s.rules[r.Name] {
		return
	}
	s.rules[r.Name] = true
	was := s.current
	s.current = r
	defer func() { s.current = was }()
	if r.Param {
		for _, key := range []string{"stop", "suffix", "lazy", "temperature", "max_tokens"} {
			if a := r.attr(key); a != nil {
				s.fail(a.Pos, cAttribute, "remove it, or the parameter", "a rule with a parameter cannot have %s", key)
			}
		}
	}
	terminal, read := r.asTerminal()
	if a := r.lostRepeat(); a != nil && read && !terminal {
		s.fail(a.Pos, cAttribute, "give "+a.Key+" to a rule of its own, and repeat that rule", "%s applies to one grammar alone; llguidance would leave out the repetition", a.Key)
	}
	switch {
	case !read:
	case terminal:
		for _, a := range r.Attrs {
			if a.Value != nil {
				s.termExpr(a.Value)
			}
		}
		s.termBody(r.Body)
	default:
		needs := s.ruleBody(r.Body)
		if r.Param && !needs {
			s.fail(r.Pos, cParam, "remove ::_", "the rule %s takes a parameter and does not use it", r.Name)
		}
		if !r.Param && needs {
			s.fail(r.Pos, cParam, "write "+r.Name+"::_", "the rule %s uses a parameter and does not take one", r.Name)
		}
	}
}

// ruleBody walks a as part of a rule and reports whether it needs the rule's
// parameter.
func (s *scope) ruleBody(a *Alternatives) bool {
	needs := false
	for _, alt := range a.Alts {
		if len(alt.And) > 1 {
			s.fail(alt.And[1].Pos, cAnd, "name the whole in upper case, as a terminal of its own", "& joins terminals, not rules")
			continue
		}
		needs = needs || alt.If != nil
		for _, x := range alt.And[0].Exprs {
			if s.ruleExpr(x) {
				needs = true
			}
		}
	}
	return needs
}

func (s *scope) ruleExpr(x Expr) (needs bool) {
	switch x := x.(type) {
	case *Group:
		return s.ruleBody(x.Body)
	case *Maybe:
		return s.ruleBody(x.Body)
	case *Repeat:
		return s.ruleExpr(x.X)
	case *Ref:
		return s.ruleRef(x)
	case *Nested:
		s.grammar(x.Grammar, x.Pos)
	case *GrammarRef:
		switch {
		case strings.Trim(x.Name, "0123456789") == "":
			s.fail(x.Pos, cGrammar, "give the grammar a name and write @name", "grammars are not referred to by number")
		case !slices.Contains(s.grammars, x.Name):
			s.fail(x.Pos, cGrammar, "write the grammar here, as a rule or with %lark { … } or %json { … }",
				"there is no grammar named %s beside this one", short(x.Name))
		}
	case *JSON:
		if x.Source == "false" {
			s.fail(x.Pos, cEndless, "write %json true for any JSON", "no text matches the schema false")
		}
	case *Not:
		s.termExpr(x)
	}
	return false
}

func (s *scope) ruleRef(x *Ref) bool {
	r := s.g.rules[x.Name]
	switch {
	case r == nil && x.Param != nil && s.g.terms[x.Name] != nil:
		s.fail(x.Pos, cParam, "remove ::", "%s is a terminal and takes no parameter", x.Name)
	case r == nil && s.g.terms[x.Name] != nil:
		s.term(s.g.terms[x.Name])
	case r == nil:
		s.undefined(x)
	case r.Param && x.Param == nil:
		s.fail(x.Pos, cParam, "write "+x.Name+"::0, or "+x.Name+"::_ to pass the parameter on", "the rule %s takes a parameter", x.Name)
	case !r.Param && x.Param != nil:
		s.fail(x.Pos, cParam, "remove ::, or define "+x.Name+"::_", "the rule %s takes no parameter", x.Name)
	}
	if r != nil {
		s.rule(r)
	}
	return x.Param.usesSelf()
}

func (s *scope) undefined(x *Ref) {
	hint := "define it, or correct the name"
	switch w := s.mixed[x.Pos]; {
	case x.Name[0] == '?' || x.Name[0] == '!':
		hint = "write a space after " + x.Name[:1]
	case w != "":
		hint = "a name is all lower case (a rule) or all upper case (a terminal); " + short(w) + " is read as several"
	case common[x.Name] != "":
		hint = "add %import common." + x.Name
	}
	s.fail(x.Pos, cUndefined, hint, "%s is not defined", short(x.Name))
}

func (s *scope) term(t *Terminal) {
	if s.terms[t.Name] {
		return
	}
	s.terms[t.Name] = true
	s.path = append(s.path, t.Name)
	s.onPath[t.Name] = true
	s.termBody(t.Body)
	s.path = s.path[:len(s.path)-1]
	delete(s.onPath, t.Name)
}

func (s *scope) termBody(a *Alternatives) {
	for _, alt := range a.Alts {
		if alt.If != nil {
			s.fail(alt.If.Pos, cParam, "make it a rule, in lower case", "%%if cannot stand in a terminal")
		}
		for _, seq := range alt.And {
			for _, x := range seq.Exprs {
				s.termExpr(x)
			}
		}
	}
}

func (s *scope) termExpr(x Expr) {
	no := func(construct, what string) {
		s.fail(x.Position(), construct, s.notTerminal(), "%s cannot stand in a terminal", what)
	}
	switch x := x.(type) {
	case *Group:
		s.termBody(x.Body)
	case *Maybe:
		s.termBody(x.Body)
	case *Repeat:
		s.termExpr(x.X)
	case *Not:
		s.termExpr(x.X)
	case *Special:
		no(cSpecial, "a special token")
	case *JSON:
		no(cJSON, "%json")
	case *GrammarRef:
		no(cGrammar, "a grammar reference")
	case *Nested:
		no(cNested, "%lark")
	case *Ref:
		s.termRef(x)
	}
}

// notTerminal is what to do about something that cannot stand in a terminal.
func (s *scope) notTerminal() string {
	if n := len(s.path); n > 0 {
		return "name " + s.path[n-1] + " in lower case to make it a rule"
	}
	if s.current != nil {
		return s.current.terminalKey() + " reads the whole of " + s.current.Name + " as one terminal: give it to a rule that holds a terminal alone"
	}
	return "only terminals can be ignored"
}

func (s *scope) termRef(x *Ref) {
	t := s.g.terms[x.Name]
	switch {
	case x.Param != nil:
		s.fail(x.Pos, cParam, "make it a rule, in lower case", "a terminal has no parameters")
	case t != nil && s.onPath[x.Name]:
		chain := append(slices.Clone(s.path[slices.Index(s.path, x.Name):]), x.Name)
		if n := len(chain); n > 6 {
			chain = append(chain[:3], "…", chain[n-1])
		}
		through := strings.Join(chain, " → ")
		s.fail(x.Pos, cRecursive, "name "+x.Name+" in lower case to make it a rule", "the terminal %s contains itself (%s)", x.Name, through)
	case t != nil:
		s.term(t)
	case s.g.rules[x.Name] != nil:
		hint := "name " + x.Name + " in upper case to make it a terminal"
		if len(s.path) > 0 {
			hint += ", or " + s.path[len(s.path)-1] + " in lower case to make it a rule"
		} else if s.current != nil {
			hint = s.notTerminal()
		}
		s.fail(x.Pos, cRuleInTok, hint, "a terminal cannot contain the rule %s", x.Name)
	default:
		s.undefined(x)
	}
}
