package relax

import (
	"sort"

	"agentgraph/constraint/internal/jsontree"
)

// The engine may refuse a text for what only shows when schemas meet: two
// branches whose members add up, an expression too costly beside a length.
// Each function here widens one kind of thing wherever it is left and reports
// whether there was any.

// each calls f for every schema object the text still asks for.
func (r *Result) each(f func(n *jsontree.Node)) {
	seen := map[*jsontree.Node]bool{}
	var visit func(n *jsontree.Node)
	visit = func(n *jsontree.Node) {
		if seen[n] || n.Kind != jsontree.Object {
			return
		}
		seen[n] = true
		refs := r.doc.refs(n)
		f(n)
		for _, t := range refs {
			visit(t)
		}
		if !r.doc.hidesSiblings(n) {
			children(n, true, func(_ string, v *jsontree.Node) { visit(v) })
		}
	}
	visit(r.Root)
}

func (r *Result) widened(f func(n *jsontree.Node)) bool {
	before := len(r.doc.items)
	r.each(f)
	r.Items = r.doc.sorted()
	return len(r.Items) > before
}

// DropCounts takes out minProperties and maxProperties.
func (r *Result) DropCounts(reason string) bool {
	return r.widened(func(n *jsontree.Node) {
		r.doc.drop(n, false, reason, "minProperties")
		r.doc.drop(n, false, reason, "maxProperties")
	})
}

// WidenPatterns takes out patternProperties.
func (r *Result) WidenPatterns(reason string) bool {
	return r.widened(func(n *jsontree.Node) {
		if n.Has("patternProperties") {
			r.doc.list(n, "patternProperties", reason)
			r.doc.widenPatterns(n)
		}
	})
}

// CutSiblings leaves a $ref alone that stands on a cycle beside other
// keywords.
func (r *Result) CutSiblings(reason string) bool {
	d := r.doc
	return r.widened(func(n *jsontree.Node) {
		ref := n.Get("$ref")
		if ref == nil || d.hidesSiblings(n) {
			return
		}
		if t := d.target(n, ref.Str); t == nil || !d.comesBack(t) {
			return
		}
		for _, k := range hiddenByRef {
			if n.Has(k) {
				d.drop(n, false, reason, k)
			}
		}
	})
}

// comesBack says that a schema refers to itself by some way.
func (d *document) comesBack(start *jsontree.Node) bool {
	seen := map[*jsontree.Node]bool{}
	found := false
	var visit func(n *jsontree.Node)
	visit = func(n *jsontree.Node) {
		if found || seen[n] {
			return
		}
		seen[n] = true
		for _, t := range d.refs(n) {
			found = found || t == start
			visit(t)
		}
		if !d.hidesSiblings(n) {
			children(n, true, func(_ string, v *jsontree.Node) { visit(v) })
		}
	}
	visit(start)
	return found
}

// CutCombined leaves of schemas that hold for the same value only the first:
// allOf beside other keywords.
func (r *Result) CutCombined(reason string) bool {
	return r.widened(func(n *jsontree.Node) {
		if n.Has("allOf") && len(n.Members) > 1 {
			r.doc.drop(n, false, reason, "allOf")
		}
	})
}

// DropPatterns takes out expressions that the engine refuses by themselves,
// or, with all, every expression.
func (r *Result) DropPatterns(reason string, all bool, takes func(schema string) bool) bool {
	return r.widened(func(n *jsontree.Node) {
		if !n.Has("pattern") && !n.Has("format") {
			return
		}
		if !all {
			alone := jsontree.Raw(`{"type":"string"}`)
			for _, k := range []string{"pattern", "format", "minLength", "maxLength"} {
				if v := n.Get(k); v != nil {
					alone.Set(k, v)
				}
			}
			if takes(string(alone.Bytes())) {
				return
			}
		}
		if n.Has("pattern") {
			r.doc.drop(n, false, reason, "pattern")
		} else {
			r.doc.drop(n, false, reason, "format")
		}
	})
}

// DropLengths takes out bounds on lengths and numbers of items.
func (r *Result) DropLengths(reason string) bool {
	return r.widened(func(n *jsontree.Node) {
		for _, k := range []string{"minLength", "maxLength", "minItems", "maxItems"} {
			if n.Has(k) {
				r.doc.drop(n, false, reason, k)
			}
		}
	})
}

// OpenLargest replaces the largest members of the text by "anything" until
// the engine takes it, at most tries of them.
func (r *Result) OpenLargest(reason string, tries int, takes func() bool) bool {
	type part struct {
		n    *jsontree.Node
		size int
	}
	var parts []part
	r.each(func(n *jsontree.Node) {
		if p := n.Get("properties"); p != nil {
			for _, m := range p.Members {
				parts = append(parts, part{m.Value, len(m.Value.Bytes())})
			}
		}
		for _, k := range []string{"items", "additionalProperties"} {
			if v := n.Get(k); v != nil && v.Kind == jsontree.Object {
				parts = append(parts, part{v, len(v.Bytes())})
			}
		}
	})
	sort.SliceStable(parts, func(i, j int) bool { return parts[i].size > parts[j].size })
	for _, p := range parts[:min(tries, len(parts))] {
		r.doc.items = append(r.doc.items, Item{Construct: "schema", Path: r.doc.path(p.n), Offset: p.n.Start, Reason: reason})
		p.n.Replace(jsontree.Raw("true"))
		if takes() {
			r.Items = r.doc.sorted()
			return true
		}
	}
	r.Items = r.doc.sorted()
	return false
}

// Open leaves only the type of the answer.
func (r *Result) Open(reason string) {
	typ := r.Root.Get("type")
	r.Root.Replace(jsontree.Raw("{}"))
	if typ != nil {
		r.Root.Set("type", typ)
	}
	r.doc.items = append(r.doc.items, Item{Construct: "schema", Reason: reason})
	r.Items = r.doc.sorted()
}
