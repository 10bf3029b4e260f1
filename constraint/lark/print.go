package lark

import (
	"fmt"
	"strconv"
	"strings"
)

// String prints the grammar, one item a line, so that parsing the text again
// gives the same tree but for positions. Comments are not kept.
func (g *Grammar) String() string {
	var p printer
	p.grammar(g)
	return p.String()
}

type printer struct{ strings.Builder }

func (p *printer) grammar(g *Grammar) {
	for _, it := range g.Items {
		p.item(it)
		p.WriteByte('\n')
	}
}

func (p *printer) item(it Item) {
	switch it := it.(type) {
	case *Rule:
		p.rule(it)
	case *Terminal:
		p.WriteString(it.Name + ":")
		p.alternatives(it.Body)
	case *Ignore:
		p.WriteString("%ignore")
		p.alternatives(it.Body)
	case *Import:
		p.imports(it)
	case *Options:
		p.WriteString("%llguidance " + it.Source)
	}
}

func (p *printer) imports(im *Import) {
	if len(im.Names) == 1 {
		n := im.Names[0]
		p.WriteString("%import common." + n.Name)
		if n.Alias != "" {
			p.WriteString(" -> " + n.Alias)
		}
		return
	}
	var list []string
	for _, n := range im.Names {
		list = append(list, n.Name)
	}
	p.WriteString("%import common (" + strings.Join(list, ", ") + ")")
}

func (p *printer) rule(r *Rule) {
	if r.Keep {
		p.WriteByte('!')
	}
	if r.Inline {
		p.WriteByte('?')
	}
	p.WriteString(r.Name)
	if r.Param {
		p.WriteString("::_")
	}
	for i, a := range r.Attrs {
		p.WriteString(map[bool]string{true: "[", false: ", "}[i == 0] + a.Key)
		switch a.Key {
		case "capture":
			if a.Named {
				p.WriteString("=" + quote(a.Text))
			}
		case "stop_capture":
			p.WriteString("=" + quote(a.Text))
		case "stop", "suffix":
			p.WriteString("=")
			p.expr(a.Value)
		case "max_tokens":
			p.WriteString("=" + strconv.FormatUint(a.Tokens, 10))
		case "temperature":
			p.WriteString("=" + strconv.FormatFloat(a.Number, 'g', -1, 32))
		}
		if i == len(r.Attrs)-1 {
			p.WriteByte(']')
		}
	}
	p.WriteByte(':')
	p.alternatives(r.Body)
}

// alternatives begins with a space before everything it prints.
func (p *printer) alternatives(a *Alternatives) {
	for i, alt := range a.Alts {
		if i > 0 {
			p.WriteString(" |")
		}
		for j, seq := range alt.And {
			if j > 0 {
				p.WriteString(" &")
			}
			for _, x := range seq.Exprs {
				p.WriteByte(' ')
				p.expr(x)
			}
		}
		if alt.Alias != "" {
			p.WriteString(" -> " + alt.Alias)
		}
		if alt.If != nil {
			p.WriteString(" %if ")
			p.param(alt.If)
		}
	}
}

func (p *printer) expr(x Expr) {
	switch x := x.(type) {
	case *Literal:
		p.WriteString(quote(x.Value))
		if x.Fold {
			p.WriteByte('i')
		}
	case *Regexp:
		p.WriteString("/" + x.Source + "/" + x.Flags)
	case *Range:
		p.WriteString(quote(x.From) + ".." + quote(x.To))
	case *Ref:
		p.WriteString(x.Name)
		if x.Param != nil {
			p.WriteString("::")
			p.param(x.Param)
		}
	case *Special:
		p.WriteString(x.Text)
	case *GrammarRef:
		p.WriteString("@" + x.Name)
	case *JSON:
		p.WriteString("%json " + x.Source)
	case *RegexExt:
		p.WriteString("%regex " + x.Source)
	case *Nested:
		p.WriteString("%lark {\n")
		p.grammar(x.Grammar)
		p.WriteByte('}')
	case *Group:
		p.WriteByte('(')
		p.alternatives(x.Body)
		p.WriteString(" )")
	case *Maybe:
		p.WriteByte('[')
		p.alternatives(x.Body)
		p.WriteString(" ]")
	case *Not:
		p.WriteByte('~')
		p.expr(x.X)
	case *Repeat:
		p.expr(x.X)
		p.repeat(x.Min, x.Max)
	}
}

func (p *printer) repeat(min, max int) {
	switch {
	case min == 0 && max < 0:
		p.WriteByte('*')
	case min == 1 && max < 0:
		p.WriteByte('+')
	case min == 0 && max == 1:
		p.WriteByte('?')
	case max < 0:
		fmt.Fprintf(p, "{%d,}", min)
	default:
		// Braces cannot end at 0, this can.
		fmt.Fprintf(p, "~%d..%d", min, max)
	}
}

func (p *printer) param(x *Param) {
	switch x.Func {
	case "":
		p.WriteString(strconv.FormatUint(x.Number, 10))
		return
	case "[]":
		fmt.Fprintf(p, "[%d:%d]", x.From, x.To)
		return
	}
	p.WriteString(x.Func)
	for i, a := range x.Args {
		p.WriteString(map[bool]string{true: "(", false: ", "}[i == 0])
		p.param(a)
		if i == len(x.Args)-1 {
			p.WriteByte(')')
		}
	}
}

// quote writes s with the escapes of the dialect.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
