package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentgraph/constraint"
)

// keyword is one of JSON Schema that a server does not hold.
type keyword struct {
	name string
	// when narrows it down to some schemas that have it, why says to which.
	when func(*tree) bool
	why  string
}

func ignored(name string) keyword { return keyword{name: name} }

func beside(name, other string) keyword {
	return keyword{name, func(n *tree) bool { return n.get(other) != nil }, "beside " + other}
}

func ofNumbers(name string) keyword {
	return keyword{name, func(n *tree) bool { return !integers(n) }, "of numbers that are no integers"}
}

// plainPattern is what llama.cpp reads of a regular expression: the whole
// string, in ASCII, without classes that have a letter and without lookaround.
// It drops a pattern with anything else, without a word.
var plainPattern = regexp.MustCompile(`^\^(?:[^\\\x80-\x{10FFFF}]|\\[.^$\[\](){}|*+?\-\\"]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2})*\$$`)

func plainPatterns() keyword {
	return keyword{"pattern", func(n *tree) bool {
		var p string
		if json.Unmarshal([]byte(n.get("pattern").value.text), &p) != nil {
			return false
		}
		p = strings.ReplaceAll(p, "(?:", "(")
		return strings.Contains(p, "(?") || !plainPattern.MatchString(p)
	}, `that is not whole, plain and ASCII: ^[0-9]+$ is held, \d+ is not`}
}

// found is a keyword at a place.
type found struct {
	construct, path, why string
	off                  int64
	rejects              bool // the server answers with an error, it does not skip it
}

// checkSchema finds the first thing in a schema that the dialect does not
// hold; rejects means that the server would refuse the whole request.
func (d *dialect) checkSchema(spec constraint.Spec) (r *constraint.Refusal, rejects bool) {
	if len(d.keywords) == 0 && !d.strict {
		return nil, false
	}
	top, err := parseTree(spec.Source)
	if err != nil {
		return nil, false // admission has read it; what is left is for the server
	}
	w := &schemaWalk{d: d}
	if d.strict {
		w.strictTop(top)
	}
	w.schema(top, "", 0)
	if len(w.found) == 0 {
		return nil, false
	}
	f := w.found[0]
	for _, x := range w.found {
		if x.rejects {
			rejects, f = true, x
			break
		}
	}
	line, col := position(spec.Source, int(f.off))
	at := f.path
	if at == "" {
		at = "the top"
	}
	why := f.why
	if why != "" {
		why = " (" + why + ")"
	}
	return &constraint.Refusal{File: spec.File, Line: line, Column: col, Kind: spec.Kind, Construct: f.construct, Path: f.path, Capability: true,
		Reason: fmt.Sprintf("schema at %s: '%s' is not enforced by %s%s", at, f.construct, d.title, why),
		Hint:   "remove it, or allow it with enforce: validate"}, rejects
}

// position turns an offset into a line and a column of characters.
func position(src []byte, off int) (line, col int) {
	off = min(max(off, 0), len(src))
	line = 1 + bytes.Count(src[:off], []byte("\n"))
	start := bytes.LastIndexByte(src[:off], '\n') + 1
	return line, 1 + utf8.RuneCount(src[start:off])
}

type schemaWalk struct {
	d     *dialect
	found []found
}

// Where schemas stand in a schema.
var (
	oneSchema    = []string{"additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems"}
	listSchemas  = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	namedSchemas = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

func (w *schemaWalk) schema(n *tree, path string, depth int) {
	if w.d.objectsOnly && path != "" && (n.text == "true" || n.text == "false") {
		w.reject(n, n.text, path, "every schema in it is to be an object")
	}
	if n.members == nil || len(w.found) >= 64 {
		return
	}
	for _, k := range w.d.keywords {
		m := n.get(k.name)
		if m != nil && (k.when == nil || k.when(n)) {
			w.found = append(w.found, found{construct: k.name, path: path, why: k.why, off: m.keyOff})
		}
	}
	if w.d.strict {
		w.strictObject(n, path, depth)
	}
	for _, key := range oneSchema {
		// additionalProperties is true or false everywhere.
		if m := n.get(key); m != nil && (key != "additionalProperties" || m.value.members != nil) {
			w.schema(m.value, path+"/"+key, depth+1)
		}
	}
	for _, key := range listSchemas {
		if m := n.get(key); m != nil {
			for i, x := range m.value.items {
				w.schema(x, path+"/"+key+"/"+strconv.Itoa(i), depth+1)
			}
		}
	}
	for _, key := range namedSchemas {
		if m := n.get(key); m != nil {
			for _, x := range m.value.members {
				w.schema(x.value, path+"/"+key+"/"+escape(x.key), depth+1)
			}
		}
	}
}

// integers reports a schema of integers alone.
func integers(n *tree) bool {
	m := n.get("type")
	return m != nil && m.value.text == `"integer"`
}

func escape(s string) string {
	b := []byte(s)
	b = bytes.ReplaceAll(b, []byte("~"), []byte("~0"))
	return string(bytes.ReplaceAll(b, []byte("/"), []byte("~1")))
}

// tree is JSON with the place of each member.
type tree struct {
	members []member // nil for what is no object
	items   []*tree
	text    string // of a scalar
	off     int64
}

type member struct {
	key    string
	keyOff int64
	value  *tree
}

func (t *tree) get(key string) *member {
	for i := range t.members {
		if t.members[i].key == key {
			return &t.members[i]
		}
	}
	return nil
}

// parseTree reads JSON that admission has bounded.
func parseTree(src []byte) (*tree, error) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	p := &treeParser{d, src}
	return p.value()
}

type treeParser struct {
	d   *json.Decoder
	src []byte
}

// begin is where the next token begins.
func (p *treeParser) begin() int64 {
	off := p.d.InputOffset()
	for int(off) < len(p.src) {
		switch p.src[off] {
		case ' ', '\t', '\r', '\n', ',', ':':
			off++
			continue
		}
		break
	}
	return off
}

func (p *treeParser) value() (*tree, error) {
	n := &tree{off: p.begin()}
	tok, err := p.d.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		n.members = []member{}
		for p.d.More() {
			off := p.begin()
			key, err := p.d.Token()
			if err != nil {
				return nil, err
			}
			v, err := p.value()
			if err != nil {
				return nil, err
			}
			n.members = append(n.members, member{key.(string), off, v})
		}
		_, err = p.d.Token()
	case json.Delim('['):
		n.items = []*tree{}
		for p.d.More() {
			v, err := p.value()
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, v)
		}
		_, err = p.d.Token()
	default:
		var b []byte
		b, err = encode(tok)
		n.text = string(b)
	}
	return n, err
}
