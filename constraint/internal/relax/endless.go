package relax

import (
	"agentgraph/constraint/internal/jsontree"
)

// The types, as bits.
const (
	tNull = 1 << iota
	tBoolean
	tNumber
	tString
	tArray
	tObject
	tAll     = 1<<iota - 1
	tScalars = tNull | tBoolean | tNumber | tString
)

var typeBits = map[string]int{"null": tNull, "boolean": tBoolean, "number": tNumber, "integer": tNumber, "string": tString, "array": tArray, "object": tObject}

// endless refuses a schema all of whose answers would go on for ever, and
// remembers parts that would.
func (d *document) endless() *Problem {
	ends := map[*jsontree.Node]bool{}
	for changed := true; changed; {
		changed = false
		for i := len(d.reach) - 1; i >= 0; i-- {
			if n := d.reach[i]; !ends[n] && d.canEnd(n, ends) {
				ends[n], changed = true, true
			}
		}
	}
	for _, n := range d.reach {
		if !ends[n] && !isFalse(n) {
			d.dead = append(d.dead, n)
		}
	}
	if ends[d.root] {
		return nil
	}
	return d.whyEndless(ends)
}

// conjuncts lists the schemas that all judge the value n judges, without
// those of anyOf and oneOf.
func (d *document) conjuncts(n *jsontree.Node) []*jsontree.Node {
	var out []*jsontree.Node
	seen := map[*jsontree.Node]bool{}
	var add func(n *jsontree.Node)
	add = func(n *jsontree.Node) {
		if seen[n] || len(out) > 256 {
			return
		}
		seen[n] = true
		out = append(out, n)
		for _, t := range d.refs(n) {
			add(t)
		}
		if d.hidesSiblings(n) {
			return
		}
		if all := n.Get("allOf"); all != nil {
			for _, v := range all.Items {
				add(v)
			}
		}
	}
	add(n)
	return out
}

// types are those a value of the conjunction may have.
func (d *document) types(all []*jsontree.Node) int {
	t := tAll
	for _, n := range all {
		t &= d.ownTypes(n)
	}
	return t
}

func (d *document) ownTypes(n *jsontree.Node) int {
	if n.Kind == jsontree.False {
		return 0
	}
	if n.Kind != jsontree.Object || d.hidesSiblings(n) {
		return tAll
	}
	t := tAll
	switch v := n.Get("type"); {
	case v == nil:
	case v.Kind == jsontree.String:
		t = typeBits[v.Str]
	default:
		t = 0
		for _, e := range v.Items {
			t |= typeBits[e.Str]
		}
	}
	if v := n.Get("const"); v != nil && d.draft >= draft6 {
		t &= typeBits[typeName(v)]
	}
	if v := n.Get("enum"); v != nil {
		in := 0
		for _, e := range v.Items {
			in |= typeBits[typeName(e)]
		}
		t &= in
	}
	return t
}

// canEnd says that some finite value may satisfy n, given those that are
// known to. It errs on the side of yes.
func (d *document) canEnd(n *jsontree.Node, ends map[*jsontree.Node]bool) bool {
	if isFalse(n) {
		return false
	}
	if n.Kind != jsontree.Object {
		return true
	}
	all := d.conjuncts(n)
	for _, c := range all {
		if c != n && isFalse(c) {
			return false
		}
		if d.hidesSiblings(c) {
			continue
		}
		if not := c.Get("not"); not != nil && isTrue(not) {
			return false
		}
		for _, key := range []string{"anyOf", "oneOf"} {
			if list := c.Get(key); list != nil && len(list.Items) > 0 && !anyEnds(list.Items, ends) {
				return false
			}
		}
	}
	t := d.types(all)
	if t&tScalars != 0 {
		return true
	}
	if t&tArray != 0 && d.arrayEnds(all, ends) {
		return true
	}
	return t&tObject != 0 && d.objectEnds(all, ends)
}

func anyEnds(list []*jsontree.Node, ends map[*jsontree.Node]bool) bool {
	for _, v := range list {
		if ends[v] {
			return true
		}
	}
	return false
}

// needs lists the schemas that the members of every object, or the items of
// every array, have to satisfy.
func (d *document) needs(all []*jsontree.Node, object bool) []*jsontree.Node {
	var out []*jsontree.Node
	if !object {
		least := 0
		for _, c := range all {
			if k, ok := countOf(c, "minItems"); ok && !d.hidesSiblings(c) {
				least = max(least, k)
			}
		}
		for _, c := range all {
			if d.hidesSiblings(c) {
				continue
			}
			prefix, rest := c.Get("prefixItems"), c.Get("items")
			if rest != nil && rest.Kind == jsontree.Array {
				prefix, rest = rest, c.Get("additionalItems")
			} else if d.draft < draft2020 {
				prefix = nil
			}
			listed := 0
			if prefix != nil {
				listed = len(prefix.Items)
				out = append(out, prefix.Items[:min(least, listed)]...)
			}
			if rest != nil && least > listed {
				out = append(out, rest)
			}
		}
		return out
	}
	for _, c := range all {
		if d.hidesSiblings(c) {
			continue
		}
		for name := range names(c.Get("required")) {
			for _, o := range all {
				if d.hidesSiblings(o) {
					continue
				}
				if v := memberSchema(o, name); v != nil {
					out = append(out, v)
				}
			}
		}
	}
	return out
}

// memberSchema is the schema n has for a member of that name, as far as that
// is plain; nil when it has none or patterns decide.
func memberSchema(n *jsontree.Node, name string) *jsontree.Node {
	if p := n.Get("properties"); p != nil {
		if v := p.Get(name); v != nil {
			return v
		}
	}
	if n.Has("patternProperties") {
		return nil
	}
	return n.Get("additionalProperties")
}

func (d *document) arrayEnds(all []*jsontree.Node, ends map[*jsontree.Node]bool) bool {
	return allEnd(d.needs(all, false), ends)
}

func (d *document) objectEnds(all []*jsontree.Node, ends map[*jsontree.Node]bool) bool {
	return allEnd(d.needs(all, true), ends)
}

func allEnd(list []*jsontree.Node, ends map[*jsontree.Node]bool) bool {
	for _, v := range list {
		if !ends[v] && v.Kind != jsontree.True {
			return false
		}
	}
	return true
}

// whyEndless follows what is required until it comes back.
func (d *document) whyEndless(ends map[*jsontree.Node]bool) *Problem {
	seen := map[*jsontree.Node]bool{}
	n := d.root
	for !seen[n] {
		seen[n] = true
		all := d.conjuncts(n)
		var next *jsontree.Node
		for _, v := range append(d.needs(all, true), d.needs(all, false)...) {
			if !ends[v] {
				next = v
				break
			}
		}
		if next == nil {
			return d.whyUnsatisfiable(all, ends)
		}
		if isFalse(next) {
			return &Problem{Construct: "required", Path: d.path(next), Offset: next.Start,
				Reason: "what has to be here is forbidden, so no answer can satisfy the schema", Hint: "allow the member, or do not require it"}
		}
		n = next
	}
	return &Problem{Construct: "$ref", Path: d.path(n), Offset: n.Start,
		Reason: "every answer would have to contain itself again and could never end",
		Hint:   "make the member optional, let it be null, or let the array be empty"}
}

// whyUnsatisfiable names what in a conjunction nothing can satisfy.
func (d *document) whyUnsatisfiable(all []*jsontree.Node, ends map[*jsontree.Node]bool) *Problem {
	p := &Problem{Construct: "schema", Path: d.path(all[0]), Offset: all[0].Start,
		Reason: "no answer can satisfy this schema", Hint: "look for types, values or branches that exclude each other"}
	blame := func(n *jsontree.Node, key, reason string) *Problem {
		p.Path, p.Construct, p.Offset, p.Reason = d.path(n), key, n.KeyOffset(key), reason
		return p
	}
	for _, c := range all {
		if c.Kind == jsontree.False {
			p.Path, p.Construct, p.Offset = d.path(c), "false", c.Start
			p.Reason = "this schema accepts nothing, so no answer can satisfy the whole"
			return p
		}
		if c.Kind != jsontree.Object || d.hidesSiblings(c) {
			continue
		}
		for _, key := range []string{"anyOf", "oneOf"} {
			if list := c.Get(key); list != nil && !anyEnds(list.Items, ends) {
				return blame(c, key, "no branch of '"+key+"' can be satisfied, so no answer can satisfy the whole")
			}
		}
		for _, key := range []string{"not", "enum"} {
			if v := c.Get(key); v != nil && (key == "not" && isTrue(v) || key == "enum" && len(v.Items) == 0) {
				return blame(c, key, "this '"+key+"' accepts nothing, so no answer can satisfy the whole")
			}
		}
	}
	for _, c := range all {
		if c.Kind == jsontree.Object && c.Has("type") && d.types(all) == 0 {
			return blame(c, "type", "the types asked for here exclude each other, so no answer can satisfy the whole")
		}
	}
	return p
}

// closeEndless forbids the parts that could be started and never ended.
func (d *document) closeEndless() {
	for _, n := range d.dead {
		if n != d.root {
			n.Replace(jsontree.Raw("false"))
		}
	}
}
