package ecma

// class reads a character class.
func (t *translator) class() {
	at := t.pos
	t.pos++
	negated := t.has("^")
	if negated {
		t.pos++
	}
	var body string
	for {
		if t.pos >= len(t.src) {
			t.fail("an unclosed class", at)
		}
		if t.has("]") {
			t.pos++
			break
		}
		set, lo, single := t.member()
		if !t.has("-") || t.pos+1 < len(t.src) && t.src[t.pos+1] == ']' {
			body += set
			continue
		}
		from := t.pos
		t.pos++
		if t.pos >= len(t.src) {
			t.fail("an unclosed class", at)
		}
		set2, hi, single2 := t.member()
		switch {
		case single && single2 && lo > hi:
			t.fail("a range out of order", from)
		case single && single2:
			body += literal(lo) + "-" + literal(hi)
		default: // a set is no end of a range; the dash means itself
			body += set + literal('-') + set2
		}
	}
	switch {
	case body == "" && negated:
		t.out.WriteString(`[\x{0}-\x{10ffff}]`)
	case body == "":
		t.out.WriteString(`[^\x{0}-\x{10ffff}]`)
	case negated:
		t.out.WriteString("[^" + body + "]")
	default:
		t.out.WriteString("[" + body + "]")
	}
}

// member reads one member of a class: its spelling, and the character if it
// is a single one.
func (t *translator) member() (set string, r rune, single bool) {
	if !t.has(`\`) {
		r = t.next()
		return literal(r), r, true
	}
	if set, negated, ok := t.set(); ok {
		if negated {
			set = "[^" + set + "]"
		}
		return set, 0, false
	}
	if t.pos+1 < len(t.src) {
		switch c := t.src[t.pos+1]; {
		case c == 'b':
			t.pos += 2
			return literal('\b'), '\b', true
		case c == '-':
			t.pos += 2
			return literal('-'), '-', true
		case c == 'p' || c == 'P':
			return t.property(), 0, false
		case c == 'B' || c == 'k' || c >= '1' && c <= '9':
			t.fail(`the escape \`+string(rune(c))+" in a class", t.pos)
		}
	}
	r = t.char()
	return literal(r), r, true
}
