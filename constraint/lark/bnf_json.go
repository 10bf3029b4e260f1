package lark

import "unicode/utf8"

// Rules for %json: compact values, numbers of at most 17 digits and 16
// decimals (an open number can run on for ever), strings without \u escapes.

// json translates the schema of %json.
func (t *translator) json(x *JSON) *bnode {
	s, err := readSchema(x.Source)
	if err != nil {
		t.refuse(x.Pos, cJSON, "send the schema itself, or write the format as rules", "%s in %%json", err)
	}
	j := &jsonRules{t: t, at: x.Pos}
	return j.schema(s)
}

type jsonRules struct {
	t  *translator
	at Pos
}

// shared returns a rule that all schemas use, made once.
func (j *jsonRules) shared(name string, body func() *bnode) *bnode {
	out := j.t.out
	if n, ok := out.json[name]; ok {
		return ref(n)
	}
	n := out.add(name, j.at, empty)
	out.json[name] = n
	out.rules[n] = body()
	return ref(n)
}

func (j *jsonRules) char() *bnode {
	return j.shared("json-char", func() *bnode {
		return alt(charSet(plainChars()), seq(lit(`\`), charSet(normal([]rune(`""\\bbffnnrrtt`)))))
	})
}

// plainChars stand for themselves in a JSON string.
func plainChars() []rune {
	return []rune{' ', '!', '#', '[', ']', '~', 0x80, utf8.MaxRune}
}

func (j *jsonRules) string(min, max int) *bnode {
	return seq(lit(`"`), rep(j.char(), min, max), lit(`"`))
}

func (j *jsonRules) integer() *bnode {
	return j.shared("json-int", func() *bnode {
		return seq(opt(lit("-")), alt(lit("0"), seq(charSet([]rune{'1', '9'}), rep(charSet([]rune{'0', '9'}), 0, 16))))
	})
}

func (j *jsonRules) number() *bnode {
	return j.shared("json-number", func() *bnode {
		digit := charSet([]rune{'0', '9'})
		return seq(j.integer(), opt(seq(lit("."), rep(digit, 1, 16))),
			opt(seq(charSet([]rune{'E', 'E', 'e', 'e'}), opt(charSet([]rune{'+', '+', '-', '-'})), rep(digit, 1, 3))))
	})
}

// value is any JSON.
func (j *jsonRules) value() *bnode {
	return j.shared("json-value", func() *bnode { return j.kinds(anything()) })
}

func (j *jsonRules) schema(s *schema) *bnode {
	if s.values == nil {
		return j.kinds(s)
	}
	var alts []*bnode
	for _, v := range s.values {
		alts = append(alts, lit(v))
	}
	return alt(alts...)
}

func (j *jsonRules) kinds(s *schema) *bnode {
	var alts []*bnode
	for _, k := range s.kinds {
		switch k {
		case "string":
			alts = append(alts, j.string(s.minLength, s.maxLength))
		case "integer":
			alts = append(alts, j.integer())
		case "number":
			alts = append(alts, j.number())
		case "boolean":
			alts = append(alts, lit("true"), lit("false"))
		case "null":
			alts = append(alts, lit("null"))
		case "array":
			alts = append(alts, j.array(s))
		case "object":
			alts = append(alts, j.object(s))
		}
	}
	return alt(alts...)
}

func (j *jsonRules) array(s *schema) *bnode {
	item := j.value
	if s.items != nil {
		item = func() *bnode { return j.schema(s.items) }
	}
	return seq(lit("["), list(item(), s.minItems, s.maxItems), lit("]"))
}

// list is min to max times x with commas between.
func list(x *bnode, min, max int) *bnode {
	if max == 0 {
		return empty
	}
	most := max
	if max > 0 {
		most--
	}
	least := min
	if min > 0 {
		least--
	}
	out := seq(x, rep(seq(lit(","), x), least, most))
	if min == 0 {
		return opt(out)
	}
	return out
}

func (j *jsonRules) object(s *schema) *bnode {
	if s.open {
		pair := j.shared("json-pair", func() *bnode { return seq(j.string(0, -1), lit(":"), j.value()) })
		return seq(lit("{"), list(pair, 0, -1), lit("}"))
	}
	var pairs []*bnode
	for _, p := range s.props {
		pairs = append(pairs, seq(lit(p.key+":"), j.schema(p.value)))
	}
	// after[i] is what may follow when a member was written before i, none[i]
	// when there was none yet.
	after, none := empty, empty
	for i := len(pairs) - 1; i >= 0; i-- {
		comma := seq(lit(","), pairs[i])
		if s.props[i].required {
			none = seq(pairs[i], after)
			after = seq(comma, after)
			continue
		}
		none = alt(seq(pairs[i], after), none)
		after = seq(opt(comma), after)
		if i > 0 {
			after = ref(j.t.out.add("json-more", j.at, after))
		}
	}
	return seq(lit("{"), none, lit("}"))
}
