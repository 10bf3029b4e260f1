package distill

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of an expression.
const (
	maxExprBytes = 4096
	maxExprDepth = 64
)

// Ref names a value: a member of the answer itself, or of what another agent
// answered about it.
type Ref struct {
	Agent string // empty: the answer itself
	Path  []string
}

// String is the reference as it is written.
func (r Ref) String() string {
	s := r.Agent
	if s == "" {
		s = answerRef
	}
	if !isWord(s) {
		s = strconv.Quote(s)
	}
	for _, p := range r.Path {
		if isWord(p) {
			s += "." + p
		} else {
			s += "[" + strconv.Quote(p) + "]"
		}
	}
	return s
}

const answerRef = "answer"

// Expr is a condition on answers, such as
//
//	rater.rating >= 4 and not (answer.section == "sport")
//
// A name stands for an agent whose inputs the answers are; "answer" is the
// answer itself. Members follow after dots or in brackets. Comparisons are
// ==, !=, <, <=, > and >=, of numbers or of texts; they are false where a
// value is missing or the two are not of one kind. A value by itself is true
// unless it is missing, false, null, zero or an empty text.
type Expr struct {
	src  string
	root exprNode
	refs []Ref
}

// String is the expression as it was written.
func (e *Expr) String() string { return e.src }

// Refs are the values it needs.
func (e *Expr) Refs() []Ref { return e.refs }

// exprNode is true, a value or an operation on others.
type exprNode struct {
	op          string // "and", "or", "not", a comparison, "ref" or "value"
	left, right *exprNode
	ref         int
	value       any
}

// ParseExpr reads an expression; errors name the column.
func ParseExpr(src string) (*Expr, error) {
	p := &exprParser{src: src}
	e := &Expr{src: src}
	if err := p.lex(); err != nil {
		return nil, err
	}
	p.refs = &e.refs
	root, err := p.or(0)
	if err == nil && !p.at("") {
		err = p.fail("%q is not expected here", p.tokens[0].text)
	}
	if err != nil {
		return nil, err
	}
	e.root = *root
	return e, nil
}

// ParseRef reads one reference.
func ParseRef(src string) (Ref, error) {
	e, err := ParseExpr(src)
	if err != nil {
		return Ref{}, err
	}
	if e.root.op != "ref" {
		return Ref{}, fmt.Errorf("%q is not one value; write AGENT.MEMBER, for example rater.rating", src)
	}
	return e.refs[0], nil
}

type exprToken struct {
	kind string // "word", "string", "number", an operator, or "" at the end
	text string
	col  int
}

type exprParser struct {
	src    string
	tokens []exprToken
	refs   *[]Ref
}

func (p *exprParser) fail(format string, args ...any) error {
	return fmt.Errorf("column %d of %q: %s", p.tokens[0].col, p.src, fmt.Sprintf(format, args...))
}

var exprOperators = []string{"==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "(", ")", ".", "[", "]"}

func (p *exprParser) lex() error {
	if len(p.src) > maxExprBytes {
		return fmt.Errorf("an expression of %d bytes; at most %d are read", len(p.src), maxExprBytes)
	}
	for i := 0; ; {
		for i < len(p.src) && strings.IndexByte(" \t\r\n", p.src[i]) >= 0 {
			i++
		}
		col := utf8.RuneCountInString(p.src[:i]) + 1
		if i == len(p.src) {
			p.tokens = append(p.tokens, exprToken{"", "the end", col})
			return nil
		}
		rest := p.src[i:]
		t := exprToken{col: col}
		n := 0
		last := ""
		if len(p.tokens) > 0 {
			last = p.tokens[len(p.tokens)-1].kind
		}
		switch c := rest[0]; {
		case (last == "." || last == "[") && c >= '0' && c <= '9': // a place in a list
			for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
				n++
			}
			t.kind, t.text = "number", rest[:n]
		case c == '"' || c == '\'':
			n = closing(rest)
			if n == 0 {
				return fmt.Errorf("column %d of %q: the text has no end; add a %c", col, p.src, c)
			}
			text, err := unquote(rest[:n])
			if err != nil {
				return fmt.Errorf("column %d of %q: %w", col, p.src, err)
			}
			t.kind, t.text = "string", text
		case startsNumber(rest):
			n = 1
			for n < len(rest) && (strings.IndexByte("0123456789.eE", rest[n]) >= 0 || strings.IndexByte("+-", rest[n]) >= 0 && strings.IndexByte("eE", rest[n-1]) >= 0) {
				n++
			}
			t.kind, t.text = "number", rest[:n]
		default:
			for _, op := range exprOperators {
				if strings.HasPrefix(rest, op) {
					t.kind, t.text, n = op, op, len(op)
					break
				}
			}
			if n == 0 {
				n = strings.IndexFunc(rest, func(r rune) bool { return !wordRune(r) })
				if n < 0 {
					n = len(rest)
				}
				t.kind, t.text = "word", rest[:n]
			}
			if n == 0 {
				r, _ := utf8.DecodeRuneInString(rest)
				return fmt.Errorf("column %d of %q: %q is not expected here", col, p.src, r)
			}
		}
		p.tokens = append(p.tokens, t)
		i += n
	}
}

func wordRune(r rune) bool {
	return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

func isWord(s string) bool {
	return s != "" && !slices.Contains([]string{"and", "or", "not", "true", "false", "null"}, s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !wordRune(r) }) && !startsNumber(s)
}

func startsNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

// closing is the length of the quoted text that s begins with, or 0.
func closing(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return 0
}

func unquote(s string) (string, error) {
	if s[0] == '\'' {
		return strings.NewReplacer(`\'`, `'`, `\\`, `\`).Replace(s[1 : len(s)-1]), nil
	}
	var text string
	if err := json.Unmarshal([]byte(s), &text); err != nil {
		return "", errors.New("the text is not written like a JSON string")
	}
	return text, nil
}

func (p *exprParser) at(kinds ...string) bool { return slices.Contains(kinds, p.tokens[0].kind) }

func (p *exprParser) word(words ...string) bool {
	return p.at("word") && slices.Contains(words, p.tokens[0].text)
}

func (p *exprParser) take() exprToken {
	t := p.tokens[0]
	if len(p.tokens) > 1 {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *exprParser) or(depth int) (*exprNode, error) {
	return p.chain(depth, "or", "||", p.and)
}

func (p *exprParser) and(depth int) (*exprNode, error) {
	return p.chain(depth, "and", "&&", p.not)
}

func (p *exprParser) chain(depth int, word, op string, next func(int) (*exprNode, error)) (*exprNode, error) {
	left, err := next(depth)
	for err == nil && (p.word(word) || p.at(op)) {
		p.take()
		var right *exprNode
		if right, err = next(depth); err == nil {
			left = &exprNode{op: word, left: left, right: right}
		}
	}
	return left, err
}

func (p *exprParser) not(depth int) (*exprNode, error) {
	if depth > maxExprDepth {
		return nil, p.fail("nested deeper than %d", maxExprDepth)
	}
	if p.word("not") || p.at("!") {
		p.take()
		n, err := p.not(depth + 1)
		return &exprNode{op: "not", left: n}, err
	}
	left, err := p.operand(depth)
	if err != nil || !p.at("==", "!=", "<", "<=", ">", ">=") {
		return left, err
	}
	op := p.take().kind
	right, err := p.operand(depth)
	return &exprNode{op: op, left: left, right: right}, err
}

func (p *exprParser) operand(depth int) (*exprNode, error) {
	t := p.tokens[0]
	switch {
	case p.at("("):
		p.take()
		n, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		if !p.at(")") {
			return nil, p.fail("a ) is missing")
		}
		p.take()
		return n, nil
	case p.at("number"):
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, p.fail("%q is not a number", t.text)
		}
		p.take()
		return &exprNode{op: "value", value: v}, nil
	case p.word("true", "false", "null"):
		p.take()
		return &exprNode{op: "value", value: map[string]any{"true": true, "false": false}[t.text]}, nil
	case p.word("and", "or", "not"):
		return nil, p.fail("a value is expected before %q", t.text)
	case p.at("string") && len(p.tokens) > 1 && p.tokens[1].kind != "." && p.tokens[1].kind != "[":
		p.take()
		return &exprNode{op: "value", value: t.text}, nil
	case p.at("word", "string"):
		return p.reference()
	}
	return nil, p.fail("a value is expected, not %s", quoteToken(t))
}

func quoteToken(t exprToken) string {
	if t.kind == "" {
		return t.text
	}
	return strconv.Quote(t.text)
}

func (p *exprParser) reference() (*exprNode, error) {
	var ref Ref
	if name := p.take().text; name != answerRef {
		ref.Agent = name
	}
	for p.at(".", "[") {
		bracket := p.take().kind == "["
		if !p.at("word", "number") && !(bracket && p.at("string")) {
			return nil, p.fail("a member's name is expected, not %s", quoteToken(p.tokens[0]))
		}
		ref.Path = append(ref.Path, p.take().text)
		if bracket {
			if !p.at("]") {
				return nil, p.fail("a ] is missing")
			}
			p.take()
		}
	}
	at := slices.IndexFunc(*p.refs, func(r Ref) bool { return r.Agent == ref.Agent && slices.Equal(r.Path, ref.Path) })
	if at < 0 {
		at = len(*p.refs)
		*p.refs = append(*p.refs, ref)
	}
	return &exprNode{op: "ref", ref: at}, nil
}

// Eval decides the expression; get returns the values of Refs, by index.
func (e *Expr) Eval(get func(ref int) (any, bool)) bool { return truth(e.root.eval(get)) }

// missing is a value that is not there; JSON's null is nil.
type missing struct{}

func (n *exprNode) eval(get func(int) (any, bool)) any {
	switch n.op {
	case "value":
		return n.value
	case "ref":
		if v, ok := get(n.ref); ok {
			return plainValue(v)
		}
		return missing{}
	case "not":
		return !truth(n.left.eval(get))
	case "and":
		return truth(n.left.eval(get)) && truth(n.right.eval(get))
	case "or":
		return truth(n.left.eval(get)) || truth(n.right.eval(get))
	}
	return compare(n.op, n.left.eval(get), n.right.eval(get))
}

func plainValue(v any) any {
	if n, ok := v.(json.Number); ok {
		f, err := n.Float64()
		if err != nil {
			return n.String()
		}
		return f
	}
	return v
}

func truth(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	case nil, missing:
		return false
	}
	return true
}

func compare(op string, a, b any) bool {
	order := 0
	switch x := a.(type) {
	case float64:
		y, ok := b.(float64)
		if !ok {
			return op == "!=" && present(b)
		}
		switch {
		case x < y:
			order = -1
		case x > y:
			order = 1
		}
	case string:
		y, ok := b.(string)
		if !ok {
			return op == "!=" && present(b)
		}
		order = strings.Compare(x, y)
	case bool, nil:
		if !present(b) {
			return false
		}
		if isList(b) || a != b {
			return op == "!="
		}
		return op == "=="
	default: // missing, an object or a list
		return false
	}
	switch op {
	case "==":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func present(v any) bool { return v != any(missing{}) }

func isList(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// valueAt follows a path of members into an answer. An answer that is no JSON
// is one text.
func valueAt(answer string, path []string) (any, bool) {
	v, ok := decodeJSON(answer)
	if !ok {
		v = answer
	}
	for _, p := range path {
		switch x := v.(type) {
		case map[string]any:
			if v, ok = x[p]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// decodeJSON reads text as one JSON value, numbers as they are written.
func decodeJSON(text string) (any, bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil, false
	}
	if _, err := dec.Token(); err == nil {
		return nil, false
	}
	return v, true
}
