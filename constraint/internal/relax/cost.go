package relax

import "agentgraph/constraint/internal/jsontree"

// What the engine takes long over is taken out before it sees it: its own
// bounds come too late there.
const (
	// maxMembers bounds the listed members of one object; the engine needs
	// about a tenth of a millisecond for each.
	maxMembers = 2000
	// maxOptional bounds the squares of the optional members of all objects
	// together, which is how the engine's time grows.
	maxOptional = 1_500_000
	// maxExpressions bounds the expressions that hold for one string at once;
	// each doubles the engine's work.
	maxExpressions = 8
	// maxCost bounds what the schemas of a text cost together, in units of
	// about a microsecond. The dearest schemas in use cost a tenth of it.
	maxCost = 60_000
)

// What the engine needs for one schema, in the same units, measured: an object
// with members, more where other types of value are allowed too; each listed
// member; the expression of a format; and the digits of bounds on a number.
const (
	costObject  = 70
	costUntyped = 60
	costMember  = 25
	costFormat  = 200
	costPattern = 30
	costBound   = 20
	costDigit   = 9
)

// fitCost makes a text cheaper that is too dear as a whole: first without the
// expressions that bounds and formats stand for, then with its type alone.
func (r *Result) fitCost() {
	const reason = "more than the engine takes in one schema"
	objects, expressions := r.cost()
	if objects+expressions <= maxCost {
		return
	}
	r.widened(func(n *jsontree.Node) {
		r.doc.drop(n, false, reason, boundKeys...)
		r.doc.drop(n, false, reason, "format")
		r.doc.drop(n, false, reason, "pattern")
	})
	if objects > maxCost {
		r.Open(reason)
	}
}

// cost adds up what the engine needs for objects, and for expressions.
func (r *Result) cost() (objects, expressions int) {
	r.each(func(n *jsontree.Node) {
		if p := n.Get("properties"); p != nil && len(p.Members) > 0 {
			objects += costObject + costMember*len(p.Members)
			if !n.Has("type") {
				objects += costUntyped
			}
		}
		for _, k := range boundKeys {
			if v := n.Get(k); v != nil {
				expressions += costBound + costDigit*len(v.Text())
			}
		}
		if n.Has("format") {
			expressions += costFormat
		}
		if p := n.Get("pattern"); p != nil {
			expressions += costPattern + len(p.Str)
		}
	})
	return objects, expressions
}

// tooWide opens an object with more members than the engine takes.
func (d *document) tooWide(n *jsontree.Node, required map[string]bool) {
	p := n.Get("properties")
	if p == nil {
		return
	}
	optional := 0
	for _, m := range p.Members {
		if !required[m.Key] {
			optional++
		}
	}
	d.optional += optional * optional
	if len(p.Members) <= maxMembers && d.optional <= maxOptional {
		return
	}
	d.optional -= optional * optional
	d.list(n, "properties", "more members than the engine takes")
	n.Drop("properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties")
}

// thinOut drops expressions where too many hold for the same string.
func (d *document) thinOut() {
	memo := map[*jsontree.Node]int{}
	open := map[*jsontree.Node]bool{}
	var weigh func(n *jsontree.Node) int
	weigh = func(n *jsontree.Node) int {
		if w, ok := memo[n]; ok {
			return w
		}
		if open[n] || n.Kind != jsontree.Object {
			return 0
		}
		open[n] = true
		w := 0
		for _, t := range d.refs(n) {
			w += weigh(t)
		}
		if !d.hidesSiblings(n) {
			for _, k := range []string{"pattern", "format"} {
				if n.Has(k) {
					w++
				}
			}
			for _, k := range []string{"allOf", "anyOf", "oneOf"} {
				list, most := n.Get(k), 0
				if list == nil {
					continue
				}
				for _, v := range list.Items {
					if b := weigh(v); k == "allOf" {
						most += b
					} else {
						most = max(most, b)
					}
				}
				w += most
			}
		}
		open[n] = false
		memo[n] = min(w, maxExpressions+1)
		return memo[n]
	}
	var strip func(n *jsontree.Node, seen map[*jsontree.Node]bool)
	strip = func(n *jsontree.Node, seen map[*jsontree.Node]bool) {
		if seen[n] || n.Kind != jsontree.Object {
			return
		}
		seen[n] = true
		for _, t := range d.refs(n) {
			strip(t, seen)
		}
		if d.hidesSiblings(n) {
			return
		}
		for _, k := range []string{"pattern", "format"} {
			d.drop(n, false, "too many expressions for one string", k)
		}
		for _, k := range []string{"allOf", "anyOf", "oneOf"} {
			if list := n.Get(k); list != nil {
				for _, v := range list.Items {
					strip(v, seen)
				}
			}
		}
	}
	for _, n := range d.reach {
		if weigh(n) > maxExpressions {
			strip(n, map[*jsontree.Node]bool{})
		}
	}
}
