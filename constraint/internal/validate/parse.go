package validate

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// parseError is why a text is not an acceptable JSON value.
type parseError struct {
	code   string
	reason string
	off    int
	at     string // bounded pointer to the value that was being read
}

func (e *parseError) Error() string { return e.reason }

// parser reads one JSON text in one pass: grammar, UTF-8, surrogates,
// duplicate members and bounds. It is strict RFC 8259.
type parser struct {
	text            string
	pos             int
	nodes, maxNodes int
	maxDepth        int
	maxNumber       int // bytes of one number; 0: any
	path            []step
	stack           []value  // values of the containers being read
	names           []string // their member names
	offs            []int32
	// memory to carve from
	values    []value
	nameSpace []string
	offSpace  []int32
	objects   []object
}

// step is one token of an instance pointer.
type step struct {
	name  string
	index int // used when name is not
	named bool
}

func (p *parser) fail(code, reason string, off int) *parseError {
	return &parseError{code, reason, off, instancePointer(p.path)}
}

// parse reads the whole text.
func (p *parser) parse() (*value, *parseError) {
	if !utf8.ValidString(p.text) {
		return nil, p.fail(MalformedJSON, "the text is not UTF-8", firstInvalid(p.text))
	}
	v := new(value)
	p.space()
	if err := p.value(v, 0); err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(p.text) {
		return nil, p.fail(MalformedJSON, "there is text after the JSON value", p.pos)
	}
	return v, nil
}

func firstInvalid(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return len(s)
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\n', '\r', '\t':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) value(v *value, depth int) *parseError {
	if p.nodes++; p.nodes > p.maxNodes {
		return p.fail(JSONStructure, "the text holds more than "+strconv.Itoa(p.maxNodes)+" JSON values", p.pos)
	}
	if p.pos >= len(p.text) {
		return p.fail(MalformedJSON, "the text ends where a JSON value should be", p.pos)
	}
	v.off = int32(p.pos)
	switch c := p.text[p.pos]; {
	case c == '{' || c == '[':
		if depth >= p.maxDepth {
			return p.fail(JSONStructure, "the text is nested deeper than "+strconv.Itoa(p.maxDepth)+" levels", p.pos)
		}
		if c == '{' {
			return p.object(v, depth+1)
		}
		return p.array(v, depth+1)
	case c == '"':
		v.kind = kString
		s, runes, err := p.string()
		v.text, v.runes = s, int32(runes)
		return err
	case c == '-' || c >= '0' && c <= '9':
		return p.number(v)
	case strings.HasPrefix(p.text[p.pos:], "null"):
		v.kind = kNull
		p.pos += 4
	case strings.HasPrefix(p.text[p.pos:], "true"):
		v.kind = kTrue
		p.pos += 4
	case strings.HasPrefix(p.text[p.pos:], "false"):
		v.kind = kFalse
		p.pos += 5
	default:
		return p.fail(MalformedJSON, "no JSON value starts here", p.pos)
	}
	return nil
}

// carve copies src into memory of its exact size. Small copies share one
// allocation.
func carve[T any](arena *[]T, src []T) []T {
	const chunk = 256
	n := len(src)
	if n > len(*arena) {
		if n > chunk/4 {
			return append(make([]T, 0, n), src...)
		}
		*arena = make([]T, chunk)
	}
	out := (*arena)[:n:n]
	*arena = (*arena)[n:]
	copy(out, src)
	return out
}

// take moves the values read since mark off the stack.
func (p *parser) take(mark int) []value {
	items := carve(&p.values, p.stack[mark:])
	clear(p.stack[mark:])
	p.stack = p.stack[:mark]
	return items
}

func (p *parser) array(v *value, depth int) *parseError {
	v.kind = kArray
	p.pos++
	mark := len(p.stack)
	p.space()
	if p.pos < len(p.text) && p.text[p.pos] == ']' {
		p.pos++
		return nil
	}
	p.path = append(p.path, step{})
	for i := 0; ; i++ {
		p.path[len(p.path)-1].index = i
		p.space()
		var item value
		if err := p.value(&item, depth); err != nil {
			return err
		}
		p.stack = append(p.stack, item)
		p.space()
		if p.pos < len(p.text) {
			switch p.text[p.pos] {
			case ',':
				p.pos++
				continue
			case ']':
				p.pos++
				p.path = p.path[:len(p.path)-1]
				v.items = p.take(mark)
				return nil
			}
		}
		p.path = p.path[:len(p.path)-1]
		return p.fail(MalformedJSON, "an array goes on with ',' or ends with ']'", p.pos)
	}
}

func (p *parser) object(v *value, depth int) *parseError {
	v.kind = kObject
	v.obj = &carve(&p.objects, []object{{}})[0]
	p.pos++
	mark, nameMark := len(p.stack), len(p.names)
	p.space()
	if p.pos < len(p.text) && p.text[p.pos] == '}' {
		p.pos++
		return nil
	}
	for {
		p.space()
		if p.pos >= len(p.text) || p.text[p.pos] != '"' {
			return p.fail(MalformedJSON, "a member name in double quotes should be here", p.pos)
		}
		off := p.pos
		name, _, err := p.string()
		if err != nil {
			return err
		}
		p.path = append(p.path, step{name: name, named: true})
		if p.repeated(v.obj, name, nameMark) {
			return p.fail(JSONStructure, "the member stands twice in its object", off)
		}
		p.names = append(p.names, name)
		p.offs = append(p.offs, int32(off))
		p.space()
		if p.pos >= len(p.text) || p.text[p.pos] != ':' {
			return p.fail(MalformedJSON, "':' should follow a member name", p.pos)
		}
		p.pos++
		p.space()
		var item value
		if err := p.value(&item, depth); err != nil {
			return err
		}
		p.stack = append(p.stack, item)
		p.path = p.path[:len(p.path)-1]
		p.space()
		if p.pos < len(p.text) {
			switch p.text[p.pos] {
			case ',':
				p.pos++
				continue
			case '}':
				p.pos++
				v.items = p.take(mark)
				v.obj.names = carve(&p.nameSpace, p.names[nameMark:])
				v.obj.offs = carve(&p.offSpace, p.offs[nameMark:])
				p.names, p.offs = p.names[:nameMark], p.offs[:nameMark]
				return nil
			}
		}
		return p.fail(MalformedJSON, "an object goes on with ',' or ends with '}'", p.pos)
	}
}

// repeated reports whether the object that starts at mark has the name
// already, and notes it.
func (p *parser) repeated(o *object, name string, mark int) bool {
	seen := p.names[mark:]
	if o.index == nil && len(seen) < linearLookup {
		for _, n := range seen {
			if n == name {
				return true
			}
		}
		return false
	}
	if o.index == nil {
		o.index = make(map[string]int32, 4*linearLookup)
		for i, n := range seen {
			o.index[n] = int32(i)
		}
	}
	if _, ok := o.index[name]; ok {
		return true
	}
	o.index[name] = int32(len(seen))
	return false
}

func (p *parser) number(v *value) *parseError {
	start := p.pos
	bad := func(reason string) *parseError { return p.fail(MalformedJSON, reason, p.pos) }
	digits := func() bool {
		from := p.pos
		for p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
			p.pos++
		}
		return p.pos > from
	}
	if p.text[p.pos] == '-' {
		p.pos++
	}
	first := p.pos
	if !digits() {
		return bad("a digit should follow '-'")
	}
	if p.text[first] == '0' && p.pos > first+1 {
		p.pos = first
		return bad("a number does not start with 0 and another digit")
	}
	if p.pos < len(p.text) && p.text[p.pos] == '.' {
		p.pos++
		if !digits() {
			return bad("a digit should follow '.'")
		}
	}
	if p.pos < len(p.text) && (p.text[p.pos] == 'e' || p.text[p.pos] == 'E') {
		p.pos++
		if p.pos < len(p.text) && (p.text[p.pos] == '+' || p.text[p.pos] == '-') {
			p.pos++
		}
		if !digits() {
			return bad("a digit should follow an exponent's 'e'")
		}
	}
	if p.maxNumber > 0 && p.pos-start > p.maxNumber {
		return p.fail(JSONStructure, "the number is longer than "+strconv.Itoa(p.maxNumber)+" characters", start)
	}
	if !v.setNumber(p.text[start:p.pos]) {
		return p.fail(JSONStructure, "the number's exponent has more than "+strconv.Itoa(maxExponentDigits)+" digits", start)
	}
	return nil
}

// string reads a string at its opening quote and returns it decoded, with its
// length in code points.
func (p *parser) string() (string, int, *parseError) {
	p.pos++
	start := p.pos
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '"':
			s := p.text[start:p.pos]
			p.pos++
			return s, utf8.RuneCountInString(s), nil
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			return "", 0, p.fail(MalformedJSON, "a control character in a string has to be escaped", p.pos)
		default:
			p.pos++
		}
	}
	return "", 0, p.fail(MalformedJSON, "the string does not end", p.pos)
}

func (p *parser) escaped(start int) (string, int, *parseError) {
	var b strings.Builder
	b.WriteString(p.text[start:p.pos])
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '"':
			p.pos++
			s := b.String()
			return s, utf8.RuneCountInString(s), nil
		case c < 0x20:
			return "", 0, p.fail(MalformedJSON, "a control character in a string has to be escaped", p.pos)
		case c != '\\':
			from := p.pos
			for p.pos < len(p.text) && p.text[p.pos] != '"' && p.text[p.pos] != '\\' && p.text[p.pos] >= 0x20 {
				p.pos++
			}
			b.WriteString(p.text[from:p.pos])
		default:
			r, err := p.escape()
			if err != nil {
				return "", 0, err
			}
			b.WriteRune(r)
		}
	}
	return "", 0, p.fail(MalformedJSON, "the string does not end", p.pos)
}

var simpleEscapes = map[byte]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

func (p *parser) escape() (rune, *parseError) {
	off := p.pos
	if off+1 >= len(p.text) {
		return 0, p.fail(MalformedJSON, "the string does not end", len(p.text))
	}
	c := p.text[off+1]
	if r, ok := simpleEscapes[c]; ok {
		p.pos += 2
		return r, nil
	}
	if c != 'u' {
		return 0, p.fail(MalformedJSON, "JSON has no such escape", off)
	}
	r, ok := p.hex4(off + 2)
	if !ok {
		return 0, p.fail(MalformedJSON, `four hexadecimal digits should follow \u`, off)
	}
	p.pos += 6
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if r < 0xDC00 && strings.HasPrefix(p.text[p.pos:], `\u`) {
		if low, ok := p.hex4(p.pos + 2); ok && low >= 0xDC00 && low <= 0xDFFF {
			p.pos += 6
			return utf16.DecodeRune(r, low), nil
		}
	}
	return 0, p.fail(MalformedJSON, "the escape is half of a surrogate pair", off)
}

func (p *parser) hex4(off int) (rune, bool) {
	if off+4 > len(p.text) {
		return 0, false
	}
	var r rune
	for _, c := range []byte(p.text[off : off+4]) {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
