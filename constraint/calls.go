package constraint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"agentgraph/constraint/internal/jsontree"
	"agentgraph/constraint/internal/llg"
)

// ToolSchema is a tool as calls of it are held to.
type ToolSchema struct {
	Name string
	// Arguments is its compiled JSON Schema.
	Arguments *Constraint
}

// WithCalls widens a promise: what is generated is one well-formed call of one
// of the tools, or the answer. A nil answer is free text that does not begin
// with a call; without tools that alone is left. The result makes matchers;
// its Validate is that of the answer, and finished text is told apart by who
// asked for it.
func WithCalls(answer *Constraint, calls CallFormat, tools []ToolSchema) (*Constraint, error) {
	if answer != nil && len(tools) == 0 {
		return answer, nil
	}
	refuse := func(r *Refusal) error {
		if answer != nil {
			return answer.refuse(r)
		}
		return r
	}
	if !llg.Built {
		return nil, refuse(&Refusal{Reason: ErrNotBuilt.Error(), NotNative: true})
	}
	out := &Constraint{compiled: &compiled{caps: digitCaps{significantDigits, significantDigits}, callGate: calls.Opener()}}
	if answer == nil {
		opt, _ := Options{}.orDefault() // the zero value is right
		out.spec, out.opt, out.judge = Spec{Kind: LLG}, opt, noJudge{}
	} else {
		out.spec, out.sha, out.opt, out.judge, out.unmasked = answer.spec, answer.sha, answer.opt, answer.judge, answer.unmasked
		if answer.spec.Kind == JSON {
			out.caps, out.callGate = answer.caps, ""
		}
	}
	for _, t := range tools {
		out.caps.integer = max(out.caps.integer, t.Arguments.caps.integer)
		out.caps.fraction = max(out.caps.fraction, t.Arguments.caps.fraction)
	}
	var last *Refusal
	for _, split := range []bool{false, true} {
		g := callGrammar{format: calls, split: split}
		if r := g.build(answer, tools); r != nil {
			return nil, refuse(r)
		}
		out.grammar = grammarKey{llg.LLGuidance, g.text()}
		out.onVocabulary = func(v *Vocabulary) grammarKey {
			ids := v.specials(calls.Marks())
			if len(ids) == 0 || len(tools) == 0 {
				return out.grammar
			}
			g := callGrammar{format: calls, split: split, marks: ids}
			if r := g.build(answer, tools); r != nil {
				return out.grammar // it was built above
			}
			return grammarKey{llg.LLGuidance, g.text()}
		}
		if answer == nil {
			return out, nil
		}
		if last = out.spares(answer, calls, tools); last == nil {
			return out, nil
		}
	}
	return nil, refuse(last)
}

// The lexer of the engine takes the longest piece: an answer that begins like
// a call and is cut into other pieces than the call would be lost. spares
// walks along each call and sees to it that nothing of the answer is. What it
// finds is kept.
func (c *Constraint) spares(answer *Constraint, calls CallFormat, tools []ToolSchema) *Refusal {
	f := sparedCache.get(c.grammar, func() *spared { return new(spared) })
	f.once.Do(func() { f.refusal = c.walkCalls(answer, calls, tools) })
	return f.refusal
}

type spared struct {
	once    sync.Once
	refusal *Refusal
}

var sparedCache = newCache[grammarKey, *spared](keptConstraints, func(*spared) {})

func (c *Constraint) walkCalls(answer *Constraint, calls CallFormat, tools []ToolSchema) *Refusal {
	v, err := ByteVocabulary()
	if err != nil {
		return &Refusal{Reason: err.Error()}
	}
	lost := &Refusal{Construct: "tools", Capability: true,
		Reason: fmt.Sprintf("an answer may begin like the call of a tool in the format %s, and cannot be told from one", calls),
		Hint:   "take another tool_format"}
	for _, t := range tools {
		before, _ := calls.Around(t.Name)
		ok, err := sameAlong(v, answer, c, before)
		var e *llg.Error
		switch {
		case errors.As(err, &e):
			return engineRefusal(answer.spec.Kind, answer.spec.Source, e)
		case err != nil:
			return &Refusal{Reason: err.Error()}
		case !ok:
			return lost
		}
	}
	return nil
}

// sameAlong reports that wide allows what narrow allows at every place along
// text, as far as narrow follows it.
func sameAlong(v *Vocabulary, narrow, wide *Constraint, text string) (bool, error) {
	a, err := narrow.NewMatcher(v)
	if err != nil {
		return false, err
	}
	defer a.Close()
	b, err := wide.NewMatcher(v)
	if err != nil {
		return false, err
	}
	defer b.Close()
	maskA, maskB := make([]uint32, v.MaskWords()), make([]uint32, v.MaskWords())
	for i := range len(text) {
		if err := a.Mask(maskA); err != nil {
			return false, err
		}
		if err := b.Mask(maskB); err != nil {
			return false, err
		}
		for w := range maskA {
			if maskA[w]&^maskB[w] != 0 {
				return false, nil
			}
		}
		t := uint32(text[i])
		if maskA[t/32]&(1<<(t%32)) == 0 || maskB[t/32]&(1<<(t%32)) == 0 {
			return true, nil
		}
		if err := a.Accept(t); err != nil {
			return false, err
		}
		if err := b.Accept(t); err != nil {
			return false, err
		}
		if a.Stopped() {
			return true, nil
		}
	}
	return true, nil
}

// noJudge stands where text is free.
type noJudge struct{}

func (noJudge) judge(context.Context, string) []Diagnostic { return nil }

// callGrammar puts the combined grammar together: a Lark grammar on top, the
// answer and the arguments of each tool as grammars of their own.
type callGrammar struct {
	format CallFormat
	split  bool              // cut a call where JSON is cut
	marks  map[string]uint32 // control tokens of the vocabulary
	starts []string          // alternatives of start
	rules  []string
	subs   []string // further grammars, as JSON
	more   string   // members beside "grammars"
	n      int
}

const (
	answerGrammar = "agentgraph_answer"
	argsGrammar   = "agentgraph_args_"
)

func (g *callGrammar) build(answer *Constraint, tools []ToolSchema) *Refusal {
	if answer == nil {
		g.free()
	} else if r := g.answer(answer); r != nil {
		return r
	}
	for _, t := range tools {
		if err := g.tool(t); err != nil {
			return &Refusal{Reason: err.Error()}
		}
	}
	return nil
}

// free is the answer without a schema: any text that does not begin with a
// call, also not behind spaces.
func (g *callGrammar) free() {
	opener := larkRegexText(regexp.QuoteMeta(g.format.Opener()))
	g.starts = append(g.starts, "text")
	g.rules = append(g.rules, "text: TEXT", `TEXT: /(.|\n)*/ & ~/[ \t\r\n]*`+opener+`(.|\n)*/`)
}

func (g *callGrammar) answer(c *Constraint) *Refusal {
	name := answerGrammar
	switch c.grammar.kind {
	case llg.JSONSchema:
		g.sub(name, "json_schema", c.grammar.text)
	case llg.Lark:
		g.sub(name, "lark_grammar", jsontree.Quote(c.grammar.text))
	case llg.Regex:
		text, r := larkRegex(c.grammar.text)
		if r != nil {
			return r
		}
		g.sub(name, "lark_grammar", jsontree.Quote("start: "+text))
	case llg.LLGuidance:
		tree, err := jsontree.Parse([]byte(c.grammar.text), jsontree.Bounds{Depth: c.opt.Limits.SchemaDepth, Nodes: c.opt.Limits.SchemaNodes})
		if err != nil {
			return &Refusal{Reason: err.Error()}
		}
		list := tree.Get("grammars").Items
		if n := list[0].Get("name"); n != nil && n.Kind == jsontree.String {
			name = n.Str
		} else {
			list[0].Set("name", jsontree.Raw(jsontree.Quote(name)))
		}
		for _, item := range list {
			g.subs = append(g.subs, string(item.Bytes()))
		}
		if n := tree.Get("max_tokens"); n != nil {
			g.more = `,"max_tokens":` + n.Text()
		}
	}
	g.starts = append(g.starts, "@"+name)
	return nil
}

func (g *callGrammar) tool(t ToolSchema) error {
	tree, err := jsontree.Parse([]byte(t.Arguments.grammar.text), jsontree.Bounds{Depth: 1 << 16, Nodes: 1 << 24})
	if err != nil {
		return fmt.Errorf("tool %s: %w", t.Name, err)
	}
	// Models write arguments as they read them in their templates: a space
	// behind each ':' and ','.
	if x := tree.Get("x-guidance"); x != nil {
		for key, sep := range map[string]string{"key_separator": ": ", "item_separator": ", "} {
			if !x.Has(key) {
				x.Set(key, jsontree.Raw(jsontree.Quote(sep)))
			}
		}
	}
	n := strconv.Itoa(g.n)
	g.n++
	g.sub(argsGrammar+n, "json_schema", string(tree.Bytes()))
	before, after := g.format.Around(t.Name)
	rule := "call_" + n + ":"
	if g.split {
		if rest, ok := strings.CutPrefix(before, `{"name"`); ok {
			rule += ` "{" "\"name\""`
			before = rest
		}
	}
	rule += g.literal(before) + " @" + argsGrammar + n + g.literal(after)
	g.rules = append(g.rules, rule)
	g.starts = append(g.starts, "call_"+n)
	return nil
}

// literal writes a text; a control token stands for its name at the beginning
// and at the end. Between them is the name of a tool, whatever that is.
func (g *callGrammar) literal(text string) string {
	first, last := "", ""
	for mark, id := range g.marks {
		if rest, ok := strings.CutPrefix(text, mark); ok && first == "" {
			first, text = fmt.Sprintf(" <[%d]>", id), rest
		}
	}
	for mark, id := range g.marks {
		if rest, ok := strings.CutSuffix(text, mark); ok && last == "" {
			last, text = fmt.Sprintf(" <[%d]>", id), rest
		}
	}
	if text != "" {
		text = " " + jsontree.Quote(text)
	}
	return first + text + last
}

func (g *callGrammar) sub(name, key, value string) {
	g.subs = append(g.subs, `{"name":`+jsontree.Quote(name)+`,"`+key+`":`+value+`}`)
}

func (g *callGrammar) text() string {
	var b strings.Builder
	b.WriteString("start: " + strings.Join(g.starts, " | ") + "\n")
	for _, r := range g.rules {
		b.WriteString(r + "\n")
	}
	return `{"grammars":[` + strings.Join(append([]string{`{"lark_grammar":` + jsontree.Quote(b.String()) + `}`}, g.subs...), ",") + `]` + g.more + `}`
}

// larkRegex writes a regular expression as a terminal of the Lark dialect.
func larkRegex(src string) (string, *Refusal) {
	if verbose.MatchString(src) && strings.ContainsAny(src, "\r\n") {
		return "", &Refusal{Construct: "(?x)", Reason: "an expression over several lines cannot stand beside tools", Hint: "write it in one line, or use no tools"}
	}
	return "/" + larkRegexText(src) + "/", nil
}

var verbose = regexp.MustCompile(`\(\?[a-zA-Z]*x`)

// larkRegexText escapes what would end a terminal.
func larkRegexText(src string) string {
	var b bytes.Buffer
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\\' && i+1 < len(src) && src[i+1] != '\n' && src[i+1] != '\r':
			b.WriteByte(c)
			i++
			b.WriteByte(src[i])
		case c == '\\': // an escaped line end is a line end
		case c == '/':
			b.WriteString(`\/`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
