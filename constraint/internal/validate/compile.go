package validate

import "strings"

// maxSchemaDepth and maxSchemaNumber bound a schema's source whatever the
// caller allows.
const (
	maxSchemaDepth  = 256
	maxSchemaNumber = 1000
)

// JSON compiles a JSON Schema. The error is a *SchemaError.
func JSON(source []byte, opt Options) (*Schema, error) {
	ix, serr := newIndex(string(source), maxSchemaDepth, maxSchemaNumber)
	if serr != nil {
		return nil, &SchemaError{Path: serr.Path, Construct: "JSON", Reason: serr.Reason, Line: serr.Line, Column: serr.Column}
	}
	d := &document{
		ix: ix, places: map[*value]*place{}, resources: map[string]*resource{}, repeated: map[string]bool{}, patterns: map[string]*pattern{},
		timeout: opt.MatchTimeout,
	}
	if d.timeout <= 0 {
		d.timeout = DefaultMatchTimeout
	}
	root := &place{v: ix.root, key: ix.root.off}
	switch ix.root.kind {
	case kObject, kTrue, kFalse:
	default:
		return nil, d.fail(root, root.key, "schema", "a schema has to be a JSON object or a boolean")
	}
	if err := d.scan(root); err != nil {
		return nil, err
	}
	c := &compiler{document: d, done: map[*value]*schema{}, formats: opt.AssertFormats}
	s, err := c.compile(root)
	if err == nil {
		err = c.link()
	}
	if err == nil {
		err = c.cycles()
	}
	if err != nil {
		return nil, err
	}
	opt.Limits = opt.Limits.orStandard()
	return &Schema{root: s, opt: opt, timeout: d.timeout, dynamic: len(c.dynamic) > 0}, nil
}

type compiler struct {
	*document
	done    map[*value]*schema
	all     []*schema
	dynamic []*schema // schemas with a $dynamicRef or $recursiveRef
	formats bool
}

// compile returns the schema at a place, compiling it once. References may
// lead back to a schema that is still being compiled.
func (c *compiler) compile(p *place) (*schema, *SchemaError) {
	if s := c.done[p.v]; s != nil {
		return s, nil
	}
	if known := c.places[p.v]; known != nil {
		p = known // it knows its own resource
	}
	s := &schema{
		at: p, minLength: -1, maxLength: -1, minProperties: -1, maxProperties: -1,
		minItems: -1, maxItems: -1, minContains: -1, maxContains: -1,
	}
	c.done[p.v] = s
	c.all = append(c.all, s)
	if c.places[p.v] == nil {
		// Reached by a reference only: not yet held against its form.
		if p.v.kind != kObject && p.v.kind != kTrue && p.v.kind != kFalse {
			return nil, c.fail(p, p.key, "$ref", "a '$ref' points here, and this is no schema")
		}
		if err := c.scan(p); err != nil {
			return nil, err
		}
	}
	s.draft = p.res.draft
	switch p.v.kind {
	case kTrue:
		s.fixed = 1
		return s, nil
	case kFalse:
		s.fixed = -1
		return s, nil
	}
	if err := c.references(s, p); err != nil {
		return nil, err
	}
	if s.draft < draft2019 && s.ref != nil {
		return s, nil // the siblings of $ref are hidden
	}
	for i, name := range p.v.obj.names {
		if !s.draft.has(name) {
			continue
		}
		if err := c.keyword(s, p.member(i), name); err != nil {
			return nil, err
		}
	}
	c.containment(s, p)
	s.objectSide = s.minProperties >= 0 || s.maxProperties >= 0 || s.required != nil || s.props != nil ||
		s.patternProps != nil || s.additional != nil || s.propertyNames != nil || s.dependents != nil
	s.listSide = s.minItems >= 0 || s.maxItems >= 0 || s.unique || s.prefix != nil || s.items != nil || s.contains != nil
	return s, nil
}

func (c *compiler) references(s *schema, p *place) *SchemaError {
	for _, kw := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref, ok := p.v.str(kw)
		if !ok || !s.draft.has(kw) {
			continue
		}
		i := p.v.find(kw)
		target, why := c.resolve(p, ref)
		if target == nil {
			return c.fail(p, p.v.obj.offs[i], kw, "'"+kw+"' "+why, kw)
		}
		t, err := c.compile(target)
		if err != nil {
			return err
		}
		if kw == "$ref" {
			s.ref = t
			continue
		}
		s.dynamicRef = &dynamicRef{target: t}
		c.dynamic = append(c.dynamic, s)
	}
	return nil
}

// keyword compiles one member, whose form has been checked.
func (c *compiler) keyword(s *schema, m *place, name string) (err *SchemaError) {
	v := m.v
	switch name {
	case "type":
		if v.kind == kString {
			s.types = typeBits[v.text]
		}
		for i := range v.items {
			s.types |= typeBits[v.items[i].text]
		}
	case "const":
		v.freeze()
		s.consts = v
	case "enum":
		s.enum = newEnum(v.items)
	case "format":
		if c.formats {
			s.format = formats[v.text]
		}
	case "minLength":
		s.minLength = v.count()
	case "maxLength":
		s.maxLength = v.count()
	case "pattern":
		s.pattern, _ = c.pattern(v.text)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		c.bound(s, m, name)
	case "multipleOf":
		s.multipleOf = v
	case "minProperties":
		s.minProperties = v.count()
	case "maxProperties":
		s.maxProperties = v.count()
	case "required":
		s.required = texts(v)
	case "properties":
		s.propNames = v.obj.names
		s.props, err = c.schemaMap(m)
	case "patternProperties":
		err = c.patternProperties(s, m)
	case "additionalProperties":
		s.additional, err = c.compile(m)
	case "propertyNames":
		s.propertyNames, err = c.compile(m)
	case "dependencies", "dependentRequired", "dependentSchemas":
		err = c.dependents(s, m, name)
	case "unevaluatedProperties":
		s.unevaluatedProps, err = c.compile(m)
	case "minItems":
		s.minItems = v.count()
	case "maxItems":
		s.maxItems = v.count()
	case "uniqueItems":
		s.unique = v.kind == kTrue
	case "items":
		if v.kind == kArray {
			s.prefix, err = c.schemaList(m)
		} else {
			s.items, err = c.compile(m)
		}
	case "prefixItems":
		s.prefix, err = c.schemaList(m)
	case "additionalItems":
		if items := m.parent.v.get("items"); items != nil && items.kind == kArray {
			s.items, err = c.compile(m)
		}
	case "contains":
		s.contains, err = c.compile(m)
	case "unevaluatedItems":
		s.unevaluatedItems, err = c.compile(m)
	case "allOf":
		s.allOf, err = c.schemaList(m)
	case "anyOf":
		s.anyOf, err = c.schemaList(m)
	case "oneOf":
		s.oneOf, err = c.schemaList(m)
	case "not":
		s.not, err = c.compile(m)
	case "if":
		s.ifs, err = c.compile(m)
	case "then":
		s.thens, err = c.compile(m)
	case "else":
		s.elses, err = c.compile(m)
	}
	return err
}

// bound compiles a numeric bound. In draft-04 the exclusive ones are flags
// beside the others.
func (c *compiler) bound(s *schema, m *place, name string) {
	b := bound{keyword: name, limit: m.v}
	switch name {
	case "minimum", "maximum":
		b.below, b.equal = name == "maximum", true
		flag := "exclusiveMinimum"
		if b.below {
			flag = "exclusiveMaximum"
		}
		if f := m.parent.v.get(flag); f != nil && f.kind == kTrue && s.draft == draft4 {
			b.equal = false
		}
	default:
		if s.draft == draft4 {
			return
		}
		b.below = name == "exclusiveMaximum"
	}
	s.bounds = append(s.bounds, b)
}

// containment takes minContains and maxContains, which mean nothing alone.
func (c *compiler) containment(s *schema, p *place) {
	if s.contains == nil {
		return
	}
	if m := p.v.get("minContains"); m != nil && s.draft.has("minContains") {
		s.minContains = m.count()
	}
	if m := p.v.get("maxContains"); m != nil && s.draft.has("maxContains") {
		s.maxContains = m.count()
	}
}

func (c *compiler) schemaMap(m *place) (map[string]*schema, *SchemaError) {
	out := make(map[string]*schema, len(m.v.items))
	for i, name := range m.v.obj.names {
		s, err := c.compile(m.member(i))
		if err != nil {
			return nil, err
		}
		out[name] = s
	}
	return out, nil
}

func (c *compiler) schemaList(m *place) ([]*schema, *SchemaError) {
	out := make([]*schema, len(m.v.items))
	for i := range m.v.items {
		s, err := c.compile(m.item(i))
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

func (c *compiler) patternProperties(s *schema, m *place) *SchemaError {
	for i, source := range m.v.obj.names {
		sub, err := c.compile(m.member(i))
		if err != nil {
			return err
		}
		re, _ := c.pattern(source)
		s.patternProps = append(s.patternProps, patternProp{source, re, sub})
	}
	return nil
}

func (c *compiler) dependents(s *schema, m *place, kw string) *SchemaError {
	if s.dependents == nil {
		s.dependents = make(map[string]dependent, len(m.v.items))
	}
	for i, name := range m.v.obj.names {
		dep, seen := s.dependents[name]
		if !seen {
			s.dependentNames = append(s.dependentNames, name)
		}
		if v := &m.v.items[i]; v.kind == kArray {
			dep.required = append(dep.required, requirement{kw, texts(v)})
		} else {
			sub, err := c.compile(m.member(i))
			if err != nil {
				return err
			}
			dep.schemas = append(dep.schemas, sub)
		}
		s.dependents[name] = dep
	}
	return nil
}

func texts(v *value) []string {
	out := make([]string, len(v.items))
	for i := range v.items {
		out[i] = v.items[i].text
	}
	return out
}

// link gives every $dynamicRef and $recursiveRef the schemas that may take
// its target's place.
func (c *compiler) link() *SchemaError {
	byAnchor := map[string]map[*resource]*schema{}
	for i := 0; i < len(c.dynamic); i++ { // compiling an override may add more
		s := c.dynamic[i]
		target := s.dynamicRef.target.at
		anchor := ""
		if s.draft == draft2019 {
			if target.res.root != target || !target.res.recursive {
				continue
			}
		} else {
			ref, _ := s.at.v.str("$dynamicRef")
			if anchor, _ = target.v.str("$dynamicAnchor"); anchor == "" || !strings.HasSuffix(ref, "#"+anchor) {
				continue // not an anchor, or not a dynamic one
			}
		}
		if byAnchor[anchor] == nil {
			overrides, err := c.overrides(anchor)
			if err != nil {
				return err
			}
			byAnchor[anchor] = overrides
		}
		s.dynamicRef.override = byAnchor[anchor]
	}
	return nil
}

// overrides compiles what each resource has for a dynamic anchor; an empty
// name stands for $recursiveAnchor.
func (c *compiler) overrides(anchor string) (map[*resource]*schema, *SchemaError) {
	out := map[*resource]*schema{}
	for _, res := range c.order {
		p := res.dynamic[anchor]
		if anchor == "" && res.recursive {
			p = res.root
		}
		if p == nil {
			continue
		}
		s, err := c.compile(p)
		if err != nil {
			return nil, err
		}
		out[res] = s
	}
	return out, nil
}
