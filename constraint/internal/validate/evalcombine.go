package validate

// combined applies the keywords that bring other schemas to the same value.
func (r *run) combined(s *schema, v *value, own *marks, quiet bool) bool {
	ok := true
	// and applies a schema that has to hold; false means that judging of
	// this value ends.
	and := func(t *schema) bool {
		if !r.within(t, v, own, quiet) {
			ok = false
		}
		return ok || !quiet && !r.stopped
	}
	if s.ref != nil && !and(s.ref) {
		return false
	}
	if s.dynamicRef != nil && !and(r.dynamicTarget(s.dynamicRef)) {
		return false
	}
	for _, t := range s.allOf {
		if !and(t) {
			return false
		}
	}
	if s.anyOf != nil && !r.anyOf(s, v, own, quiet) {
		ok = false
	}
	if s.oneOf != nil && (ok || !quiet) && !r.oneOf(s, v, own, quiet) {
		ok = false
	}
	if s.not != nil && (ok || !quiet) && r.eval(s.not, v, nil, true) {
		ok = r.fail(s, quiet, "not")
	}
	if r.stopped || !ok && quiet {
		return false
	}
	if s.ifs != nil {
		branch := s.elses
		if r.within(s.ifs, v, own, true) {
			branch = s.thens
		}
		if r.stopped || branch != nil && !and(branch) {
			return false
		}
	}
	if s.dependents != nil && v.kind == kObject {
		stop := false
		r.eachDependent(s, v, func(_ string, d dependent) {
			for _, t := range d.schemas {
				stop = stop || !and(t)
			}
		})
		if stop {
			return false
		}
	}
	return ok
}

// dynamicTarget resolves a dynamic reference from the outermost resource
// inwards.
func (r *run) dynamicTarget(d *dynamicRef) *schema {
	if d.override != nil {
		for _, res := range r.scope {
			if o := d.override[res]; o != nil {
				return o
			}
		}
	}
	return d.target
}

func (r *run) anyOf(s *schema, v *value, own *marks, quiet bool) bool {
	matched := false
	for _, t := range s.anyOf {
		if r.within(t, v, own, true) {
			if matched = true; own == nil {
				return true
			}
		}
		if r.stopped {
			return false
		}
	}
	return matched || r.noBranch(s, s.anyOf, v, quiet, "anyOf")
}

func (r *run) oneOf(s *schema, v *value, own *marks, quiet bool) bool {
	matched := false
	for _, t := range s.oneOf {
		if !r.within(t, v, own, true) {
			if r.stopped {
				return false
			}
			continue
		}
		if matched {
			return r.fail(s, quiet, "oneOf")
		}
		matched = true
	}
	return matched || r.noBranch(s, s.oneOf, v, quiet, "oneOf")
}

// noBranch notes that no alternative holds. When just one of them could be
// meant, what is wrong with that one says more than the list.
func (r *run) noBranch(s *schema, branches []*schema, v *value, quiet bool, kw string) bool {
	if quiet || r.stopped {
		return false
	}
	var meant *schema
	for _, t := range branches {
		if t.plausible(v) {
			if meant != nil {
				return r.fail(s, quiet, kw)
			}
			meant = t
		}
	}
	if meant == nil {
		return r.fail(s, quiet, kw)
	}
	before := len(r.findings)
	if r.eval(meant, v, nil, false); len(r.findings) == before {
		return r.fail(s, quiet, kw)
	}
	return false
}

// plausible reports whether a value has the type of an alternative and the
// constants by which alternatives are told apart.
func (s *schema) plausible(v *value) bool {
	for n := 0; s.ref != nil && n < 16; n++ {
		if s.types != 0 || s.props != nil {
			break
		}
		s = s.ref
	}
	if s.fixed < 0 || !s.admits(v) {
		return false
	}
	if v.kind == kObject && len(s.props) > 0 {
		for i, name := range v.obj.names {
			if p := s.props[name]; p != nil && !p.admitsConstant(&v.items[i]) {
				return false
			}
		}
	}
	return true
}

func (s *schema) admits(v *value) bool {
	if s.types != 0 && s.types&kindBits[v.kind] == 0 && !(v.kind == kNumber && s.types&8 != 0 && v.integer()) {
		return false
	}
	return s.admitsConstant(v)
}

func (s *schema) admitsConstant(v *value) bool {
	if s.consts != nil && !equal(s.consts, v, always) {
		return false
	}
	return s.enum == nil || len(s.enum.byHash) > 1 || s.enum.has(v, always)
}
