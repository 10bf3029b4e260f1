package openai

import "strconv"

// OpenAI's rules for schemas under strict. What breaks one is an error of the
// request, not a part that is skipped.

// strictDepth is how deep a schema may nest its objects.
const strictDepth = 10

// strictUnknown are the keywords that strict schemas may not have.
var strictUnknown = []string{
	"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies",
	"patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "unevaluatedItems",
	"contains", "minContains", "maxContains", "uniqueItems", "prefixItems", "minLength", "maxLength",
}

func (w *schemaWalk) reject(n *tree, construct, path, why string) {
	off := n.off
	if m := n.get(construct); m != nil {
		off = m.keyOff
	}
	w.found = append(w.found, found{construct: construct, path: path, why: why, off: off, rejects: true})
}

// strictTop: the answer as a whole is an object, and one shape of it.
func (w *schemaWalk) strictTop(n *tree) {
	if n.get("anyOf") != nil {
		w.reject(n, "anyOf", "", "at the top of a strict schema")
		return
	}
	if m := n.get("type"); m == nil || m.value.text != `"object"` {
		w.reject(n, "type", "", `a strict schema has "type": "object" at the top`)
	}
}

func (w *schemaWalk) strictObject(n *tree, path string, depth int) {
	for _, k := range strictUnknown {
		if n.get(k) != nil {
			w.reject(n, k, path, "not in a strict schema")
		}
	}
	props := n.get("properties")
	if props == nil && !hasType(n, "object") {
		return
	}
	// A level of objects is two of ours: properties and the schema in it count
	// once, so depth is that of schemas.
	if depth > strictDepth {
		w.reject(n, "properties", path, "deeper than "+strconv.Itoa(strictDepth)+" levels")
	}
	if m := n.get("additionalProperties"); m == nil || m.value.text != "false" {
		w.reject(n, "additionalProperties", path, "a strict schema says false in every object")
	}
	if props == nil {
		return
	}
	required := map[string]bool{}
	if m := n.get("required"); m != nil {
		for _, x := range m.value.items {
			required[x.text] = true
		}
	}
	for _, p := range props.value.members {
		if !required[string(quote(p.key))] {
			w.reject(n, "required", path, "a strict schema requires every property, and "+p.key+" is not among them")
			return
		}
	}
}

func hasType(n *tree, name string) bool {
	m := n.get("type")
	if m == nil {
		return false
	}
	if m.value.text == `"`+name+`"` {
		return true
	}
	for _, x := range m.value.items {
		if x.text == `"`+name+`"` {
			return true
		}
	}
	return false
}
