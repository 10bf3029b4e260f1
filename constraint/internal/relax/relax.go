// Package relax turns a JSON Schema into the text that llguidance reads. It
// spells out what the two understand differently, takes out what llguidance
// cannot hold and lists it, and refuses schemas that no answer can satisfy or
// end.
//
// # The one rule
//
// Up to the order of members, spacing, and the spelling of numbers and
// escapes, the text accepts everything the schema accepts. A keyword is
// dropped or widened, never narrowed. It stands in the list exactly when the
// text accepts more than the schema does on its account.
package relax

import "agentgraph/constraint/internal/jsontree"

// Item is a part of the schema that the text does not hold.
type Item struct {
	Construct string // the keyword
	Path      string // JSON pointer of the schema object that holds it
	Offset    int    // of the keyword in the source
	Reason    string // why, where the keyword alone does not say
}

// Problem refuses the schema.
type Problem struct {
	Construct, Path, Reason, Hint string
	Limit                         string // the bound that is exceeded
	Offset                        int
}

// Options of a run.
type Options struct {
	// IgnoreFormats drops every format; AssertFormats lists the known ones
	// that the engine cannot hold, because validation will assert them.
	IgnoreFormats, AssertFormats bool
	// Asserted says which formats validation asserts.
	Asserted func(format string) bool
	// Visits bounds the schema objects with every $ref expanded.
	Visits int
	// AnswerBytes and AnswerNodes make larger bounds on lengths void.
	AnswerBytes, AnswerNodes int
	// Disjoint asks the engine whether no name matches two of the patterns
	// (in its own syntax); nil where there is no engine.
	Disjoint func(patterns []string) bool
}

// Result is the text and what it leaves out, in the order of the source.
type Result struct {
	Root  *jsontree.Node // of the text
	Items []Item
	doc   *document
}

// Relax works on a copy of root, which is a schema object that a validator
// has compiled: keywords have their form and references lead somewhere.
func Relax(root *jsontree.Node, opt Options) (*Result, *Problem) {
	d := newDocument(root.Clone())
	d.opt = opt
	if p := d.visits(); p != nil {
		return nil, p
	}
	if p := d.endless(); p != nil {
		return nil, p
	}
	d.disjointBranches()
	d.thinOut()
	d.relax(d.root, map[*jsontree.Node]bool{})
	d.closeEndless()
	r := &Result{Root: d.root, Items: d.sorted(), doc: d}
	r.fitCost()
	return r, nil
}

// relax works on what the text still asks for: a schema under a keyword that
// went is of no concern to the engine.
func (d *document) relax(n *jsontree.Node, done map[*jsontree.Node]bool) {
	if done[n] {
		return
	}
	done[n] = true
	refs := d.refs(n)
	d.object(n)
	for _, t := range refs {
		d.relax(t, done)
	}
	if !d.hidesSiblings(n) {
		children(n, true, func(_ string, v *jsontree.Node) { d.relax(v, done) })
	}
}

// drop takes keywords out of a schema object and, unless that changes
// nothing, lists the first of them that was there.
func (d *document) drop(n *jsontree.Node, exact bool, reason string, keys ...string) {
	if !exact {
		for _, k := range keys {
			if n.Has(k) {
				d.list(n, k, reason)
				break
			}
		}
	}
	n.Drop(keys...)
}

// list records a keyword that the text does not hold.
func (d *document) list(n *jsontree.Node, key, reason string) {
	it := Item{Construct: key, Path: d.path(n), Offset: n.KeyOffset(key), Reason: reason}
	for _, have := range d.items {
		if have == it {
			return
		}
	}
	d.items = append(d.items, it)
}

// object relaxes one schema object.
func (d *document) object(n *jsontree.Node) {
	if n.Kind != jsontree.Object {
		return
	}
	if d.draft <= draft7 && n.Has("$ref") {
		n.Drop(hiddenByRef...)
		return
	}
	alone := !appliesInPlace(n)
	d.dialect(n)
	d.strings(n)
	d.numbers(n)
	d.values(n)
	d.arrays(n, alone)
	d.objects(n, alone)
	d.logic(n)
}

// hiddenByRef are the keywords that mean nothing beside a $ref of drafts 4 to
// 7. Definitions stay: references lead there.
var hiddenByRef = []string{
	"const", "enum", "allOf", "anyOf", "oneOf", "type", "items", "additionalItems", "prefixItems", "minItems", "maxItems",
	"properties", "additionalProperties", "patternProperties", "required", "minProperties", "maxProperties", "minLength",
	"maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "not",
	"if", "then", "else", "uniqueItems", "contains", "dependencies", "propertyNames",
}

// dialect settles what the draft says and the engine reads otherwise.
func (d *document) dialect(n *jsontree.Node) {
	if d.draft < draft6 {
		n.Drop("const", "contains", "propertyNames")
	}
	if d.draft < draft7 {
		n.Drop("if", "then", "else")
	}
	if d.draft < draft2019 {
		n.Drop("dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "minContains", "maxContains",
			"$recursiveRef", "$recursiveAnchor", "$vocabulary", "contentSchema", "deprecated")
	}
	if d.draft < draft2020 {
		n.Drop("prefixItems", "$dynamicRef", "$dynamicAnchor")
	} else {
		n.Drop("additionalItems", "$recursiveRef", "$recursiveAnchor")
	}
	if n != d.root {
		n.Drop("$schema")
	}
	// Annotations that the engine calls unimplemented.
	n.Drop("deprecated", "$vocabulary", "contentSchema", "$recursiveAnchor")
	if n.Has("$dynamicAnchor") {
		if n.Has("$anchor") {
			n.Drop("$dynamicAnchor")
		} else {
			n.Rename("$dynamicAnchor", "$anchor")
		}
	}
	for _, key := range []string{"$dynamicRef", "$recursiveRef"} {
		switch {
		case !n.Has(key):
		case !d.dynamic && !n.Has("$ref"):
			n.Rename(key, "$ref")
		default:
			d.drop(n, false, "", key)
		}
	}
}

// logic relaxes the keywords that combine schemas.
func (d *document) logic(n *jsontree.Node) {
	if not := n.Get("not"); not != nil {
		d.drop(n, isFalse(not), "", "not")
	}
	if cond := n.Get("if"); cond != nil {
		trivial := !n.Has("then") && !n.Has("else") || isTrue(n.Get("then")) && isTrue(n.Get("else"))
		d.drop(n, trivial, "", "if", "then", "else")
	}
	n.Drop("then", "else")
	if n.Has("oneOf") {
		if !d.disjoint[n] {
			d.list(n, "oneOf", "its branches may overlap")
		}
		switch {
		case !n.Has("anyOf"):
			n.Rename("oneOf", "anyOf")
		default:
			one := n.Get("oneOf")
			n.Drop("oneOf")
			all := n.Get("allOf")
			if all == nil {
				n.Set("allOf", jsontree.Raw("[]"))
				all = n.Get("allOf")
			}
			wrap := jsontree.Raw(`{"anyOf":[]}`)
			wrap.Set("anyOf", one)
			all.Append(wrap)
		}
	}
}

// isTrue and isFalse recognise schemas that accept everything or nothing.
func isTrue(n *jsontree.Node) bool {
	if n == nil || n.Kind == jsontree.True {
		return true
	}
	return n.Kind == jsontree.Object && len(n.Members) == 0
}

func isFalse(n *jsontree.Node) bool {
	if n == nil {
		return false
	}
	return n.Kind == jsontree.False || n.Kind == jsontree.Object && len(n.Members) == 1 && n.Has("not") && isTrue(n.Get("not"))
}
