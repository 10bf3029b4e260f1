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
)

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
