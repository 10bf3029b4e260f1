package validate

// object applies the keywords for objects that look at members.
func (r *run) object(s *schema, v *value, own *marks, quiet bool) bool {
	ok := true
	n := int64(len(v.items))
	if s.minProperties >= 0 && n < s.minProperties {
		ok = r.fail(s, quiet, "minProperties")
	}
	if s.maxProperties >= 0 && n > s.maxProperties {
		ok = r.fail(s, quiet, "maxProperties")
	}
	ok = r.present(s, v, s.required, quiet, "required") && ok
	if !ok && (quiet || r.stopped) {
		return false
	}
	if !r.members(s, v, own, quiet) {
		ok = false
	}
	if s.propertyNames != nil && (ok || !quiet) {
		for _, name := range v.names() {
			if !r.inner(s.propertyNames, nameValue(name), step{name: name, named: true}, quiet) {
				if ok = false; quiet || r.stopped {
					return false
				}
			}
		}
	}
	if s.dependents != nil && (ok || !quiet) {
		r.eachDependent(s, v, func(name string, d dependent) {
			for _, req := range d.required {
				ok = r.present(s, v, req.names, quiet, req.keyword, name) && ok
			}
		})
	}
	return ok
}

func (v *value) names() []string {
	if v.obj == nil {
		return nil
	}
	return v.obj.names
}

// present checks that members are there.
func (r *run) present(s *schema, v *value, names []string, quiet bool, tokens ...string) bool {
	ok := true
	for i, name := range names {
		if v.find(name) >= 0 {
			continue
		}
		if ok = false; quiet || r.stopped {
			return false
		}
		r.fail(s, quiet, append(tokens[:len(tokens):len(tokens)], ordinal(i))...)
	}
	return ok
}

// eachDependent calls f for each member that asks for others, in the order of
// the schema or of the answer, whichever is shorter.
func (r *run) eachDependent(s *schema, v *value, f func(string, dependent)) {
	if len(s.dependentNames) <= len(v.items) {
		for _, name := range s.dependentNames {
			if v.find(name) >= 0 {
				f(name, s.dependents[name])
			}
		}
		return
	}
	for _, name := range v.names() {
		if d, ok := s.dependents[name]; ok {
			f(name, d)
		}
	}
}

// members applies properties, patternProperties and additionalProperties.
func (r *run) members(s *schema, v *value, own *marks, quiet bool) bool {
	ok := true
	if s.patternProps == nil && s.additional == nil {
		if len(s.props) < len(v.items) {
			for _, name := range s.propNames {
				i := v.find(name)
				if i < 0 {
					continue
				}
				if own != nil {
					own.set(i)
				}
				if !r.inner(s.props[name], &v.items[i], step{name: name, named: true}, quiet) {
					if ok = false; quiet || r.stopped {
						return false
					}
				}
			}
			return ok
		}
		if s.props == nil {
			return true
		}
	}
	for i, name := range v.names() {
		at := step{name: name, named: true}
		evaluated, good := false, true
		if p := s.props[name]; p != nil {
			evaluated = true
			good = r.inner(p, &v.items[i], at, quiet)
		}
		for j := range s.patternProps {
			pp := &s.patternProps[j]
			if !r.spend(1) {
				return false
			}
			if r.match(pp.re, name) {
				evaluated = true
				good = r.inner(pp.schema, &v.items[i], at, quiet) && good
			}
			if r.stopped {
				return false
			}
		}
		if !evaluated && s.additional != nil {
			evaluated = true
			good = r.inner(s.additional, &v.items[i], at, quiet)
		}
		if evaluated && own != nil {
			own.set(i)
		}
		if !good {
			if ok = false; quiet || r.stopped {
				return false
			}
		}
	}
	return ok
}

// array applies the keywords for arrays.
func (r *run) array(s *schema, v *value, own *marks, quiet bool) bool {
	ok := true
	n := int64(len(v.items))
	if s.minItems >= 0 && n < s.minItems {
		ok = r.fail(s, quiet, "minItems")
	}
	if s.maxItems >= 0 && n > s.maxItems {
		ok = r.fail(s, quiet, "maxItems")
	}
	if !ok && (quiet || r.stopped) {
		return false
	}
	for i := range v.items {
		sub := s.items
		if i < len(s.prefix) {
			sub = s.prefix[i]
		}
		if sub == nil {
			break
		}
		if own != nil {
			own.set(i)
		}
		if !r.inner(sub, &v.items[i], step{index: i}, quiet) {
			if ok = false; quiet || r.stopped {
				return false
			}
		}
	}
	if s.unique && len(v.items) > 1 {
		if i := v.duplicate(r.unit); i >= 0 {
			r.path = append(r.path, step{index: i})
			ok = r.fail(s, quiet, "uniqueItems")
			r.path = r.path[:len(r.path)-1]
		}
	}
	if s.contains != nil && (ok || !quiet) && !r.stopped {
		ok = r.containing(s, v, own, quiet) && ok
	}
	return ok
}

// containing applies contains with minContains and maxContains.
func (r *run) containing(s *schema, v *value, own *marks, quiet bool) bool {
	least := s.minContains
	if least < 0 {
		least = 1
	}
	var found int64
	for i := range v.items {
		if r.inner(s.contains, &v.items[i], step{index: i}, true) {
			found++
			if own != nil && s.draft >= draft2020 {
				own.set(i)
			}
		}
		if r.stopped {
			return false
		}
		if found >= least && s.maxContains < 0 && own == nil {
			return true
		}
	}
	ok := true
	if found < least {
		kw := "contains"
		if s.minContains >= 0 {
			kw = "minContains"
		}
		ok = r.fail(s, quiet, kw)
	}
	if s.maxContains >= 0 && found > s.maxContains {
		ok = r.fail(s, quiet, "maxContains")
	}
	return ok
}
