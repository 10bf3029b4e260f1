package relax

import (
	"regexp"

	"agentgraph/constraint/internal/ecma"
	"agentgraph/constraint/internal/jsontree"
)

// Reorder puts the members of an instance in the order in which the schema
// lists them, which is the order a mask asks for. Members that the schema
// does not list stay behind the others, in their own order.
func Reorder(schema, instance *jsontree.Node) {
	d := newDocument(schema.Clone())
	d.reorder([]*jsontree.Node{d.root}, instance, 0)
}

func (d *document) reorder(schemas []*jsontree.Node, v *jsontree.Node, depth int) {
	if depth > 200 {
		return
	}
	var all []*jsontree.Node
	seen := map[*jsontree.Node]bool{}
	for _, s := range schemas {
		d.inPlace(s, v, seen, &all)
	}
	switch v.Kind {
	case jsontree.Array:
		for i, item := range v.Items {
			var next []*jsontree.Node
			for _, s := range all {
				next = append(next, itemSchemas(s, i)...)
			}
			d.reorder(next, item, depth+1)
		}
	case jsontree.Object:
		rank := map[string]int{}
		note := func(name string) {
			if _, ok := rank[name]; !ok {
				rank[name] = len(rank)
			}
		}
		for _, s := range all {
			if c := s.Get("const"); c != nil {
				likeValue(c, v)
				return
			}
			if e := s.Get("enum"); e != nil {
				for _, c := range e.Items {
					if mayEqual(c, v) {
						likeValue(c, v)
						return
					}
				}
			}
			if p := s.Get("properties"); p != nil {
				for _, m := range p.Members {
					note(m.Key)
				}
			}
		}
		for _, s := range all {
			if r := s.Get("required"); r != nil {
				for _, e := range r.Items {
					note(e.Str)
				}
			}
		}
		for _, m := range v.Members {
			var next []*jsontree.Node
			for _, s := range all {
				next = append(next, memberSchemas(s, m.Key)...)
			}
			d.reorder(next, m.Value, depth+1)
		}
		at := func(name string) int {
			if r, ok := rank[name]; ok {
				return r
			}
			return len(rank)
		}
		v.SortMembers(func(a, b string) bool { return at(a) < at(b) })
	}
}

// likeValue orders v as a value that is given.
func likeValue(given, v *jsontree.Node) {
	at := map[string]int{}
	for i, m := range given.Members {
		at[m.Key] = i
		if w := v.Get(m.Key); w != nil {
			likeValue(m.Value, w)
		}
	}
	for i := range min(len(given.Items), len(v.Items)) {
		likeValue(given.Items[i], v.Items[i])
	}
	if v.Kind == jsontree.Object {
		v.SortMembers(func(a, b string) bool { return at[a] < at[b] })
	}
}

// Respell writes the numbers of an instance without an exponent and without
// zeros at the end, the spelling that a mask asks for.
func Respell(v *jsontree.Node) {
	if v.Kind == jsontree.Number {
		if dec, ok := parseDecimal(v.Text()); ok && dec.exp < 400 && dec.exp > -400 {
			v.Replace(jsontree.Raw(dec.plain()))
		}
		return
	}
	for _, e := range v.Items {
		Respell(e)
	}
	for _, m := range v.Members {
		Respell(m.Value)
	}
}

// inPlace collects the schemas that may judge the same value, in the order
// in which the engine meets them. Branches that the value plainly fails are
// left out: their order is another one.
func (d *document) inPlace(s, v *jsontree.Node, seen map[*jsontree.Node]bool, out *[]*jsontree.Node) {
	if seen[s] || s.Kind != jsontree.Object {
		return
	}
	seen[s] = true
	own := false
	for _, m := range s.Members {
		switch m.Key {
		case "properties":
			*out, own = append(*out, s), true
		case "$ref":
			for _, t := range d.refs(s) {
				d.inPlace(t, v, seen, out)
			}
		case "allOf", "anyOf", "oneOf":
			for _, branch := range m.Value.Items {
				if m.Key == "allOf" || !d.fails(branch, v, 0) {
					d.inPlace(branch, v, seen, out)
				}
			}
		}
	}
	if !own {
		*out = append(*out, s)
	}
}

func itemSchemas(s *jsontree.Node, i int) []*jsontree.Node {
	prefix, rest := s.Get("prefixItems"), s.Get("items")
	if rest != nil && rest.Kind == jsontree.Array {
		prefix, rest = rest, s.Get("additionalItems")
	}
	if prefix != nil && i < len(prefix.Items) {
		return prefix.Items[i : i+1]
	}
	if rest != nil {
		return []*jsontree.Node{rest}
	}
	return nil
}

func memberSchemas(s *jsontree.Node, name string) []*jsontree.Node {
	var out []*jsontree.Node
	if p := s.Get("properties"); p != nil {
		if v := p.Get(name); v != nil {
			return append(out, v)
		}
	}
	if p := s.Get("patternProperties"); p != nil {
		for _, m := range p.Members {
			out = append(out, m.Value)
		}
	}
	if v := s.Get("additionalProperties"); v != nil {
		out = append(out, v)
	}
	return out
}

// fails says that v plainly does not satisfy s. It errs on the side of no.
func (d *document) fails(s, v *jsontree.Node, depth int) bool {
	if isFalse(s) {
		return true
	}
	if s.Kind != jsontree.Object || depth > 12 {
		return false
	}
	for _, t := range d.refs(s) {
		if d.fails(t, v, depth+1) {
			return true
		}
	}
	if d.hidesSiblings(s) {
		return false
	}
	if d.ownTypes(s)&typeBits[typeName(v)] == 0 {
		return true
	}
	if all := s.Get("allOf"); all != nil {
		for _, t := range all.Items {
			if d.fails(t, v, depth+1) {
				return true
			}
		}
	}
	if list, ok := d.listed([]*jsontree.Node{s}); ok && noneEqual(list, []*jsontree.Node{v}) {
		return true
	}
	if p := s.Get("pattern"); p != nil && v.Kind == jsontree.String {
		if rust, err := ecma.Translate(p.Str); err == nil {
			if re, err := regexp.Compile(rust); err == nil && !re.MatchString(v.Str) {
				return true
			}
		}
	}
	if v.Kind != jsontree.Object {
		return false
	}
	for name := range names(s.Get("required")) {
		if !v.Has(name) {
			return true
		}
	}
	for _, m := range v.Members {
		if t := memberSchema(s, m.Key); t != nil && d.fails(t, m.Value, depth+1) {
			return true
		}
	}
	return false
}
