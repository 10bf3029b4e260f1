package validate

import (
	"net/url"
	"strings"
	"time"
)

// resource is one schema resource: a schema with an identity of its own.
type resource struct {
	root      *place
	id        string // absolute, without fragment
	base      *url.URL
	draft     draft
	anchors   map[string]*place
	dynamic   map[string]*place // the anchors that are $dynamicAnchor
	recursive bool              // $recursiveAnchor: true at its root
}

// document is the source of one schema with what scanning found in it.
type document struct {
	ix          *Index
	places      map[*value]*place // every schema found so far
	resources   map[string]*resource
	order       []*resource
	repeated    map[string]bool // ids that more than one schema has
	patterns    map[string]*pattern
	timeout     time.Duration // of one match
	patternCost int
}

// baseURI is the identity of a schema that does not give one.
const baseURI = "agentgraph:///schema"

func (d *document) fail(p *place, key int32, construct, reason string, more ...string) *SchemaError {
	line, col := position(d.ix.src, int(key))
	return &SchemaError{
		Path: p.pointer(maxErrorPointer, more...), Construct: construct, Reason: reason,
		Line: line, Column: col,
	}
}

// scan checks the form of a schema and everything below it, and notes its
// resources and anchors. p.res is the resource around it, nil for the root.
func (d *document) scan(p *place) *SchemaError {
	if d.places[p.v] != nil {
		return nil
	}
	d.places[p.v] = p
	if p.v.kind != kObject {
		if p.res == nil {
			return d.enter(p, draft2020, "", p.key)
		}
		return nil
	}
	if err := d.identify(p); err != nil {
		return err
	}
	dr := p.res.draft
	for i, name := range p.v.obj.names {
		s, ok := shapeOf(name, dr)
		if !ok {
			continue
		}
		m := p.member(i)
		if err := d.check(m, name, s, dr); err != nil {
			return err
		}
	}
	return nil
}

// identify finds the resource a schema object belongs to, which it may open
// itself, and registers its anchors.
func (d *document) identify(p *place) *SchemaError {
	outer := draft2020
	if p.res != nil {
		outer = p.res.draft
	}
	dr := outer
	if i := p.v.find("$schema"); i >= 0 && (p.res == nil || p.v.find("$id") >= 0 || p.v.find("id") >= 0) {
		m := &p.v.items[i]
		if m.kind != kString {
			return d.fail(p, p.v.obj.offs[i], "$schema", "'$schema' has to be a string", "$schema")
		}
		if dr = draftOf(m.text); dr == 0 {
			return d.fail(p, p.v.obj.offs[i], "$schema",
				"'$schema' names a dialect that is not known here; known are JSON Schema 2020-12, 2019-09, draft-07, draft-06 and draft-04", "$schema")
		}
	}
	id, key := d.idOf(p.v, dr)
	if p.res == nil {
		if err := d.enter(p, dr, id, max(key, p.key)); err != nil {
			return err
		}
	} else if id != "" {
		if err := d.enter(p, dr, id, key); err != nil {
			return err
		}
	}
	return d.anchors(p)
}

// idOf returns the identity a schema object gives itself, without an empty
// fragment, and where. A fragment alone is an anchor, not an identity.
func (d *document) idOf(v *value, dr draft) (string, int32) {
	if dr < draft2019 && v.find("$ref") >= 0 {
		return "", -1
	}
	i := v.find(dr.idKeyword())
	if i < 0 || v.items[i].kind != kString {
		return "", -1
	}
	id, _, _ := strings.Cut(v.items[i].text, "#")
	return id, v.obj.offs[i]
}

// enter opens a resource at p.
func (d *document) enter(p *place, dr draft, id string, key int32) *SchemaError {
	var base *url.URL
	if p.res == nil {
		base, _ = url.Parse(baseURI)
	} else {
		base = p.res.base
	}
	if id != "" {
		ref, err := url.Parse(id)
		if err != nil {
			return d.fail(p, key, dr.idKeyword(), "'"+dr.idKeyword()+"' is not a URI reference", dr.idKeyword())
		}
		base = join(base, ref)
	}
	res := &resource{root: p, id: base.String(), base: base, draft: dr, anchors: map[string]*place{}}
	if d.resources[res.id] != nil {
		// Generated schemas of the older drafts often repeat an id that
		// nothing refers to.
		if dr >= draft2019 {
			return d.fail(p, key, dr.idKeyword(), "two schemas have the same '"+dr.idKeyword()+"'", dr.idKeyword())
		}
		d.repeated[res.id] = true
	}
	if dr == draft2019 {
		if m := p.v.get("$recursiveAnchor"); m != nil && m.kind == kTrue {
			res.recursive = true
		}
	}
	p.res = res
	if !d.repeated[res.id] {
		d.resources[res.id] = res
	}
	d.order = append(d.order, res)
	return nil
}

// join resolves a reference against a base, also an opaque one like
// urn:uuid:…, which net/url leaves alone.
func join(base, ref *url.URL) *url.URL {
	if !ref.IsAbs() && base.Opaque != "" && ref.Path == "" && ref.Opaque == "" && ref.Host == "" {
		return base
	}
	u := base.ResolveReference(ref)
	u.Fragment, u.RawFragment = "", ""
	return u
}

func (d *document) anchors(p *place) *SchemaError {
	v, res := p.v, p.res
	add := func(name, kw string) *SchemaError {
		if old := res.anchors[name]; old != nil && old != p {
			return d.fail(p, v.obj.offs[v.find(kw)], kw, "two schemas have the same anchor", kw)
		}
		res.anchors[name] = p
		return nil
	}
	if res.draft < draft2019 {
		kw := res.draft.idKeyword()
		if id, ok := v.str(kw); ok && v.find("$ref") < 0 {
			if _, frag, _ := strings.Cut(id, "#"); frag != "" && frag[0] != '/' {
				return add(frag, kw)
			}
		}
		return nil
	}
	if name, ok := v.str("$anchor"); ok {
		if err := add(name, "$anchor"); err != nil {
			return err
		}
	}
	if name, ok := v.str("$dynamicAnchor"); ok && res.draft >= draft2020 {
		if err := add(name, "$dynamicAnchor"); err != nil {
			return err
		}
		if res.dynamic == nil {
			res.dynamic = map[string]*place{}
		}
		res.dynamic[name] = p
	}
	return nil
}

// resolve finds the place a reference points to. Everything outside the
// document is refused.
func (d *document) resolve(from *place, ref string) (*place, string) {
	uri, frag, _ := strings.Cut(ref, "#")
	res := from.res
	if uri != "" {
		u, err := url.Parse(uri)
		if err != nil {
			return nil, "is not a URI reference"
		}
		id := join(res.base, u).String()
		if d.repeated[id] {
			return nil, "names an id that more than one schema has"
		}
		if res = d.resources[id]; res == nil {
			return nil, "points outside this schema; nothing is fetched, so put the definition under '$defs' and refer to it there"
		}
	}
	frag, err := url.PathUnescape(frag)
	if err != nil {
		return nil, "has a fragment that is not percent-encoded correctly"
	}
	if frag == "" {
		return res.root, ""
	}
	if frag[0] != '/' {
		if p := res.anchors[frag]; p != nil {
			return p, ""
		}
		return nil, "names an anchor that is not in this schema"
	}
	tokens, ok := splitPointer(frag)
	if !ok {
		return nil, "holds a JSON pointer with a '~' that is not '~0' or '~1'"
	}
	p := res.root
	for _, t := range tokens {
		i := p.v.step(t)
		if i < 0 {
			return nil, "points at nothing in this schema"
		}
		next := d.places[&p.v.items[i]]
		if next == nil && p.v.kind == kObject {
			next = p.member(i)
		} else if next == nil {
			next = p.item(i)
		}
		p = next
	}
	return p, ""
}
