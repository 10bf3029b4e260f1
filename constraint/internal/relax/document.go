package relax

import (
	"net/url"
	"slices"
	"sort"
	"strings"

	"agentgraph/constraint/internal/jsontree"
)

// The drafts.
const (
	draft4    = 4
	draft6    = 6
	draft7    = 7
	draft2019 = 2019
	draft2020 = 2020
)

// document is a schema with its references resolved.
type document struct {
	opt     Options
	root    *jsontree.Node
	draft   int
	dynamic bool // there is a $dynamicAnchor or $recursiveAnchor

	parents  map[*jsontree.Node]link
	base     map[*jsontree.Node]*url.URL // of schema objects
	byURI    map[string]*jsontree.Node   // resources, and anchors as uri#name
	known    map[*jsontree.Node]bool     // schema positions
	targets  map[*jsontree.Node]*jsontree.Node
	reach    []*jsontree.Node // schemas an answer can meet, in order of discovery
	reached  map[*jsontree.Node]bool
	disjoint map[*jsontree.Node]bool // objects whose oneOf is an anyOf
	dead     []*jsontree.Node        // reachable schemas that can never end
	optional int                     // the cost of optional members so far
	items    []Item
}

type link struct {
	up    *jsontree.Node
	key   string
	index int // -1 for a member
}

const rootURI = "json-schema:///"

func newDocument(root *jsontree.Node) *document {
	d := &document{
		root: root, draft: draftOf(root), parents: map[*jsontree.Node]link{}, base: map[*jsontree.Node]*url.URL{},
		byURI: map[string]*jsontree.Node{}, known: map[*jsontree.Node]bool{}, targets: map[*jsontree.Node]*jsontree.Node{},
		reached: map[*jsontree.Node]bool{}, disjoint: map[*jsontree.Node]bool{},
	}
	if s := root.Get("$schema"); s != nil {
		s.Replace(jsontree.Raw(jsontree.Quote(canonical[d.draft])))
	}
	d.link(root)
	u, _ := url.Parse(rootURI)
	d.byURI[rootURI] = root
	d.scan(root, u)
	d.walk(root)
	return d
}

var canonical = map[int]string{
	draft4: "http://json-schema.org/draft-04/schema#", draft6: "http://json-schema.org/draft-06/schema#",
	draft7: "http://json-schema.org/draft-07/schema#", draft2019: "https://json-schema.org/draft/2019-09/schema",
	draft2020: "https://json-schema.org/draft/2020-12/schema",
}

func draftOf(root *jsontree.Node) int {
	s := root.Get("$schema")
	if s == nil {
		return draft2020
	}
	for d, uri := range canonical {
		_, path, _ := strings.Cut(strings.TrimSuffix(s.Str, "#"), "://")
		_, want, _ := strings.Cut(strings.TrimSuffix(uri, "#"), "://")
		if path == want {
			return d
		}
	}
	return draft2020
}

func (d *document) link(n *jsontree.Node) {
	for i, v := range n.Items {
		d.parents[v] = link{n, "", i}
		d.link(v)
	}
	for _, m := range n.Members {
		d.parents[m.Value] = link{n, m.Key, -1}
		d.link(m.Value)
	}
}

// path is the JSON pointer of a node of the source.
func (d *document) path(n *jsontree.Node) string {
	var steps []link
	for {
		l, ok := d.parents[n]
		if !ok {
			break
		}
		steps = append(steps, l)
		n = l.up
	}
	p := ""
	for _, l := range slices.Backward(steps) {
		if l.index >= 0 {
			p = jsontree.Index(p, l.index)
		} else {
			p = jsontree.Step(p, l.key)
		}
	}
	return p
}

// Keywords whose values are schemas, by the form of the value.
var (
	single   = []string{"additionalProperties", "additionalItems", "items", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "not", "if", "then", "else", "contentSchema"}
	lists    = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	maps     = []string{"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
	notAsked = map[string]bool{"$defs": true, "definitions": true, "contentSchema": true}
)

// children calls f for each schema directly in n. With asked, definitions
// that only references reach are left out.
func children(n *jsontree.Node, asked bool, f func(key string, v *jsontree.Node)) {
	if n.Kind != jsontree.Object {
		return
	}
	isSchema := func(v *jsontree.Node) bool {
		return v.Kind == jsontree.Object || v.Kind == jsontree.True || v.Kind == jsontree.False
	}
	for _, m := range n.Members {
		if asked && notAsked[m.Key] {
			continue
		}
		switch {
		case slices.Contains(single, m.Key) && isSchema(m.Value):
			f(m.Key, m.Value)
		case slices.Contains(lists, m.Key) && m.Value.Kind == jsontree.Array:
			for _, v := range m.Value.Items {
				if isSchema(v) {
					f(m.Key, v)
				}
			}
		case slices.Contains(maps, m.Key) && m.Value.Kind == jsontree.Object:
			for _, e := range m.Value.Members {
				if isSchema(e.Value) {
					f(m.Key, e.Value)
				}
			}
		}
	}
}

// scan finds identifiers and anchors.
func (d *document) scan(n *jsontree.Node, base *url.URL) {
	if d.known[n] {
		return
	}
	d.known[n] = true
	if n.Kind == jsontree.Object && !(d.draft <= draft7 && n.Has("$ref")) {
		idKey := "$id"
		if d.draft == draft4 {
			idKey = "id"
		}
		if id := n.Get(idKey); id != nil && id.Kind == jsontree.String {
			if u, err := base.Parse(id.Str); err == nil {
				if u.Fragment != "" && d.draft <= draft7 {
					d.byURI[withFragment(u, u.Fragment)] = n
				} else {
					u.Fragment, u.RawFragment = "", ""
					base = u
					d.byURI[u.String()] = n
				}
			}
		}
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if a := n.Get(key); a != nil && a.Kind == jsontree.String {
				d.byURI[withFragment(base, a.Str)] = n
			}
		}
		d.dynamic = d.dynamic || n.Has("$dynamicAnchor") || n.Has("$recursiveAnchor")
	}
	d.base[n] = base
	children(n, false, func(_ string, v *jsontree.Node) { d.scan(v, base) })
}

func withFragment(u *url.URL, fragment string) string {
	c := *u
	c.Fragment, c.RawFragment = "", ""
	return c.String() + "#" + fragment
}

// target resolves a reference of n; nil when it leads nowhere we know.
func (d *document) target(n *jsontree.Node, ref string) *jsontree.Node {
	base := d.base[n]
	if base == nil {
		return nil
	}
	u, err := base.Parse(ref)
	if err != nil {
		return nil
	}
	fragment := u.Fragment
	c := *u
	c.Fragment, c.RawFragment = "", ""
	res := d.byURI[c.String()]
	if res == nil && c.String() == base.String() {
		res = d.root
	}
	switch {
	case fragment == "":
		return res
	case !strings.HasPrefix(fragment, "/"):
		return d.byURI[c.String()+"#"+fragment]
	case res == nil:
		return nil
	}
	t := res.At(fragment)
	if t != nil && !d.known[t] {
		d.scan(t, d.base[res])
	}
	return t
}

// refs lists the schemas that n refers to.
func (d *document) refs(n *jsontree.Node) []*jsontree.Node {
	if n.Kind != jsontree.Object {
		return nil
	}
	var out []*jsontree.Node
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if r := n.Get(key); r != nil && r.Kind == jsontree.String {
			if t := d.target(n, r.Str); t != nil {
				out = append(out, t)
			}
		}
	}
	return out
}

// walk collects the schemas an answer can meet.
func (d *document) walk(n *jsontree.Node) {
	if d.reached[n] {
		return
	}
	d.reached[n] = true
	d.reach = append(d.reach, n)
	for _, t := range d.refs(n) {
		d.walk(t)
	}
	if d.hidesSiblings(n) {
		return
	}
	children(n, true, func(_ string, v *jsontree.Node) { d.walk(v) })
}

func (d *document) hidesSiblings(n *jsontree.Node) bool {
	return d.draft <= draft7 && n.Kind == jsontree.Object && n.Has("$ref")
}

// visits bounds the schema with every reference expanded.
func (d *document) visits() *Problem {
	max := d.opt.Visits
	if max <= 0 {
		return nil
	}
	memo := map[*jsontree.Node]int{}
	open := map[*jsontree.Node]bool{}
	var count func(n *jsontree.Node) int
	count = func(n *jsontree.Node) int {
		if v, ok := memo[n]; ok {
			return v
		}
		if open[n] {
			return 1
		}
		open[n] = true
		total := 1
		add := func(v *jsontree.Node) {
			if total <= max {
				total += count(v)
			}
		}
		for _, t := range d.refs(n) {
			add(t)
		}
		if !d.hidesSiblings(n) {
			children(n, true, func(_ string, v *jsontree.Node) { add(v) })
		}
		open[n] = false
		memo[n] = min(total, max+1)
		return memo[n]
	}
	if count(d.root) <= max {
		return nil
	}
	// The smallest part that is too large by itself says the most.
	worst := d.root
	for n, v := range memo {
		if v > max && n.Start >= worst.Start && n.Kind == jsontree.Object {
			worst = n
		}
	}
	return &Problem{Construct: "$ref", Path: d.path(worst), Offset: worst.Start, Limit: "schema_visits",
		Reason: "with every $ref expanded the schema has more schema objects than schema_visits allows",
		Hint:   "use fewer nested references, or raise limits: schema_visits"}
}

// sorted is the list in the order of the source.
func (d *document) sorted() []Item {
	sort.SliceStable(d.items, func(i, j int) bool { return d.items[i].Offset < d.items[j].Offset })
	return d.items
}
