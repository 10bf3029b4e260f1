package relax

import (
	"math/big"
	"regexp"

	"agentgraph/constraint/internal/ecma"
	"agentgraph/constraint/internal/jsontree"
)

// disjointBranches finds the oneOf whose branches exclude each other, so that
// anyOf says the same.
func (d *document) disjointBranches() {
	for _, n := range d.reach {
		one := n.Get("oneOf")
		if one == nil || one.Kind != jsontree.Array {
			continue
		}
		// What else holds for the same value holds in every branch.
		var base []*jsontree.Node
		for _, c := range d.conjuncts(n) {
			if c != n || !d.hidesSiblings(c) {
				base = append(base, c)
			}
		}
		ok := true
		budget := 20_000
	pairs:
		for i, a := range one.Items {
			for _, b := range one.Items[i+1:] {
				if !d.apart(a, b, base, 0, &budget) {
					ok = false
					break pairs
				}
			}
		}
		d.disjoint[n] = ok
	}
}

// maxApart bounds how deep members are compared.
const maxApart = 6

// apart says that no value that satisfies base satisfies both; no means
// "cannot tell".
func (d *document) apart(a, b *jsontree.Node, base []*jsontree.Node, depth int, budget *int) bool {
	if *budget--; *budget < 0 || depth > maxApart {
		return false
	}
	if isFalse(a) || isFalse(b) {
		return true
	}
	if a.Kind != jsontree.Object || b.Kind != jsontree.Object {
		return false
	}
	as, bs := d.conjuncts(a), d.conjuncts(b)
	if d.alternativesApart(as, b, base, depth, budget) || d.alternativesApart(bs, a, base, depth, budget) {
		return true
	}
	as, bs = append(as, base...), append(bs, base...)
	t := d.types(as) & d.types(bs)
	if t == 0 {
		return true
	}
	va, oka := d.listed(as)
	vb, okb := d.listed(bs)
	if oka && okb && noneEqual(va, vb) {
		return true
	}
	if t == tNumber && (d.integers(as, bs, va, oka) || d.integers(bs, as, vb, okb) || rangesApart(d.numberRange(as), d.numberRange(bs))) {
		return true
	}
	if t == tObject && d.membersApart(as, bs, depth, budget) {
		return true
	}
	return t == tArray && d.lengthsApart(as, bs)
}

// alternativesApart tries an anyOf or oneOf of one side against the other.
func (d *document) alternativesApart(as []*jsontree.Node, b *jsontree.Node, base []*jsontree.Node, depth int, budget *int) bool {
	for _, c := range as {
		if d.hidesSiblings(c) {
			continue
		}
		for _, key := range []string{"anyOf", "oneOf"} {
			list := c.Get(key)
			if list == nil || len(list.Items) == 0 {
				continue
			}
			all := true
			for _, v := range list.Items {
				if !d.apart(v, b, base, depth+1, budget) {
					all = false
					break
				}
			}
			if all {
				return true
			}
		}
	}
	return false
}

// listed returns the values of a const or enum among the conjuncts.
func (d *document) listed(all []*jsontree.Node) ([]*jsontree.Node, bool) {
	for _, c := range all {
		if d.hidesSiblings(c) {
			continue
		}
		if v := c.Get("const"); v != nil && d.draft >= draft6 {
			return []*jsontree.Node{v}, true
		}
		if v := c.Get("enum"); v != nil {
			return v.Items, true
		}
	}
	return nil, false
}

func noneEqual(a, b []*jsontree.Node) bool {
	if len(a)*len(b) > 10_000 {
		return false
	}
	for _, x := range a {
		for _, y := range b {
			if mayEqual(x, y) {
				return false
			}
		}
	}
	return true
}

// mayEqual errs on the side of yes.
func mayEqual(a, b *jsontree.Node) bool {
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case jsontree.String:
		return a.Str == b.Str
	case jsontree.Number:
		x, okx := parseDecimal(a.Text())
		y, oky := parseDecimal(b.Text())
		return !okx || !oky || x == y
	case jsontree.Array:
		if len(a.Items) != len(b.Items) {
			return false
		}
	case jsontree.Object:
		if len(a.Members) != len(b.Members) {
			return false
		}
	}
	return true
}

// integers says that one side takes integers only and the other lists values
// none of which is one.
func (d *document) integers(as, bs []*jsontree.Node, listed []*jsontree.Node, ok bool) bool {
	if !ok {
		return false
	}
	whole := false
	for _, c := range bs {
		if t := c.Get("type"); t != nil && t.Str == "integer" && !d.hidesSiblings(c) {
			whole = true
		}
	}
	if !whole {
		return false
	}
	for _, v := range listed {
		if v.Kind == jsontree.Number {
			dec, ok := parseDecimal(v.Text())
			if !ok {
				return false
			}
			if _, isInt := dec.integer(); isInt {
				return false
			}
		}
	}
	return true
}

type numberRange struct {
	lo, hi         *big.Rat // nil: none
	loOpen, hiOpen bool
}

func (d *document) numberRange(all []*jsontree.Node) numberRange {
	var r numberRange
	for _, c := range all {
		if d.hidesSiblings(c) {
			continue
		}
		for _, key := range boundKeys {
			v := c.Get(key)
			if v == nil || v.Kind != jsontree.Number || len(v.Text()) > 40 {
				continue
			}
			dec, ok := parseDecimal(v.Text())
			if !ok || dec.exp > 100 || dec.exp < -100 {
				continue
			}
			x, _ := new(big.Rat).SetString(dec.plain())
			if x == nil {
				continue
			}
			open := key == "exclusiveMinimum" || key == "exclusiveMaximum"
			if key == "minimum" || key == "exclusiveMinimum" {
				if r.lo == nil || x.Cmp(r.lo) > 0 || x.Cmp(r.lo) == 0 && open {
					r.lo, r.loOpen = x, open
				}
			} else if r.hi == nil || x.Cmp(r.hi) < 0 || x.Cmp(r.hi) == 0 && open {
				r.hi, r.hiOpen = x, open
			}
		}
	}
	return r
}

func rangesApart(a, b numberRange) bool {
	below := func(a, b numberRange) bool {
		if a.hi == nil || b.lo == nil {
			return false
		}
		c := a.hi.Cmp(b.lo)
		return c < 0 || c == 0 && (a.hiOpen || b.loOpen)
	}
	return below(a, b) || below(b, a)
}

// membersApart looks for a member that one side requires and the two sides
// cannot agree on.
func (d *document) membersApart(as, bs []*jsontree.Node, depth int, budget *int) bool {
	for _, side := range [][]*jsontree.Node{as, bs} {
		for _, c := range side {
			if d.hidesSiblings(c) {
				continue
			}
			for name := range names(c.Get("required")) {
				if d.memberApart(name, as, bs, depth, budget) {
					return true
				}
			}
		}
	}
	return false
}

func (d *document) memberApart(name string, as, bs []*jsontree.Node, depth int, budget *int) bool {
	for _, a := range as {
		for _, va := range d.membersOf(a, name) {
			if isFalse(va) {
				return true
			}
			for _, b := range bs {
				for _, vb := range d.membersOf(b, name) {
					if isFalse(vb) || va != vb && d.apart(va, vb, nil, depth+1, budget) {
						return true
					}
				}
			}
		}
	}
	for _, b := range bs {
		for _, vb := range d.membersOf(b, name) {
			if isFalse(vb) {
				return true
			}
		}
	}
	return false
}

// membersOf lists the schemas that n has for a member of that name.
func (d *document) membersOf(n *jsontree.Node, name string) []*jsontree.Node {
	if d.hidesSiblings(n) || n.Kind != jsontree.Object {
		return nil
	}
	var out []*jsontree.Node
	if p := n.Get("properties"); p != nil {
		if v := p.Get(name); v != nil {
			out = append(out, v)
		}
	}
	if pp := n.Get("patternProperties"); pp != nil {
		for _, m := range pp.Members {
			switch match, known := d.matches(m.Key, name); {
			case !known:
				return out
			case match:
				out = append(out, m.Value)
			}
		}
	}
	if extra := n.Get("additionalProperties"); extra != nil && len(out) == 0 {
		out = append(out, extra)
	}
	return out
}

// matches tries an expression on a name, where Go's engine can.
func (d *document) matches(pattern, name string) (match, known bool) {
	rust, err := ecma.Translate(pattern)
	if err != nil {
		return false, false
	}
	re, err := regexp.Compile(rust)
	if err != nil {
		return false, false
	}
	return re.MatchString(name), true
}

func (d *document) lengthsApart(as, bs []*jsontree.Node) bool {
	limits := func(all []*jsontree.Node) (lo, hi int) {
		hi = 1 << 40
		for _, c := range all {
			if d.hidesSiblings(c) {
				continue
			}
			if k, ok := countOf(c, "minItems"); ok {
				lo = max(lo, k)
			}
			if k, ok := countOf(c, "maxItems"); ok {
				hi = min(hi, k)
			}
		}
		return lo, hi
	}
	alo, ahi := limits(as)
	blo, bhi := limits(bs)
	return ahi < blo || bhi < alo
}
