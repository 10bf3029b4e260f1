package relax

import (
	"math"

	"agentgraph/constraint/internal/jsontree"
)

// largestFraction bounds the limits the engine can turn into digits for
// numbers that may have a fraction.
const largestFraction = 1e15

var boundKeys = []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}

// numbers relaxes the keywords for numbers. The engine computes with doubles
// and 64-bit integers.
func (d *document) numbers(n *jsontree.Node) {
	if d.draft == draft4 {
		for _, k := range [][2]string{{"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}} {
			if x := n.Get(k[1]); x != nil && x.Kind == jsontree.True && n.Has(k[0]) {
				limit := n.Get(k[0])
				n.Drop(k[0])
				n.Set(k[1], limit)
			} else if x != nil && (x.Kind == jsontree.True || x.Kind == jsontree.False) {
				n.Drop(k[1])
			}
		}
	}
	onlyInteger := false
	if t := n.Get("type"); t != nil && t.Kind == jsontree.String {
		onlyInteger = t.Str == "integer"
	}
	for _, key := range boundKeys {
		v := n.Get(key)
		if v == nil || v.Kind != jsontree.Number {
			continue
		}
		lower := key == "minimum" || key == "exclusiveMinimum"
		if !boundHolds(v.Text(), onlyInteger, lower) {
			d.drop(n, false, "too many digits for the engine", key)
		}
	}
	if v := n.Get("multipleOf"); v != nil && v.Kind == jsontree.Number && !multipleHolds(v.Text()) {
		d.drop(n, false, "too many digits for the engine", "multipleOf")
	}
}

// boundHolds says whether the engine reads this bound as it stands.
func boundHolds(text string, onlyInteger, lower bool) bool {
	dec, ok := parseDecimal(text)
	if !ok {
		return false
	}
	f, exact := dec.float()
	if !onlyInteger {
		return exact && math.Abs(f) < largestFraction
	}
	if whole, isInt := dec.integer(); isInt && whole == "9223372036854775807" {
		return !lower // the engine's own largest integer
	}
	return exact && math.Abs(f) < 1<<62
}

// multipleHolds follows the engine's own conversion of a step to a decimal.
func multipleHolds(text string) bool {
	dec, ok := parseDecimal(text)
	if !ok {
		return false
	}
	f, exact := dec.float()
	if !exact {
		return false
	}
	exp := 0
	for v := f; ; exp++ {
		if v == math.Trunc(v) {
			got, _ := parseDecimal(formatCoefficient(v, exp))
			return v <= math.MaxUint32 && got == dec
		}
		if exp > 30 {
			return false
		}
		v *= 10
	}
}
