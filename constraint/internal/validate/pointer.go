package validate

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Bounds on one pointer of a Finding. escapedPointer bounds it as a JSON
// string, where one control character takes six bytes.
const (
	maxPointer     = 256
	escapedPointer = 900
)

// pointerBuilder joins tokens to a JSON pointer and stops before the token
// that would pass the bound.
type pointerBuilder struct {
	b       strings.Builder
	escaped int
	max     int
	full    bool
}

func (p *pointerBuilder) add(token string) {
	if p.full {
		return
	}
	if len(token) > p.max {
		p.full = true
		return
	}
	if strings.ContainsAny(token, "~/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
	}
	quoted := len(quote(token)) - 2
	if p.b.Len()+1+len(token) > p.max || p.escaped+1+quoted > p.max*escapedPointer/maxPointer {
		p.full = true
		return
	}
	p.b.WriteByte('/')
	p.b.WriteString(token)
	p.escaped += 1 + quoted
}

// quote is a JSON string as encoding/json writes it.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// instancePointer is the bounded pointer for a path.
func instancePointer(path []step) string {
	p := pointerBuilder{max: maxPointer}
	for _, s := range path {
		if s.named {
			p.add(s.name)
		} else {
			p.add(strconv.Itoa(s.index))
		}
	}
	return p.b.String()
}

// place is where a value stands in a schema's source.
type place struct {
	parent *place
	token  string
	v      *value
	res    *resource // the schema resource it belongs to
	key    int32     // offset of the member name, or of the value
}

// pointer returns the place's pointer, followed by more tokens, of at most
// max bytes.
func (p *place) pointer(max int, more ...string) string {
	var tokens []string
	for q := p; q.parent != nil; q = q.parent {
		tokens = append(tokens, q.token)
	}
	b := pointerBuilder{max: max}
	for i := len(tokens) - 1; i >= 0; i-- {
		b.add(tokens[i])
	}
	for _, t := range more {
		b.add(t)
	}
	return b.b.String()
}

// child is the place of a member or item of p.
func (p *place) child(token string, v *value, key int32) *place {
	return &place{parent: p, token: token, v: v, res: p.res, key: key}
}

// member is the place of a member by its position.
func (p *place) member(i int) *place {
	return p.child(p.v.obj.names[i], &p.v.items[i], p.v.obj.offs[i])
}

// item is the place of an array item.
func (p *place) item(i int) *place {
	return p.child(strconv.Itoa(i), &p.v.items[i], p.v.items[i].off)
}

// splitPointer cuts a JSON pointer into its decoded tokens.
func splitPointer(ptr string) ([]string, bool) {
	if ptr == "" {
		return nil, true
	}
	if ptr[0] != '/' {
		return nil, false
	}
	tokens := strings.Split(ptr[1:], "/")
	for i, t := range tokens {
		if strings.IndexByte(t, '~') < 0 {
			continue
		}
		for j := 0; j < len(t); j++ {
			if t[j] == '~' && (j+1 == len(t) || t[j+1] != '0' && t[j+1] != '1') {
				return nil, false
			}
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, true
}

// step returns what a pointer token names inside v: its position, or -1.
func (v *value) step(token string) int {
	switch v.kind {
	case kObject:
		return v.find(token)
	case kArray:
		if token == "" || len(token) > 9 || token[0] == '0' && len(token) > 1 {
			return -1
		}
		for _, c := range []byte(token) {
			if c < '0' || c > '9' {
				return -1
			}
		}
		if n, _ := strconv.Atoi(token); n < len(v.items) {
			return n
		}
	}
	return -1
}
