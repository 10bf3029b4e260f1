package lark

// json draws a value of the schema of %json.
func (s *sampler) json(x *JSON) {
	sc, err := readSchema(x.Source)
	if err != nil {
		s.refuse(x.Pos, cJSON, "%s in %%json", err)
	}
	s.jsonValue(sc, 0)
}

func (s *sampler) jsonValue(sc *schema, depth int) {
	write := func(text string) { s.out = append(s.out, text...) }
	if sc.values != nil {
		write(sc.values[s.IntN(len(sc.values))])
		return
	}
	kinds := sc.kinds
	if depth > 4 && len(kinds) > 4 {
		kinds = kinds[:4] // of any value: no more arrays and objects
	}
	some := func(min, max int) int {
		n := min
		for (max < 0 || n < max) && depth < 5 && s.IntN(2) == 0 {
			n++
		}
		return n
	}
	switch kinds[s.IntN(len(kinds))] {
	case "string":
		var text []rune
		for range some(sc.minLength, sc.maxLength) {
			text = append(text, s.char([]rune{'\t', '\n', ' ', '~', 0xa0, 0x3000}))
		}
		write(quoteJSON(string(text)))
	case "integer":
		write([]string{"0", "-1", "42", "9007199254740991"}[s.IntN(4)])
	case "number":
		write([]string{"0", "-1.5", "42e3", "0.125E-2"}[s.IntN(4)])
	case "boolean":
		write([]string{"true", "false"}[s.IntN(2)])
	case "null":
		write("null")
	case "array":
		items := sc.items
		if items == nil {
			items = anything()
		}
		write("[")
		for i := range some(sc.minItems, sc.maxItems) {
			if i > 0 {
				write(",")
			}
			s.jsonValue(items, depth+1)
		}
		write("]")
	case "object":
		s.jsonObject(sc, depth)
	}
}

func (s *sampler) jsonObject(sc *schema, depth int) {
	sep := "{"
	pair := func(key string, v *schema) {
		s.out = append(s.out, sep+key+":"...)
		s.jsonValue(v, depth+1)
		sep = ","
	}
	if sc.open {
		for _, key := range []string{`"a"`, `"b c"`, `"é"`}[:s.IntN(4)] {
			pair(key, anything())
		}
	}
	for _, p := range sc.props {
		if p.required || s.IntN(2) == 0 {
			pair(p.key, p.value)
		}
	}
	if sep == "{" {
		s.out = append(s.out, '{')
	}
	s.out = append(s.out, '}')
}
