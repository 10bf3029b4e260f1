package validate

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// Pattern is a compiled regular expression for whole answers. It is safe for
// concurrent use.
type Pattern struct {
	p       *pattern
	spelled string
}

// Spelled is the expression with every class written out, in Rust's syntax.
// It means the same to an engine that knows another version of Unicode.
func (p *Pattern) Spelled() string { return p.spelled }

// Regex compiles an expression that has to match a whole answer. Its syntax
// and meaning are those of Rust's regex crate, in which masks are made: \d,
// \w and \s are Unicode, '.' is any character but a newline, classes may be
// nested and cut ([a-z&&[^aeiou]]). What that syntax knows and a mask cannot
// hold is refused: word boundaries, anchors inside, look-around and
// back-references. The error is a *SchemaError whose Construct is "regex".
//
// The expression is read into a tree with all classes worked out, and that
// tree is written for regexp2, so that no second reading of the syntax can
// differ. Greediness does not matter to a whole match and is dropped.
func Regex(source string) (*Pattern, error) {
	if !utf8.ValidString(source) {
		return nil, regexError(source, firstInvalid(source), "the expression is not UTF-8")
	}
	if len(source) > maxPatternBytes {
		return nil, regexError(source, 0, "the expression is longer than 65,536 bytes")
	}
	p := &rustParser{src: source}
	tree, err := p.parse()
	if err != nil {
		return nil, err
	}
	w := &rustWriter{}
	w.raw(`\A(?:`)
	w.node(tree, false)
	w.raw(`)\z`)
	if w.b.Len() > 16*maxPatternBytes {
		return nil, regexError(source, 0, "the expression's character classes are too large together")
	}
	re, cerr := regexp2.Compile(w.b.String(), regexp2.OptionMaxBacktrackingStackSize(matchStack))
	if cerr != nil {
		return nil, regexError(source, 0, "the expression cannot be used: "+reason(cerr))
	}
	re.MatchTimeout = DefaultMatchTimeout
	body := strings.TrimSuffix(strings.TrimPrefix(w.b.String(), `\A(?:`), `)\z`)
	return &Pattern{&pattern{re}, strings.ReplaceAll(body, "(?!)", `[^\x{0}-\x{10ffff}]`)}, nil
}

func regexError(source string, off int, reason string) *SchemaError {
	line, col := position(source, off)
	return &SchemaError{Construct: "regex", Reason: reason, Line: line, Column: col}
}

// Validate judges a finished answer: nil when the whole of it matches.
func (p *Pattern) Validate(ctx context.Context, text string) []Finding {
	if ctx.Err() != nil {
		return []Finding{{Code: ValidationWork}}
	}
	if !utf8.ValidString(text) {
		return []Finding{{Code: GrammarViolation}}
	}
	ok, err := p.p.match(text)
	switch {
	case err != nil:
		return []Finding{{Code: ValidationWork}}
	case !ok:
		return []Finding{{Code: GrammarViolation}}
	}
	return nil
}

// rustNode is a part of an expression.
type rustNode struct {
	op       rustOp
	set      runeSet // class
	subs     []*rustNode
	min, max int // repeat; max -1: no limit
	off      int
}

type rustOp uint8

const (
	opEmpty rustOp = iota
	opClass
	opConcat
	opAlternate
	opRepeat
	opStart // ^ or \A
	opEnd   // $ or \z
)

// rustFlags are the inline flags that matter here.
type rustFlags struct{ fold, multi, dotAll, verbose bool }

type rustParser struct {
	src   string
	pos   int
	flags rustFlags
	depth int
	nodes int
	// lineBreak is set when a line break was skipped.
	lineBreak bool
}

func (p *rustParser) fail(off int, format string, args ...any) *SchemaError {
	return regexError(p.src, off, fmt.Sprintf(format, args...))
}

func (p *rustParser) parse() (*rustNode, *SchemaError) {
	n, err := p.alternation()
	if err != nil {
		return nil, err
	}
	if p.pos < len(p.src) {
		return nil, p.fail(p.pos, "')' has no '('")
	}
	if p.lineBreak {
		return nil, p.fail(strings.IndexByte(p.src, '\n'), "an expression with flag x has to stand on one line, without comments")
	}
	if err := anchors(p, n, true, true); err != nil {
		return nil, err
	}
	return n, nil
}

// anchors refuses anchors in the middle: they could never hold, or are what a
// mask cannot express.
func anchors(p *rustParser, n *rustNode, start, end bool) *SchemaError {
	switch n.op {
	case opStart, opEnd:
		if n.op == opStart && !start || n.op == opEnd && !end {
			return p.fail(n.off, "an anchor may only stand at the start or the end of the expression; the whole answer is matched anyway, so leave it out")
		}
	case opRepeat:
		return anchors(p, n.subs[0], false, false)
	case opAlternate:
		for _, s := range n.subs {
			if err := anchors(p, s, start, end); err != nil {
				return err
			}
		}
	case opConcat:
		first, last := 0, len(n.subs)-1
		for first < len(n.subs) && n.subs[first].op == opStart {
			first++
		}
		for last >= 0 && n.subs[last].op == opEnd {
			last--
		}
		for i, s := range n.subs {
			if err := anchors(p, s, start && i <= first, end && i >= last); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *rustParser) more() bool { return p.pos < len(p.src) }

func (p *rustParser) peek() rune {
	if !p.more() {
		return -1
	}
	r, _ := utf8.DecodeRuneInString(p.src[p.pos:])
	return r
}

func (p *rustParser) next() rune {
	r, n := utf8.DecodeRuneInString(p.src[p.pos:])
	p.pos += n
	return r
}

// skip passes over white space and comments where the x flag is on. The engine
// that makes masks takes a line break for a character of the answer even
// there, so it is refused (see lineBreak).
func (p *rustParser) skip() {
	for p.flags.verbose && p.more() {
		switch r := p.peek(); {
		case r == '\n':
			p.lineBreak = true
			p.next()
		case whiteSpace.has(r):
			p.next()
		case r == '#':
			for p.more() && p.peek() != '\n' {
				p.next()
			}
		default:
			return
		}
	}
}

func (p *rustParser) alternation() (*rustNode, *SchemaError) {
	saved := p.flags
	defer func() { p.flags = saved }()
	alt := &rustNode{op: opAlternate, off: p.pos}
	for {
		n, err := p.concat()
		if err != nil {
			return nil, err
		}
		alt.subs = append(alt.subs, n)
		if !p.more() || p.peek() != '|' {
			break
		}
		p.next()
	}
	if len(alt.subs) == 1 {
		return alt.subs[0], nil
	}
	return alt, nil
}

func (p *rustParser) concat() (*rustNode, *SchemaError) {
	cat := &rustNode{op: opConcat, off: p.pos}
	for {
		p.skip()
		if !p.more() {
			break
		}
		off := p.pos
		if p.nodes++; p.nodes > maxPatternBytes {
			return nil, p.fail(off, "the expression is too long")
		}
		var n *rustNode
		var err *SchemaError
		switch r := p.peek(); r {
		case '|', ')':
			return single(cat), nil
		case '*', '+', '?', '{':
			if len(cat.subs) == 0 {
				return nil, p.fail(off, "there is nothing to repeat before '%c'", r)
			}
			err = p.repeat(cat)
			if err != nil {
				return nil, err
			}
			continue
		case '(':
			n, err = p.group()
			if n == nil && err == nil {
				continue // flags only
			}
		case '[':
			var set runeSet
			if set, err = p.class(); err == nil {
				n = &rustNode{op: opClass, set: set, off: off}
			}
		case '\\':
			n, err = p.escape()
		case '.':
			p.next()
			set := allRunes
			if !p.flags.dotAll {
				set = set.minus(runeSet{{'\n', '\n'}})
			}
			n = &rustNode{op: opClass, set: set, off: off}
		case '^', '$':
			p.next()
			if p.flags.multi {
				return nil, p.fail(off, "'%c' at line breaks (flag m) cannot be enforced", r)
			}
			n = &rustNode{op: opStart, off: off}
			if r == '$' {
				n.op = opEnd
			}
		default:
			p.next()
			n = p.literal(r, off)
		}
		if err != nil {
			return nil, err
		}
		cat.subs = append(cat.subs, n)
	}
	return single(cat), nil
}

func single(cat *rustNode) *rustNode {
	switch len(cat.subs) {
	case 0:
		cat.op = opEmpty
	case 1:
		return cat.subs[0]
	}
	return cat
}

func (p *rustParser) literal(r rune, off int) *rustNode {
	set := runeSet{{r, r}}
	if p.flags.fold {
		set = set.folded()
	}
	return &rustNode{op: opClass, set: set, off: off}
}

const maxRepeat = 1 << 20

// repeat wraps the last part of cat into a repetition.
func (p *rustParser) repeat(cat *rustNode) *SchemaError {
	off := p.pos
	n := &rustNode{op: opRepeat, off: off, max: -1}
	switch p.next() {
	case '?':
		n.max = 1
	case '+':
		n.min = 1
	case '{':
		lo, ok := p.decimal()
		if !ok {
			return p.fail(off, "a repetition is {n}, {n,} or {n,m}; write '\\{' for a brace")
		}
		n.min, n.max = lo, lo
		p.skip()
		if p.peek() == ',' {
			p.next()
			p.skip()
			n.max = -1
			if p.peek() != '}' {
				if n.max, ok = p.decimal(); !ok {
					return p.fail(off, "a repetition is {n}, {n,} or {n,m}; write '\\{' for a brace")
				}
			}
		}
		p.skip()
		if p.peek() != '}' {
			return p.fail(off, "a repetition is {n}, {n,} or {n,m}; write '\\{' for a brace")
		}
		p.next()
		if n.max >= 0 && n.max < n.min {
			return p.fail(off, "a repetition's upper bound is below its lower one")
		}
	}
	if p.peek() == '?' { // lazy
		p.next()
	}
	last := len(cat.subs) - 1
	n.subs = []*rustNode{cat.subs[last]}
	cat.subs[last] = n
	return nil
}

func (p *rustParser) decimal() (int, bool) {
	p.skip()
	n, start := 0, p.pos
	for p.more() && digit(p.src[p.pos]) {
		n = n*10 + int(p.src[p.pos]-'0')
		p.pos++
		if n > maxRepeat {
			return 0, false
		}
	}
	return n, p.pos > start
}

// group reads "(…)"; nil, nil stands for flags that hold to the end of the
// enclosing group.
func (p *rustParser) group() (*rustNode, *SchemaError) {
	off := p.pos
	p.next()
	if p.depth++; p.depth > maxGroups {
		return nil, p.fail(off, "groups are nested deeper than 100 levels")
	}
	defer func() { p.depth-- }()
	outer := p.flags
	if p.peek() == '?' {
		p.next()
		switch rest := p.src[p.pos:]; {
		case hasAny(rest, "=", "!", "<=", "<!"):
			return nil, p.fail(off, "look-around cannot be enforced; say the same without it")
		case hasAny(rest, "P=", "P>"):
			return nil, p.fail(off, "back-references cannot be enforced")
		case hasAny(rest, "P<", "<"):
			if err := p.groupName(off); err != nil {
				return nil, err
			}
		default:
			only, err := p.inlineFlags(off)
			if err != nil {
				return nil, err
			}
			if only {
				return nil, nil
			}
		}
	}
	n, err := p.alternation()
	if err != nil {
		return nil, err
	}
	p.flags = outer
	if p.peek() != ')' {
		return nil, p.fail(off, "'(' has no ')'")
	}
	p.next()
	return n, nil
}

func hasAny(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if len(s) >= len(p) && s[:len(p)] == p {
			return true
		}
	}
	return false
}

func (p *rustParser) groupName(off int) *SchemaError {
	for p.next() != '<' {
	}
	start := p.pos
	for p.more() && p.peek() != '>' {
		p.next()
	}
	name := p.src[start:p.pos]
	if !p.more() || name == "" {
		return p.fail(off, "a group's name stands in '<' and '>'")
	}
	p.next()
	if name == "stop" {
		return p.fail(off, "a group named 'stop' is a look-ahead to the engine; choose another name")
	}
	return nil
}

// inlineFlags reads "i-s)" or "i-s:".
func (p *rustParser) inlineFlags(off int) (only bool, err *SchemaError) {
	on, seen := true, false
	for p.more() {
		switch p.next() {
		case 'i':
			p.flags.fold = on
		case 'm':
			p.flags.multi = on
		case 's':
			p.flags.dotAll = on
		case 'x':
			p.flags.verbose = on
		case 'U': // swaps greediness
		case 'u':
			if !on {
				return false, p.fail(off, "matching bytes (flag -u) is not supported; answers are text")
			}
		case '-':
			if !on {
				return false, p.fail(off, "the flags hold two '-'")
			}
			on, seen = false, false
			continue
		case ':':
			if !on && !seen {
				return false, p.fail(off, "'-' is not followed by a flag")
			}
			return false, nil
		case ')':
			if !seen {
				return false, p.fail(off, "the group holds no flag")
			}
			return true, nil
		default:
			return false, p.fail(off, "a group that starts with '(?' goes on with flags out of i, m, s, x, u, U, or with a name as in '(?<name>'")
		}
		seen = true
	}
	return false, p.fail(off, "'(' has no ')'")
}
