package lark

import (
	"slices"
	"sort"
	"sync"
	"unicode"
	"unicode/utf8"
)

// runeSet is a set of characters as sorted pairs [from, to, from, to, …].
type runeSet struct {
	pairs []rune
	// bytes says that the pairs are byte values (Unicode is off).
	bytes bool
	// seen holds the long sets that were added, by their first pair.
	seen []*rune
	// unknown names a Unicode property this package has no table for.
	unknown string
}

func newSet(pairs []rune) runeSet { return runeSet{pairs: normal(pairs)} }

func (s *runeSet) add(p *rparser, at int, from, to rune, f *rflags) {
	s.addByte(p, at, from, to, false, f)
}

func (s *runeSet) addByte(p *rparser, at int, from, to rune, byteEscape bool, f *rflags) {
	if !f.u && to > 0x7f && !byteEscape {
		p.fail(at, "without Unicode a class holds ASCII only", "leave out the flag -u or the option allow_invalid_utf8")
	}
	pairs := []rune{from, to}
	if f.i {
		pairs = fold(pairs, f.u)
	}
	s.pairs = append(s.pairs, pairs...)
}

func (s *runeSet) union(o runeSet) {
	if len(o.pairs) > 16 { // the shared tables: once is enough
		if slices.Contains(s.seen, &o.pairs[0]) {
			return
		}
		s.seen = append(s.seen, &o.pairs[0])
	}
	s.pairs = append(s.pairs, o.pairs...)
	s.bytes = s.bytes || o.bytes
	if s.unknown == "" {
		s.unknown = o.unknown
	}
}

func (s runeSet) combine(op string, o runeSet) runeSet {
	a, b := normal(s.pairs), normal(o.pairs)
	out := runeSet{bytes: s.bytes || o.bytes, unknown: s.unknown + o.unknown}
	switch op {
	case "&&":
		out.pairs = intersect(a, b)
	case "--":
		out.pairs = intersect(a, runeSet{pairs: b, bytes: out.bytes}.negate().pairs)
	case "~~":
		nb := runeSet{pairs: b, bytes: out.bytes}.negate().pairs
		na := runeSet{pairs: a, bytes: out.bytes}.negate().pairs
		out.pairs = normal(append(intersect(a, nb), intersect(b, na)...))
	}
	return out
}

func (s runeSet) negate() runeSet {
	limit := rune(utf8.MaxRune)
	if s.bytes {
		limit = 255
	}
	out := runeSet{bytes: s.bytes, unknown: s.unknown}
	next := rune(0)
	pairs := normal(s.pairs)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] > next {
			out.pairs = append(out.pairs, next, pairs[i]-1)
		}
		next = pairs[i+1] + 1
	}
	if next <= limit {
		out.pairs = append(out.pairs, next, limit)
	}
	return out
}

func (s runeSet) contains(r rune) bool {
	for i := 0; i < len(s.pairs); i += 2 {
		if s.pairs[i] <= r && r <= s.pairs[i+1] {
			return true
		}
	}
	return false
}

// normal sorts and joins pairs.
func normal(pairs []rune) []rune {
	type pair struct{ from, to rune }
	list := make([]pair, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, pair{pairs[i], pairs[i+1]})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].from < list[j].from })
	var out []rune
	for _, x := range list {
		if n := len(out); n > 0 && x.from <= out[n-1]+1 {
			out[n-1] = max(out[n-1], x.to)
			continue
		}
		out = append(out, x.from, x.to)
	}
	return out
}

func intersect(a, b []rune) []rune {
	var out []rune
	for i, j := 0, 0; i < len(a) && j < len(b); {
		from, to := max(a[i], b[j]), min(a[i+1], b[j+1])
		if from <= to {
			out = append(out, from, to)
		}
		if a[i+1] < b[j+1] {
			i += 2
		} else {
			j += 2
		}
	}
	return out
}

// folding lists the characters that have another case, each with the next
// of its circle.
var folding = sync.OnceValue(func() []rune {
	var out []rune
	for r := rune(0); r <= 0x1FFFF; r++ {
		if unicode.SimpleFold(r) != r {
			out = append(out, r)
		}
	}
	return out
})

// fold adds the other cases of the characters in pairs.
func fold(pairs []rune, full bool) []rune {
	out := slices.Clone(pairs)
	if len(pairs) == 2 && pairs[0] == pairs[1] {
		for r := unicode.SimpleFold(pairs[0]); r != pairs[0]; r = unicode.SimpleFold(r) {
			if full || r <= 0x7f && pairs[0] <= 0x7f {
				out = append(out, r, r)
			}
		}
		return normal(out)
	}
	for _, r := range folding() {
		if !full && r > 0x7f {
			break
		}
		for i := 0; i < len(pairs); i += 2 {
			if r < pairs[i] || r > pairs[i+1] {
				continue
			}
			for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
				if full || o <= 0x7f {
					out = append(out, o, o)
				}
			}
			break
		}
	}
	return normal(out)
}

func table(tabs ...*unicode.RangeTable) []rune {
	var out []rune
	for _, t := range tabs {
		for _, r := range t.R16 {
			for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
				if r.Stride == 1 {
					out = append(out, c, rune(r.Hi))
					break
				}
				out = append(out, c, c)
			}
		}
		for _, r := range t.R32 {
			for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
				if r.Stride == 1 {
					out = append(out, c, rune(r.Hi))
					break
				}
				out = append(out, c, c)
			}
		}
	}
	return normal(out)
}
