package validate

// cycles refuses a schema that applies itself to the same value again: it
// could never be decided.
func (c *compiler) cycles() *SchemaError {
	for _, s := range c.all {
		if err := c.visit(s); err != nil {
			return err
		}
	}
	return nil
}

const (
	unseen = iota
	open
	closed
)

// visit walks the schemas applied in place, depth first. It keeps its own
// stack: a chain of references may be as long as the schema.
func (c *compiler) visit(start *schema) *SchemaError {
	if start.state != unseen {
		return nil
	}
	type frame struct {
		s    *schema
		next []*schema
	}
	start.state = open
	stack := []frame{{start, start.inPlace()}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.next) == 0 {
			top.s.state = closed
			stack = stack[:len(stack)-1]
			continue
		}
		s := top.next[0]
		top.next = top.next[1:]
		switch s.state {
		case open:
			p, kw := top.s.at, ""
			for _, ref := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
				if p.v.find(ref) >= 0 {
					kw = ref
					break
				}
			}
			if kw == "" {
				return c.fail(p, p.key, "$ref", "this schema applies itself to the same value without end")
			}
			return c.fail(p, p.v.obj.offs[p.v.find(kw)], kw,
				"'"+kw+"' comes back to a schema that is already being applied to the same value; it consumes nothing of the answer and never ends", kw)
		case unseen:
			s.state = open
			stack = append(stack, frame{s, s.inPlace()})
		}
	}
	return nil
}

// inPlace lists the schemas that s applies to the very value it judges.
func (s *schema) inPlace() []*schema {
	var out []*schema
	add := func(list ...*schema) {
		for _, t := range list {
			if t != nil {
				out = append(out, t)
			}
		}
	}
	add(s.ref, s.not, s.ifs, s.thens, s.elses)
	if s.dynamicRef != nil {
		add(s.dynamicRef.target)
	}
	add(s.allOf...)
	add(s.anyOf...)
	add(s.oneOf...)
	for _, name := range s.dependentNames {
		add(s.dependents[name].schemas...)
	}
	return out
}
