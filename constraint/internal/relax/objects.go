package relax

import (
	"errors"

	"agentgraph/constraint/internal/ecma"
	"agentgraph/constraint/internal/jsontree"
)

// objects relaxes the keywords for objects. Alone says that no other schema
// judges the same value.
func (d *document) objects(n *jsontree.Node, alone bool) {
	d.count(n, "minProperties", 0)
	d.count(n, "maxProperties", d.opt.AnswerNodes)
	required := names(n.Get("required"))
	for _, key := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		if v := n.Get(key); v != nil {
			d.drop(n, dependsOnNothing(v, required), "", key)
		}
	}
	if p := n.Get("propertyNames"); p != nil {
		d.drop(n, anyName(p), "", "propertyNames")
	}
	if u := n.Get("unevaluatedProperties"); u != nil {
		switch {
		case isTrue(u) || n.Has("additionalProperties"):
			n.Drop("unevaluatedProperties")
		case alone:
			n.Rename("unevaluatedProperties", "additionalProperties")
		default:
			d.drop(n, false, "", "unevaluatedProperties")
		}
	}
	d.propertyCounts(n, required, alone)
	d.patternProperties(n)
	d.tooWide(n, required)
	// The engine reads keywords in groups between these; the two have to be
	// in one group to know of each other.
	if n.Has("patternProperties") && n.Has("additionalProperties") {
		n.Move("patternProperties", "additionalProperties")
	}
}

func names(list *jsontree.Node) map[string]bool {
	out := map[string]bool{}
	if list != nil {
		for _, v := range list.Items {
			if v.Kind == jsontree.String {
				out[v.Str] = true
			}
		}
	}
	return out
}

// dependsOnNothing says that a dependency always holds: what it asks for is
// required anyway.
func dependsOnNothing(v *jsontree.Node, required map[string]bool) bool {
	for _, m := range v.Members {
		if m.Value.Kind != jsontree.Array {
			if !isTrue(m.Value) {
				return false
			}
			continue
		}
		for _, want := range m.Value.Items {
			if !required[want.Str] && want.Str != m.Key {
				return false
			}
		}
	}
	return true
}

// anyName recognises a propertyNames that every name passes.
func anyName(p *jsontree.Node) bool {
	if isTrue(p) {
		return true
	}
	t := p.Get("type")
	return len(p.Members) == 1 && t != nil && t.Str == "string"
}

// propertyCounts keeps minProperties and maxProperties where the engine can
// count: all listed members required, or exactly the forms it has a case for.
func (d *document) propertyCounts(n *jsontree.Node, required map[string]bool, alone bool) {
	minimum, hasMin := countOf(n, "minProperties")
	maximum, hasMax := countOf(n, "maxProperties")
	if hasMin && minimum <= len(required) {
		n.Drop("minProperties")
		hasMin = false
	}
	props, optional := 0, 0
	if p := n.Get("properties"); p != nil {
		props = len(p.Members)
		for _, m := range p.Members {
			if !required[m.Key] {
				optional++
			}
		}
	}
	closed := n.Get("additionalProperties") != nil && isFalse(n.Get("additionalProperties")) && !n.Has("patternProperties")
	if hasMax && closed && maximum >= props && alone {
		n.Drop("maxProperties")
		hasMax = false
	}
	if !hasMin && !hasMax {
		return
	}
	if optional == 0 && alone {
		return
	}
	left, one := max(0, minimum-len(required)), !hasMax || maximum-len(required) == 1
	if closed && left <= 1 && one && alone {
		return
	}
	reason := "some listed members are optional"
	if !alone {
		reason = "other schemas add members"
	}
	if hasMin {
		d.drop(n, false, reason, "minProperties")
	}
	if hasMax {
		d.drop(n, false, reason, "maxProperties")
	}
}

// patternProperties translates the expressions and widens what the engine
// cannot tell apart.
func (d *document) patternProperties(n *jsontree.Node) {
	pp := n.Get("patternProperties")
	if pp == nil || pp.Kind != jsontree.Object || len(pp.Members) == 0 {
		return
	}
	var rust []string
	for i, m := range pp.Members {
		t, err := ecma.Translate(m.Key)
		var u *ecma.Unsupported
		if errors.As(err, &u) {
			d.list(n, "patternProperties", u.Construct)
			d.widenPatterns(n)
			return
		}
		rust = append(rust, t)
		if t != m.Key {
			pp.RenameAt(i, t)
		}
	}
	if len(rust) < 2 {
		return
	}
	same := map[string]bool{}
	for _, r := range rust {
		same[r] = true
	}
	if len(same) == len(rust) && (d.opt.Disjoint == nil || d.opt.Disjoint(rust)) {
		return
	}
	d.list(n, "patternProperties", "a name may match two of them")
	d.widenPatterns(n)
}

// widenPatterns allows under any further name what one of the patterns or
// additionalProperties allows.
func (d *document) widenPatterns(n *jsontree.Node) {
	pp := n.Get("patternProperties")
	extra := n.Get("additionalProperties")
	n.Drop("patternProperties")
	if extra == nil || isTrue(extra) {
		n.Drop("additionalProperties")
		return
	}
	any := jsontree.Raw("[]")
	for _, m := range pp.Members {
		any.Append(m.Value)
	}
	if !isFalse(extra) {
		any.Append(extra)
	}
	open := jsontree.Raw("{}")
	open.Set("anyOf", any)
	n.Set("additionalProperties", open)
}
