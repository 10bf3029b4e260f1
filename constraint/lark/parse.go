package lark

import (
	"errors"
	"slices"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// Parse reads and checks a grammar that stands alone. An error is an *Error.
func Parse(src []byte) (*Grammar, error) { return ParseAmong(src) }

// ParseAmong is Parse for a grammar that is sent with others, whose names it
// may refer to with @name.
func ParseAmong(src []byte, grammars ...string) (*Grammar, error) {
	text, bad := clean(src)
	if bad != nil {
		return nil, bad
	}
	toks := split(text)
	g, errs := read(text, toks)
	if len(errs) > 0 {
		return nil, first(errs)
	}
	c := &checker{grammars: grammars, mixed: toks.mixed}
	c.grammar(g, Pos{1, 1})
	if c.err != nil {
		return nil, c.err
	}
	g.warnings = c.warnings
	slices.SortStableFunc(g.warnings, byPosition)
	return g, nil
}

// read builds the tree and checks no more than what stands in one place.
func read(text string, toks *tokens) (*Grammar, []*Error) {
	if e := toks.tooDeep(); e != nil {
		return nil, []*Error{e}
	}
	peek, err := lexer.Upgrade(toks)
	if err != nil {
		return nil, []*Error{errAt(Pos{1, 1}, cSyntax, "", "cannot be read: %v", err)}
	}
	file, err := parser.ParseFromLexer(peek)
	if err != nil {
		return nil, []*Error{toks.reword(err)}
	}
	b := &builder{src: text}
	return b.grammar(file, false), b.errs
}

func byPosition(a, b *Error) int { return byPos(Pos{a.Line, a.Col}, Pos{b.Line, b.Col}) }

func byPos(a, b Pos) int {
	if a.Line != b.Line {
		return a.Line - b.Line
	}
	return a.Col - b.Col
}

func first(errs []*Error) *Error { return slices.MinFunc(errs, byPosition) }

// tooDeep refuses nesting before the parser recurses into it.
func (t *tokens) tooDeep() *Error {
	depth := 0
	for _, tok := range t.list {
		if tok.Type != symbols["Punct"] {
			continue
		}
		switch tok.Value {
		case "(", "[", "{":
			if depth++; depth > 2*maxNesting {
				return errAt(posOf(tok.Pos), cNesting, "move inner groups to rules of their own", "groups are nested more than %d deep", maxNesting-2)
			}
		case ")", "]", "}":
			depth--
		}
	}
	return nil
}

// reword says in the terms of a grammar what participle found unexpected.
func (t *tokens) reword(err error) *Error {
	var perr participle.Error
	if !errors.As(err, &perr) {
		return errAt(Pos{1, 1}, cSyntax, "", "cannot be read: %v", err)
	}
	at := perr.Position()
	i := slices.IndexFunc(t.list, func(tok lexer.Token) bool { return tok.Pos.Offset >= at.Offset })
	if i < 0 {
		i = len(t.list) - 1
	}
	// The parser may have given up a few tokens before what is wrong by
	// itself.
	for j := i; j < len(t.list) && j <= i+3; j++ {
		if e := t.bad[j]; e != nil {
			return e
		}
	}
	return t.explain(i)
}

func (t *tokens) explain(i int) *Error {
	tok := t.list[i]
	var prev lexer.Token
	if i > 0 {
		prev = t.list[i-1]
	}
	p := posOf(tok.Pos)
	say := func(hint, format string, args ...any) *Error { return errAt(p, cSyntax, hint, format, args...) }
	is := func(tok lexer.Token, name string) bool { return tok.Type == symbols[name] }
	if w := t.mixed[p]; w != "" && (is(prev, "RuleName") || is(prev, "TermName")) {
		return say("write rules in lower case and terminals in upper case", "the name %s mixes upper and lower case", short(w))
	}
	open := t.openBefore(i)
	atStart := i == 0 || is(prev, "Newline")
	name := is(prev, "RuleName") || is(prev, "TermName")
	switch {
	case open.Value == "{" && tok.EOF():
		return errAt(posOf(open.Pos), cSyntax, "close it with }", "the { is never closed")
	case (open.Value == "(" || open.Value == "[") && (tok.EOF() || is(tok, "Newline") && t.list[i+1].EOF()):
		return errAt(posOf(open.Pos), cSyntax, "close it with "+closer[open.Value], "the %s is never closed", open.Value)
	case (open.Value == "(" || open.Value == "[") && is(prev, "Newline"):
		return errAt(posOf(prev.Pos), cSyntax, "end the line after "+closer[open.Value]+", or begin the next line with |", "the line ends inside %s", open.Value)
	case tok.Value == "|" && atStart:
		return say("remove the empty line, or the comment, before it", "an alternative must follow the line before it directly")
	case is(tok, "Newline") && open.Value == "{":
		return say("end the line after }", "the line ends inside {")
	case is(tok, "Newline") && open.Value != "":
		return say("end the line after "+closer[open.Value]+", or begin the next line with |", "the line ends inside %s", open.Value)
	case tok.EOF():
		return say("", "the grammar ends in the middle of a definition")
	case tok.Value == ")" || tok.Value == "]" || tok.Value == "}":
		if open.Value == "" {
			return say(`write "`+tok.Value+`" for the character`, "%s closes nothing", tok.Value)
		}
		return say("", "%s cannot stand here", tok.Value)
	case tok.Value == "[" && is(prev, "TermName") && t.lineStart(i-1):
		return say("write the name in lower case to make it a rule", "attributes belong to rules, and %s is a terminal", short(prev.Value))
	case name && t.lineStart(i-1) && tok.Value != ":" && open.Value == "":
		return say("write "+short(prev.Value)+": followed by its definition", "the : after %s is missing", short(prev.Value))
	case tok.Value == "=" && (prev.Value == ":" || prev.Value == "::"):
		return say("write : alone", "a definition has one : and nothing else")
	case is(tok, "Newline"):
		return say("", "the line ends too early after %s", short(prev.Value))
	case tok.Value == ":" && name && !t.lineStart(i-1):
		return errAt(posOf(prev.Pos), cSyntax, "begin it on a line of its own", "the definition of %s begins in the middle of another", short(prev.Value))
	case prev.Value == "->":
		return say("write a name in lower case", "%s cannot be an alias", short(tok.Value))
	case atStart && (is(tok, "String") || is(tok, "Regexp") || tok.Value == "("):
		return say("begin the line with | if it is another alternative, or join it to the line before", "a line begins with the name of a rule or terminal")
	case atStart && is(tok, "JSON"), atStart && is(tok, "Regex"):
		return say("write name: before it", "a line begins with name: or a directive")
	case atStart:
		return say("", "a line begins with name: or a directive, not with %s", short(tok.Value))
	case is(tok, "Op") && is(prev, "Op"):
		return say("group the inner one with ( )", "an expression takes one of * + ? {…} only")
	case is(tok, "Op"), tok.Value == "~", tok.Value == "{":
		return say(`write "`+tok.Value+`" for the character`, "there is nothing to repeat before %s", tok.Value)
	}
	return say("", "%s cannot stand here", short(tok.Value))
}

var closer = map[string]string{"(": ")", "[": "]", "{": "}"}

// lineStart reports whether token i is the first of its line.
func (t *tokens) lineStart(i int) bool {
	return i == 0 || i > 0 && t.list[i-1].Type == symbols["Newline"]
}

// openBefore returns the bracket that is still open before token i.
func (t *tokens) openBefore(i int) lexer.Token {
	var stack []lexer.Token
	for _, tok := range t.list[:i] {
		if tok.Type != symbols["Punct"] {
			continue
		}
		switch tok.Value {
		case "(", "[", "{":
			stack = append(stack, tok)
		case ")", "]", "}":
			if n := len(stack); n > 0 && closer[stack[n-1].Value] == tok.Value {
				stack = stack[:n-1]
			}
		}
	}
	if len(stack) == 0 {
		return lexer.Token{}
	}
	return stack[len(stack)-1]
}
