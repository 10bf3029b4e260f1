package relax

import (
	"strconv"

	"agentgraph/constraint/internal/jsontree"
)

// formatCoefficient spells coefficient × 10^-exp.
func formatCoefficient(v float64, exp int) string {
	return strconv.FormatFloat(v, 'f', 0, 64) + "e-" + strconv.Itoa(exp)
}

// values relaxes const and enum: the engine reads their numbers as doubles.
func (d *document) values(n *jsontree.Node) {
	if v := n.Get("const"); v != nil && !spellable(v) {
		d.list(n, "const", "too many digits for the engine")
		d.widen(n, "const", []*jsontree.Node{v})
	}
	if v := n.Get("enum"); v != nil && v.Kind == jsontree.Array {
		for _, e := range v.Items {
			if !spellable(e) {
				d.list(n, "enum", "too many digits for the engine")
				d.widen(n, "enum", v.Items)
				break
			}
		}
	}
}

// widen puts the types of the values in their place.
func (d *document) widen(n *jsontree.Node, key string, values []*jsontree.Node) {
	n.Drop(key)
	if n.Has("type") {
		return
	}
	list, seen := jsontree.Raw("[]"), map[string]bool{}
	for _, v := range values {
		t := typeName(v)
		if !seen[t] {
			seen[t] = true
			list.Append(jsontree.Raw(jsontree.Quote(t)))
		}
	}
	n.Set("type", list)
}

func typeName(v *jsontree.Node) string {
	switch v.Kind {
	case jsontree.Null:
		return "null"
	case jsontree.True, jsontree.False:
		return "boolean"
	case jsontree.Number:
		return "number"
	case jsontree.String:
		return "string"
	case jsontree.Array:
		return "array"
	}
	return "object"
}

// spellable says whether the engine writes every number of the value as it is.
func spellable(v *jsontree.Node) bool {
	if v.Kind == jsontree.Number {
		dec, ok := parseDecimal(v.Text())
		if !ok {
			return false
		}
		_, exact := dec.float()
		return exact && dec.exp <= 300
	}
	for _, e := range v.Items {
		if !spellable(e) {
			return false
		}
	}
	for _, m := range v.Members {
		if !spellable(m.Value) {
			return false
		}
	}
	return true
}
