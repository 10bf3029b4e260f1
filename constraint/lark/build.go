package lark

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2/lexer"
)

// builder turns participle's tree into the public one and checks what can be
// told from one place alone. It collects errors and goes on; Parse reports
// the first.
type builder struct {
	src   string
	errs  []*Error
	depth int
}

// maxNesting is llguidance's: groups, brackets and nested grammars within
// one rule, the rule's own body included.
const maxNesting = 30

func (b *builder) fail(p Pos, construct, hint, format string, args ...any) {
	b.errs = append(b.errs, errAt(p, construct, hint, format, args...))
}

func (b *builder) grammar(f *pFile, nested bool) *Grammar {
	g := &Grammar{}
	for i, it := range f.Items {
		if item := b.item(it); item != nil {
			g.Items = append(g.Items, item)
		}
		if !it.Newline && it.openEnd() {
			switch {
			case i+1 < len(f.Items):
				b.fail(posOf(f.Items[i+1].Pos), cSyntax, "begin it on a line of its own", "a definition ends with its line")
			case nested:
				b.fail(posOf(it.Pos), cNested, "put the closing } on a line of its own", "the last line of a %%lark block is not ended")
			}
		}
	}
	return g
}

// openEnd reports whether the item ends in a row of expressions, which only
// the end of a line ends; an alias or a condition ends by itself.
func (it *pItem) openEnd() bool {
	var body *pAlts
	switch {
	case it.Rule != nil:
		body = it.Rule.Body
	case it.Term != nil:
		body = it.Term.Body
	case it.Ignore != nil:
		body = it.Ignore
	case it.Override != nil:
		body = it.Override.Body
	default:
		return false
	}
	last := body.Alts[len(body.Alts)-1]
	return last.Alias == "" && last.If == nil
}

func (b *builder) item(it *pItem) Item {
	pos := posOf(it.Pos)
	switch {
	case it.Rule != nil:
		return b.rule(it.Rule)
	case it.Term != nil:
		t := it.Term
		b.noTemplate(t.Template)
		b.noPriority(t.Priority)
		return &Terminal{Pos: pos, Name: t.Name, Body: b.alternatives(t.Body)}
	case it.Ignore != nil:
		return &Ignore{Pos: pos, Body: b.alternatives(it.Ignore)}
	case it.Import != nil:
		return b.imports(pos, it.Import)
	case it.Options != nil:
		b.options(pos, it)
		return &Options{Pos: pos, Source: *it.Options}
	case it.Override != nil:
		b.fail(pos, cOverride, "write the rule itself", "%%override is not supported")
	case it.Declare != nil:
		b.fail(pos, cDeclare, "define the terminal, or write a special token as <name>", "%%declare is not supported")
	}
	return nil
}

func (b *builder) noTemplate(t *pTemplate) {
	if t != nil {
		b.fail(posOf(t.Pos), cTemplate, "write one rule for each use", "templates are not supported")
	}
}

func (b *builder) noPriority(p *pPriority) {
	if p != nil {
		b.fail(posOf(p.Pos), cPriority, "remove ."+p.Value, "priorities are not supported")
	}
}

func (b *builder) rule(r *pRule) *Rule {
	b.noTemplate(r.Template)
	b.noPriority(r.Priority)
	out := &Rule{Pos: posOf(r.Pos), Param: r.Param}
	name := r.Name
	name, out.Keep = strings.CutPrefix(name, "!")
	name, out.Inline = strings.CutPrefix(name, "?")
	out.Name = name
	if r.Attrs != nil {
		for _, a := range r.Attrs.Attrs {
			out.Attrs = append(out.Attrs, b.attr(a))
		}
		b.attrPairs(out)
	}
	out.Body = b.alternatives(r.Body)
	return out
}

var attrKeys = "capture, lazy, max_tokens, stop, stop_capture, suffix and temperature"

func (b *builder) attr(a *pAttr) Attr {
	out := Attr{Pos: posOf(a.Pos), Key: a.Key}
	given := a.Value != nil || a.Number != nil
	bad := func(hint string) Attr {
		b.fail(out.Pos, cAttribute, hint, "the attribute %s is not written like this", a.Key)
		return out
	}
	switch a.Key {
	case "capture", "stop_capture":
		out.Named = given
		if !given && a.Key == "capture" {
			return out
		}
		if a.Value == nil || a.Value.String == nil || a.Value.To != nil {
			return bad(`write ` + a.Key + `="name"`)
		}
		var fold bool
		out.Text, fold = b.str(a.Value)
		if fold {
			return bad(`write ` + a.Key + `="name" without i`)
		}
	case "lazy":
		if given {
			return bad("write lazy alone")
		}
	case "stop", "suffix":
		if a.Value == nil {
			return bad(`write ` + a.Key + `="text", a /regular expression/ or a terminal`)
		}
		out.Value = b.value(a.Value)
	case "max_tokens":
		if a.Number == nil {
			return bad("write max_tokens=100")
		}
		n, err := parseUint(*a.Number)
		if err != nil {
			return bad("write a whole number: max_tokens=100")
		}
		out.Tokens = n
	case "temperature":
		if a.Number == nil {
			return bad("write temperature=0.7")
		}
		n, err := strconv.ParseFloat(*a.Number, 32)
		if err != nil || math.IsInf(n, 0) {
			return bad("write temperature=0.7")
		}
		out.Number = n
	default:
		b.fail(out.Pos, cAttribute, "the attributes are "+attrKeys, "%s is not an attribute of a rule", a.Key)
	}
	return out
}

// attrPairs refuses attributes that exclude each other, in llguidance's
// order of reading.
func (b *builder) attrPairs(r *Rule) {
	ends, stopCapture := 0, false
	for _, a := range r.Attrs {
		switch a.Key {
		case "stop", "suffix":
			if ends++; ends > 1 {
				b.fail(a.Pos, cAttribute, "keep one of them", "a rule has one end: stop, suffix or lazy")
			}
		case "lazy":
			if ends == 0 {
				ends++
			} else if r.emptyStop() {
				b.fail(a.Pos, cAttribute, "keep one of them", `stop="" ends at the end of the answer, lazy as soon as it may`)
			}
		case "stop_capture":
			if stopCapture {
				b.fail(a.Pos, cAttribute, "keep one of them", "a rule has one stop_capture")
			}
			stopCapture = true
		}
	}
	if stopCapture && ends == 0 {
		b.fail(r.Pos, cAttribute, "add stop or suffix, or remove stop_capture", "stop_capture has nothing to capture")
	}
}

func parseUint(s string) (uint64, error) {
	return strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64)
}

func (b *builder) alternatives(a *pAlts) *Alternatives {
	out := &Alternatives{Pos: posOf(a.Pos)}
	if b.depth+1 >= maxNesting {
		b.fail(out.Pos, cNesting, "move inner groups to rules of their own", "groups are nested more than %d deep", maxNesting-2)
		out.Alts = []*Alternative{{Pos: out.Pos, And: []*Sequence{{Pos: out.Pos}}}}
		return out
	}
	b.depth++
	defer func() { b.depth-- }()
	for _, alt := range a.Alts {
		to := &Alternative{Pos: posOf(alt.Pos), Alias: alt.Alias}
		for _, s := range alt.Seqs {
			seq := &Sequence{Pos: posOf(s.Pos)}
			for _, x := range s.Exprs {
				seq.Exprs = append(seq.Exprs, b.expr(x))
			}
			to.And = append(to.And, seq)
		}
		if alt.If != nil {
			if c := b.condition(alt.If); c != nil && c.Func != "true" {
				to.If = c
			}
		}
		out.Alts = append(out.Alts, to)
	}
	return out
}

func (b *builder) expr(x *pExpr) Expr {
	pos := posOf(x.Pos)
	var out Expr
	switch {
	case x.Group != nil:
		out = &Group{Pos: pos, Body: b.alternatives(x.Group)}
	case x.Maybe != nil:
		out = &Maybe{Pos: pos, Body: b.alternatives(x.Maybe)}
	default:
		out = b.value(x.Value)
	}
	if x.Not {
		setPos(out, Pos{pos.Line, pos.Col + 1})
		out = &Not{Pos: pos, X: out}
	}
	switch {
	case x.Op == "*":
		return &Repeat{Pos: pos, X: out, Max: -1}
	case x.Op == "+":
		return &Repeat{Pos: pos, X: out, Min: 1, Max: -1}
	case x.Op == "?":
		return &Repeat{Pos: pos, X: out, Max: 1}
	case x.Tilde != nil:
		min := b.bound(x.Tilde.Pos, x.Tilde.From)
		max := min
		if x.Tilde.To != "" {
			max = b.bound(x.Tilde.Pos, x.Tilde.To)
		}
		return b.repeat(posOf(x.Tilde.Pos), pos, out, min, max)
	case x.Braces != nil:
		return b.braces(x.Braces, pos, out)
	}
	return out
}

// setPos moves a group behind its tilde; values know their own position.
func setPos(x Expr, p Pos) {
	switch x := x.(type) {
	case *Group:
		x.Pos = p
	case *Maybe:
		x.Pos = p
	}
}

func (b *builder) braces(r *pBraces, pos Pos, x Expr) Expr {
	at := posOf(r.Pos)
	if r.Values != nil {
		b.fail(at, cTemplate, "write one rule for each use; a repetition is x{2,5}", "templates are not supported")
		return x
	}
	if r.From == "" && !r.UpTo {
		b.fail(at, cRepeat, "write {n}, {n,}, {,m} or {n,m}", "a repetition needs a number")
		return x
	}
	min, max := 0, math.MaxInt32
	if r.From != "" {
		min = b.bound(r.Pos, r.From)
	}
	switch to := r.To + r.Most; {
	case to != "":
		max = b.bound(r.Pos, to)
	case !r.Comma && !r.UpTo:
		max = min
	}
	if max == 0 {
		b.fail(at, cRepeat, "leave the expression out", "a repetition in braces cannot end at 0")
		return x
	}
	return b.repeat(at, pos, x, min, max)
}

func (b *builder) bound(p lexer.Position, s string) int {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		b.fail(posOf(p), cRepeat, "write a whole number below 2147483648", "%s cannot be a bound of a repetition", short(s))
	}
	return int(n)
}

func (b *builder) repeat(at, pos Pos, x Expr, min, max int) Expr {
	switch {
	case min < 0:
		b.fail(at, cRepeat, "write a number from 0", "a repetition cannot begin at %d", min)
	case max < min:
		b.fail(at, cRepeat, "put the smaller number first", "a repetition from %d to %d is empty", min, max)
	case max == math.MaxInt32:
		max = -1
	}
	return &Repeat{Pos: pos, X: x, Min: min, Max: max}
}

func (b *builder) value(v *pValue) Expr {
	pos := posOf(v.Pos)
	switch {
	case v.String != nil && v.To != nil:
		from, f1 := b.str(v)
		to, f2 := b.text(pos, *v.To)
		one := func(s string) bool { return utf8.RuneCountInString(s) == 1 }
		switch {
		case f1 || f2:
			b.fail(pos, cRange, `write ("a".."z" | "A".."Z")`, "a range has no flag i")
		case !one(from) || !one(to):
			b.fail(pos, cRange, `write "a".."z"`, "a range goes from one character to one character")
		case from > to:
			b.fail(pos, cRange, "put the smaller character first", "the range from %q to %q is empty", from, to)
		}
		return &Range{Pos: pos, From: from, To: to}
	case v.String != nil:
		s, fold := b.str(v)
		return &Literal{Pos: pos, Value: s, Fold: fold}
	case v.Regexp != nil:
		i := strings.LastIndexByte(*v.Regexp, '/')
		return &Regexp{Pos: pos, Source: (*v.Regexp)[1:i], Flags: (*v.Regexp)[i+1:]}
	case v.Special != nil:
		return &Special{Pos: pos, Text: *v.Special}
	case v.Grammar != nil:
		return &GrammarRef{Pos: pos, Name: (*v.Grammar)[1:]}
	case v.JSON != nil:
		start := b.blockStart(v.Pos, *v.JSON)
		b.json(cJSON, start, *v.JSON)
		return &JSON{Pos: pos, Start: start, Source: *v.JSON}
	case v.Regex != nil:
		b.regexExt(pos, b.blockStart(v.Pos, *v.Regex), *v.Regex)
		return &RegexExt{Pos: pos, Source: *v.Regex}
	case v.Lark != nil:
		return b.nested(pos, v.Lark)
	}
	ref := &Ref{Pos: pos, Name: *v.Name}
	if v.Param != nil {
		ref.Param = b.param(v.Param)
	}
	return ref
}

func (b *builder) nested(pos Pos, n *pNested) Expr {
	if b.depth+1 >= maxNesting {
		b.fail(pos, cNesting, "give the inner grammar a rule of its own", "grammars and groups are nested more than %d deep", maxNesting-2)
		return &Nested{Pos: pos, Grammar: &Grammar{}}
	}
	b.depth++
	defer func() { b.depth-- }()
	return &Nested{Pos: pos, Grammar: b.grammar(n.File, true)}
}

func (b *builder) str(v *pValue) (string, bool) { return b.text(posOf(v.Pos), *v.String) }

// text decodes a string: JSON's escapes and \xHH for U+00HH.
func (b *builder) text(pos Pos, tok string) (s string, fold bool) {
	tok, fold = strings.CutSuffix(tok, "i")
	var q strings.Builder
	for i := 0; i < len(tok); i++ {
		if tok[i] == '\\' {
			if tok[i+1] == 'x' {
				q.WriteString(`\u00`)
			} else {
				q.WriteString(tok[i : i+2])
			}
			i++
			continue
		}
		q.WriteByte(tok[i])
	}
	if i := loneSurrogate(q.String()); i >= 0 {
		b.fail(pos, cString, "write both halves, or the character itself", "half of a surrogate pair is not a character")
		return "", fold
	}
	if err := json.Unmarshal([]byte(q.String()), &s); err != nil {
		b.fail(pos, cString, "", "the string cannot be read: %v", err)
	}
	return s, fold
}

// blockStart finds where the JSON text of the token at p begins.
func (b *builder) blockStart(p lexer.Position, text string) Pos {
	at := strings.Index(b.src[p.Offset:], text)
	return offsetPos(posOf(p), b.src[p.Offset:], at)
}

// offsetPos is the position of text[n:] when text begins at p.
func offsetPos(p Pos, text string, n int) Pos {
	for _, r := range text[:min(max(n, 0), len(text))] {
		if p.Col++; r == '\n' {
			p = Pos{p.Line + 1, 1}
		}
	}
	return p
}
