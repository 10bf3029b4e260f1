package lark

import (
	"maps"
	"slices"
)

// MaxSize is the largest source Parse reads, in bytes. Reading that much
// takes about a second.
const MaxSize = 256 << 10

// Grammar is a grammar that was read and checked.
type Grammar struct {
	// Items holds what the source holds, in its order.
	Items []Item

	rules    map[string]*Rule
	terms    map[string]*Terminal
	nothing  map[string]bool // terminals known to match no text, or not to
	options  Settings
	warnings []*Error
}

// Rule returns the rule of that name, or nil.
func (g *Grammar) Rule(name string) *Rule { return g.rules[name] }

// Terminal returns the terminal of that name, also an imported one, or nil.
func (g *Grammar) Terminal(name string) *Terminal { return g.terms[name] }

// Settings returns what the %llguidance lines say together.
func (g *Grammar) Settings() Settings { return g.options }

// Warnings returns what is odd but harmless, in the order of the source:
// rules and terminals that start cannot reach, with what is wrong in them.
func (g *Grammar) Warnings() []*Error { return g.warnings }

// Settings are the options of %llguidance.
type Settings struct {
	NoForcing        bool `json:"no_forcing"`
	AllowInvalidUTF8 bool `json:"allow_invalid_utf8"`
	AllowInitialSkip bool `json:"allow_initial_skip"`
	IgnoreOnce       bool `json:"ignore_once"`
}

// Item is a *Rule, *Terminal, *Ignore, *Import or *Options.
type Item interface{ position() Pos }

// Rule is a rule: name[attributes]: body.
type Rule struct {
	Pos  Pos
	Name string
	// Keep and Inline are the prefixes ! and ?; they mean nothing to
	// llguidance.
	Keep, Inline bool
	// Param says that the rule takes a parameter (name::_).
	Param bool
	Attrs []Attr
	Body  *Alternatives
}

// Terminal is a terminal: NAME: body.
type Terminal struct {
	Pos  Pos
	Name string
	Body *Alternatives
}

// Attr is an attribute of a rule. Which field is set depends on Key.
type Attr struct {
	Pos Pos
	// Key is capture, lazy, stop, suffix, stop_capture, max_tokens or
	// temperature.
	Key string
	// Text is the name that stop_capture gives, and capture when Named.
	Text  string
	Named bool
	// Value is the value of stop or suffix.
	Value Expr
	// Tokens is the value of max_tokens.
	Tokens uint64
	// Number is the value of temperature.
	Number float64
}

// Ignore is %ignore.
type Ignore struct {
	Pos  Pos
	Body *Alternatives
}

// Import is %import common.NAME, with an alias or without, or
// %import common (NAME, NAME).
type Import struct {
	Pos   Pos
	Names []ImportName
}

// ImportName is one imported terminal.
type ImportName struct {
	Pos Pos
	// Name is the name in "common"; Alias the name here when it differs.
	Name, Alias string
}

// Local is the name under which the terminal is known here.
func (n ImportName) Local() string {
	if n.Alias != "" {
		return n.Alias
	}
	return n.Name
}

// Options is %llguidance.
type Options struct {
	Pos Pos
	// Source is the JSON object as it stands.
	Source string
}

func (r *Rule) position() Pos     { return r.Pos }
func (t *Terminal) position() Pos { return t.Pos }
func (i *Ignore) position() Pos   { return i.Pos }
func (i *Import) position() Pos   { return i.Pos }
func (o *Options) position() Pos  { return o.Pos }

// Alternatives is a | b | c.
type Alternatives struct {
	Pos  Pos
	Alts []*Alternative
}

// Alternative is one of them: sequences joined by &, an alias (which means
// nothing to llguidance), a condition.
type Alternative struct {
	Pos   Pos
	And   []*Sequence
	Alias string
	// If is the condition of %if; nil when there is none.
	If *Param
}

// Sequence is a row of expressions; it may be empty.
type Sequence struct {
	Pos   Pos
	Exprs []Expr
}

// Expr is a *Literal, *Regexp, *Range, *Ref, *Special, *GrammarRef, *JSON,
// *RegexExt, *Nested, *Group, *Maybe, *Not or *Repeat.
type Expr interface{ Position() Pos }

// Literal is a string; Fold is the flag i.
type Literal struct {
	Pos   Pos
	Value string
	Fold  bool
}

// Regexp is /source/flags; Source stands as in the grammar.
type Regexp struct {
	Pos           Pos
	Source, Flags string
}

// Range is "a".."z".
type Range struct {
	Pos      Pos
	From, To string
}

// Ref is the name of a rule or a terminal, with the parameter given to a
// rule.
type Ref struct {
	Pos   Pos
	Name  string
	Param *Param
}

// Special is a special token: <name>, or token numbers <[1-2]>.
type Special struct {
	Pos Pos
	// Text is the whole of it, with < and >.
	Text string
}

// GrammarRef is @name, another grammar of the same request.
type GrammarRef struct {
	Pos  Pos
	Name string
}

// JSON is %json: the schema as it stands, and where it begins.
type JSON struct {
	Pos, Start Pos
	Source     string
}

// RegexExt is %regex: the object as it stands.
type RegexExt struct {
	Pos    Pos
	Source string
}

// Nested is %lark { … }: a grammar with names of its own.
type Nested struct {
	Pos     Pos
	Grammar *Grammar
}

// Group is ( … ).
type Group struct {
	Pos  Pos
	Body *Alternatives
}

// Maybe is [ … ], that or nothing.
type Maybe struct {
	Pos  Pos
	Body *Alternatives
}

// Not is ~X, every text but those of X.
type Not struct {
	Pos Pos
	X   Expr
}

// Repeat is X*, X+, X?, X{m,n} or X~m..n.
type Repeat struct {
	Pos Pos
	X   Expr
	// Max is negative when there is no upper bound.
	Min, Max int
}

// Position returns where the expression begins.
func (x *Literal) Position() Pos    { return x.Pos }
func (x *Regexp) Position() Pos     { return x.Pos }
func (x *Range) Position() Pos      { return x.Pos }
func (x *Ref) Position() Pos        { return x.Pos }
func (x *Special) Position() Pos    { return x.Pos }
func (x *GrammarRef) Position() Pos { return x.Pos }
func (x *JSON) Position() Pos       { return x.Pos }
func (x *RegexExt) Position() Pos   { return x.Pos }
func (x *Nested) Position() Pos     { return x.Pos }
func (x *Group) Position() Pos      { return x.Pos }
func (x *Maybe) Position() Pos      { return x.Pos }
func (x *Not) Position() Pos        { return x.Pos }
func (x *Repeat) Position() Pos     { return x.Pos }

// Param is a parameter expression or a condition: a number, _ (the rule's
// own parameter), bits [from:to] of it, or a call such as incr(_).
type Param struct {
	Pos Pos
	// Func is the name of a call, "_" , "[]" for bits, or empty for a number.
	Func string
	// Number is the value of a number.
	Number uint64
	// From and To are the bounds of bits.
	From, To int
	Args     []*Param
}

// SpecialTokens returns the names of the special tokens the grammar needs,
// sorted, without token numbers: what a vocabulary must know to compile it.
func (g *Grammar) SpecialTokens() []string {
	set := map[string]bool{}
	g.walk(func(x Expr) {
		if s, ok := x.(*Special); ok && !s.numeric() {
			set[s.Text] = true
		}
	})
	return slices.Sorted(maps.Keys(set))
}

// GrammarRefs returns the names after @, sorted.
func (g *Grammar) GrammarRefs() []string {
	set := map[string]bool{}
	g.walk(func(x Expr) {
		if r, ok := x.(*GrammarRef); ok {
			set[r.Name] = true
		}
	})
	return slices.Sorted(maps.Keys(set))
}

// Schemas returns the JSON Schemas of %json in the order of the source.
func (g *Grammar) Schemas() []*JSON {
	var out []*JSON
	g.walk(func(x Expr) {
		if j, ok := x.(*JSON); ok {
			out = append(out, j)
		}
	})
	return out
}

// Rules calls f for every rule, also of nested grammars.
func (g *Grammar) Rules(f func(*Rule)) {
	for _, it := range g.Items {
		if r, ok := it.(*Rule); ok {
			f(r)
		}
	}
	g.walk(func(x Expr) {
		if n, ok := x.(*Nested); ok {
			for _, it := range n.Grammar.Items {
				if r, ok := it.(*Rule); ok {
					f(r)
				}
			}
		}
	})
}

// walk calls f for every expression, also in nested grammars.
func (g *Grammar) walk(f func(Expr)) {
	for _, it := range g.Items {
		switch it := it.(type) {
		case *Rule:
			for _, a := range it.Attrs {
				walkExpr(a.Value, f)
			}
			it.Body.walk(f)
		case *Terminal:
			it.Body.walk(f)
		case *Ignore:
			it.Body.walk(f)
		}
	}
}

func (a *Alternatives) walk(f func(Expr)) {
	for _, alt := range a.Alts {
		for _, seq := range alt.And {
			for _, x := range seq.Exprs {
				walkExpr(x, f)
			}
		}
	}
}

func walkExpr(x Expr, f func(Expr)) {
	if x == nil {
		return
	}
	f(x)
	switch x := x.(type) {
	case *Group:
		x.Body.walk(f)
	case *Maybe:
		x.Body.walk(f)
	case *Not:
		walkExpr(x.X, f)
	case *Repeat:
		walkExpr(x.X, f)
	case *Nested:
		x.Grammar.walk(f)
	}
}
