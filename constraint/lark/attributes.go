package lark

// attr returns the attribute of that key, the last one if there are several.
func (r *Rule) attr(key string) *Attr {
	for i := len(r.Attrs) - 1; i >= 0; i-- {
		if r.Attrs[i].Key == key {
			return &r.Attrs[i]
		}
	}
	return nil
}

// emptyStop reports stop="" (or suffix=""), which ends at the end token.
func (r *Rule) emptyStop() bool {
	for _, key := range []string{"stop", "suffix"} {
		if a := r.attr(key); a != nil {
			if l, ok := a.Value.(*Literal); ok && l.Value == "" {
				return true
			}
		}
	}
	return false
}

// isLazy reports whether the rule's body is one terminal that ends as soon
// as it may.
func (r *Rule) isLazy() bool {
	return (r.attr("stop") != nil || r.attr("suffix") != nil) && !r.emptyStop() || r.attr("lazy") != nil
}

// asTerminal says whether the body of r is read as one terminal, and whether
// it is read at all.
func (r *Rule) asTerminal() (terminal, read bool) {
	if m := r.attr("max_tokens"); m != nil && m.Tokens == 0 {
		return false, false
	}
	if r.attr("stop") != nil || r.attr("suffix") != nil || r.attr("lazy") != nil {
		return true, true
	}
	if r.attr("max_tokens") == nil && r.attr("temperature") == nil {
		return false, true
	}
	switch r.Body.single().(type) {
	case *GrammarRef, *JSON, *Nested:
		return false, true
	}
	return true, true
}

// lostRepeat returns the attribute under which llguidance reads one grammar
// and leaves out that it is repeated.
func (r *Rule) lostRepeat() *Attr {
	a := r.attr("temperature")
	if a == nil {
		a = r.attr("max_tokens")
	}
	if a == nil || r.Body.single() == nil {
		return nil
	}
	if _, repeated := r.Body.Alts[0].And[0].Exprs[0].(*Repeat); !repeated {
		return nil
	}
	return a
}

// single returns the one expression that a is, or nil.
func (a *Alternatives) single() Expr {
	if len(a.Alts) == 1 && a.Alts[0].If == nil && len(a.Alts[0].And) == 1 && len(a.Alts[0].And[0].Exprs) == 1 {
		x := a.Alts[0].And[0].Exprs[0]
		if r, ok := x.(*Repeat); ok {
			return r.X // llguidance looks at the atom alone
		}
		return x
	}
	return nil
}

// terminalKey is the attribute that makes the body of r a terminal.
func (r *Rule) terminalKey() string {
	for _, key := range []string{"stop", "suffix", "lazy", "max_tokens"} {
		if r.attr(key) != nil {
			return key
		}
	}
	return "temperature"
}
