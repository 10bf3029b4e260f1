package lark

import (
	"fmt"
	"unicode"
)

// GBNF returns the grammar in llama.cpp's dialect. An error is an *Error that
// names the construct which has no counterpart there.
//
// The translation describes the texts of the grammar as rules of characters.
// llguidance reads a terminal as far as it goes; where a terminal can run on
// into what follows it, rules of characters accept more splits than
// llguidance does, so an answer is still to be validated. The attributes
// capture and temperature have no counterpart and change no text: they are
// left out, and so are spaces in the JSON of %json and what %ignore names at
// the end of an answer.
func (g *Grammar) GBNF() (string, error) { return g.translate(gbnf) }

// EBNF returns the grammar in XGrammar's dialect, which vLLM and SGLang take.
// See GBNF.
func (g *Grammar) EBNF() (string, error) { return g.translate(ebnf) }

// RegexToGBNF returns a llama.cpp grammar for the texts that the regular
// expression matches as a whole.
func RegexToGBNF(src string) (string, error) { return regexTo(gbnf, src) }

// RegexToEBNF returns an XGrammar grammar for the texts that the regular
// expression matches as a whole.
func RegexToEBNF(src string) (string, error) { return regexTo(ebnf, src) }

// dialect is where a translation goes.
type dialect int

const (
	gbnf dialect = iota
	ebnf
)

func (d dialect) String() string { return [...]string{"a llama.cpp grammar", "an XGrammar grammar"}[d] }

// untranslatable is thrown by the translator and caught at its entry.
type untranslatable struct{ *Error }

func (d dialect) catch(f func() string) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			u, ok := r.(untranslatable)
			if !ok {
				panic(r)
			}
			err = u.Error
		}
	}()
	return f(), nil
}

func (d dialect) refuse(p Pos, construct, hint, format string, args ...any) {
	panic(untranslatable{errAt(p, construct, hint, "%s cannot be written in %s", fmt.Sprintf(format, args...), d)})
}

func (g *Grammar) translate(d dialect) (string, error) {
	return d.catch(func() string {
		out := newBGrammar()
		out.add("root", Pos{1, 1}, empty)
		t := &translator{dialect: d, out: out, g: g, rules: map[string]string{}, terms: map[string]string{}}
		if g.options.AllowInitialSkip {
			out.rules["root"] = t.start()
		} else {
			out.rules["root"] = t.first()
		}
		return d.print(out, "root")
	})
}

func regexTo(d dialect, src string) (string, error) {
	return d.catch(func() string {
		n, e := parseRegex(src, "", false)
		if e != nil {
			p := offsetPos(Pos{1, 1}, src, e.at)
			panic(untranslatable{errAt(p, cRegex, e.hint, "%s", e.msg)})
		}
		out := newBGrammar()
		out.add("root", Pos{1, 1}, empty)
		t := &translator{dialect: d, out: out}
		out.rules["root"] = t.regex(n, func(at int) Pos { return offsetPos(Pos{1, 1}, src, at) })
		return d.print(out, "root")
	})
}

// translator turns one grammar into rules; a nested grammar has its own.
type translator struct {
	dialect
	out   *bgrammar
	g     *Grammar
	rules map[string]string // Lark name → name in out
	terms map[string]string
	// skip is what may come between terminals; nil without %ignore.
	skip *bnode
}

// start translates what the grammar needs and returns its start.
func (t *translator) start() *bnode {
	var skip []*bnode
	for _, it := range t.g.Items {
		if ig, ok := it.(*Ignore); ok {
			skip = append(skip, t.termBody(ig.Body))
		}
	}
	t.out.findNullable()
	if body := t.out.withoutEmpty(alt(skip...)); !body.isNone() {
		if t.g.options.IgnoreOnce {
			body = opt(body)
		} else {
			body = rep(body, 0, -1)
		}
		t.skip = ref(t.out.add("ignored", Pos{1, 1}, body))
	}
	return ref(t.rule("start"))
}

// first is start without ignored text before the first terminal.
func (t *translator) first() *bnode {
	s := t.start()
	if t.skip == nil {
		return s
	}
	t.out.findNullable()
	return t.out.unskip(s, t.skip.name)
}

// rule translates the named rule once and returns its new name.
func (t *translator) rule(name string) string {
	if n, ok := t.rules[name]; ok {
		return n
	}
	r := t.g.rules[name]
	n := t.out.add(name, r.Pos, empty)
	t.rules[name] = n
	if r.Param {
		t.refuse(r.Pos, cParam, "write one rule for each value", "the parameter of %s", name)
	}
	for _, a := range r.Attrs {
		switch a.Key {
		case "max_tokens":
			if a.Tokens != 0 {
				t.refuse(a.Pos, cAttribute, "bound the characters instead, as in /.{0,200}/", "max_tokens")
			}
		case "lazy", "stop", "suffix":
			if r.isLazy() {
				t.refuse(a.Pos, cLazy, "write an expression that cannot match its own end, as in /[^<]*/", "%s", a.Key)
			}
		}
	}
	switch terminal, read := r.asTerminal(); {
	case !read:
	case terminal:
		t.out.rules[n] = t.lexeme(t.termBody(r.Body))
	default:
		t.out.rules[n] = t.ruleBody(r.Body)
	}
	return n
}

func (t *translator) ruleBody(a *Alternatives) *bnode {
	var alts []*bnode
	for _, x := range a.Alts {
		if x.If != nil {
			t.refuse(x.If.Pos, cParam, "write the alternatives out", "%%if")
		}
		var list []*bnode
		for _, e := range x.And[0].Exprs {
			list = append(list, t.ruleExpr(e))
		}
		alts = append(alts, seq(list...))
	}
	return alt(alts...)
}

func (t *translator) ruleExpr(x Expr) *bnode {
	switch x := x.(type) {
	case *Group:
		return t.ruleBody(x.Body)
	case *Maybe:
		return opt(t.ruleBody(x.Body))
	case *Repeat:
		return rep(t.ruleExpr(x.X), x.Min, x.Max)
	case *Ref:
		if x.Param != nil {
			t.refuse(x.Pos, cParam, "write one rule for each value", "the parameter of %s", x.Name)
		}
		if t.g.rules[x.Name] != nil {
			return ref(t.rule(x.Name))
		}
	case *Nested:
		inner := &translator{dialect: t.dialect, out: t.out, g: x.Grammar, rules: map[string]string{}, terms: map[string]string{}}
		return inner.first()
	case *JSON:
		return t.json(x)
	case *Special:
		t.refuse(x.Pos, cSpecial, "leave it out: an answer ends by itself", "the special token %s", short(x.Text))
	case *GrammarRef:
		t.refuse(x.Pos, cGrammar, "write the grammar here", "the grammar @%s", x.Name)
	}
	return t.lexeme(t.termExpr(x))
}

// lexeme is a terminal as rules use it: ignored text may come before it,
// when it matches something.
func (t *translator) lexeme(n *bnode) *bnode {
	if t.skip == nil || n.isEmpty() || n.isNone() {
		return n
	}
	t.out.findNullable()
	if t.out.canBeEmpty(n) {
		return opt(seq(t.skip, t.out.withoutEmpty(n)))
	}
	return seq(t.skip, n)
}

func (t *translator) termRef(name string) *bnode {
	if n, ok := t.terms[name]; ok {
		return ref(n)
	}
	term := t.g.terms[name]
	n := t.out.add(name, term.Pos, empty)
	t.terms[name] = n
	t.out.rules[n] = t.termBody(term.Body)
	return ref(n)
}

func (t *translator) termBody(a *Alternatives) *bnode {
	var alts []*bnode
	for _, x := range a.Alts {
		if len(x.And) > 1 {
			t.refuse(x.And[1].Pos, cAnd, "write one expression for both", "&")
		}
		var list []*bnode
		for _, e := range x.And[0].Exprs {
			list = append(list, t.termExpr(e))
		}
		alts = append(alts, seq(list...))
	}
	return alt(alts...)
}

func (t *translator) termExpr(x Expr) *bnode {
	switch x := x.(type) {
	case *Group:
		return t.termBody(x.Body)
	case *Maybe:
		return opt(t.termBody(x.Body))
	case *Repeat:
		return rep(t.termExpr(x.X), x.Min, x.Max)
	case *Ref:
		return t.termRef(x.Name)
	case *Literal:
		if x.Fold {
			return foldText(x.Value, !t.g.options.AllowInvalidUTF8)
		}
		return lit(x.Value)
	case *Range:
		return charSet([]rune{[]rune(x.From)[0], []rune(x.To)[0]})
	case *Regexp:
		n, _ := x.parse(t.g.options)
		return t.regex(n, x.at)
	case *RegexExt:
		return t.substring(x)
	case *Not:
		t.refuse(x.Pos, cNot, "write what may stand there instead of what may not", "~")
	}
	panic(fmt.Sprintf("lark: a %T in a terminal was let through", x))
}

// foldText is a text in any case; without Unicode only ASCII has two.
func foldText(s string, unicode bool) *bnode {
	var list []*bnode
	for _, r := range s {
		list = append(list, charSet(fold([]rune{r, r}, unicode)))
	}
	return seq(list...)
}

// maxChunks bounds %regex { "substring_…": … }, which becomes a rule for each
// chunk.
const maxChunks = 2000

// substring matches any run of chunks: each may be the first, and each is
// followed by the next or by the end.
func (t *translator) substring(x *RegexExt) *bnode {
	chunks, _ := readExt(x.Source)
	if len(chunks) > maxChunks {
		t.refuse(x.Pos, cRegexExt, "use a shorter text", "a %%regex of %d chunks", len(chunks))
	}
	starts := []*bnode{empty}
	next := empty
	for i := len(chunks) - 1; i >= 0; i-- {
		if chunks[i] == "" {
			continue
		}
		next = ref(t.out.add("part", x.Pos, seq(lit(chunks[i]), opt(next))))
		starts = append(starts, next)
	}
	return alt(starts...)
}

// regex translates a regular expression; at gives positions in the source.
func (t *translator) regex(n *rnode, at func(int) Pos) *bnode {
	switch n.op {
	case rClass:
		if n.set.unknown != "" {
			t.refuse(at(n.at), cRegex, `write the characters as ranges, or a property such as \p{L}`, `\p{%s}`, short(n.set.unknown))
		}
		if n.set.bytes && len(n.set.pairs) > 0 && n.set.pairs[len(n.set.pairs)-1] > unicode.MaxASCII {
			t.refuse(at(n.at), cRegex, "leave out allow_invalid_utf8", "bytes that are not UTF-8")
		}
		return charSet(n.set.pairs)
	case rCat:
		var list []*bnode
		for _, s := range n.subs {
			list = append(list, t.regex(s, at))
		}
		return seq(list...)
	case rAlt:
		var list []*bnode
		for _, s := range n.subs {
			list = append(list, t.regex(s, at))
		}
		return alt(list...)
	case rRepeat:
		return rep(t.regex(n.subs[0], at), n.min, n.max)
	case rGroup:
		if n.name == "stop" {
			t.refuse(at(n.at), cRegex, "rename the group", "the lookahead (?P<stop> … )")
		}
		return t.regex(n.subs[0], at)
	}
	return empty
}
