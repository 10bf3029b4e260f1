package relax

import (
	"strconv"

	"agentgraph/constraint/internal/jsontree"
)

// arrays relaxes the keywords for arrays. Alone says that no other schema
// judges the same value.
func (d *document) arrays(n *jsontree.Node, alone bool) {
	d.count(n, "minItems", 0)
	d.count(n, "maxItems", d.opt.AnswerNodes)
	if u := n.Get("uniqueItems"); u != nil {
		d.drop(n, u.Kind == jsontree.False || atMost(n, "maxItems", 1), "", "uniqueItems")
	}
	d.contains(n)
	if u := n.Get("unevaluatedItems"); u != nil {
		switch {
		case isTrue(u) || n.Has("items") && d.draft >= draft2020:
			n.Drop("unevaluatedItems")
		case d.draft >= draft2020 && !n.Has("items") && !n.Has("contains") && alone:
			n.Rename("unevaluatedItems", "items")
		default:
			d.drop(n, false, "", "unevaluatedItems")
		}
	}
	n.Drop("contains", "minContains", "maxContains")
}

// contains leaves the number of items that it asks for at least.
func (d *document) contains(n *jsontree.Node) {
	c := n.Get("contains")
	if c == nil {
		return
	}
	need := 1
	if m := n.Get("minContains"); m != nil && d.draft >= draft2019 {
		if dec, ok := parseDecimal(m.Text()); ok {
			if s, whole := dec.integer(); whole && len(s) < 9 {
				need, _ = strconv.Atoi(s)
			}
		}
	}
	bounded := n.Has("maxContains") && d.draft >= draft2019
	switch {
	case need == 0 && !bounded:
	case isTrue(c) && !bounded: // only the number of items counts
	default:
		d.list(n, "contains", "")
	}
	if need > 0 && !atLeast(n, "minItems", need) && need <= d.opt.AnswerNodes {
		n.Set("minItems", jsontree.Raw(strconv.Itoa(need)))
	}
}

// appliesInPlace says whether other schemas judge the same value.
func appliesInPlace(n *jsontree.Node) bool {
	for _, k := range []string{"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies"} {
		if n.Has(k) {
			return true
		}
	}
	return false
}

func countOf(n *jsontree.Node, key string) (int, bool) {
	v := n.Get(key)
	if v == nil || v.Kind != jsontree.Number {
		return 0, false
	}
	dec, ok := parseDecimal(v.Text())
	s, whole := dec.integer()
	if !ok || !whole || len(s) > 18 {
		return 0, false
	}
	k, _ := strconv.Atoi(s)
	return k, true
}

func atMost(n *jsontree.Node, key string, max int) bool {
	k, ok := countOf(n, key)
	return ok && k <= max
}

func atLeast(n *jsontree.Node, key string, min int) bool {
	k, ok := countOf(n, key)
	return ok && k >= min
}
