package validate

import (
	"slices"
	"strings"
	"unicode"
)

// runeRange is an inclusive range of code points.
type runeRange struct{ lo, hi rune }

// runeSet is a sorted list of ranges that do not touch.
type runeSet []runeRange

var (
	allRunes      = runeSet{{0, unicode.MaxRune}}
	decimalDigits = fromTables(unicode.Nd)
	whiteSpace    = fromTables(unicode.White_Space)
	alphabetic    = fromTables(unicode.L, unicode.Nl, unicode.Other_Alphabetic)
	wordRunes     = fromTables(unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc, unicode.Join_Control)
)

func fromTables(tables ...*unicode.RangeTable) runeSet {
	var s runeSet
	for _, t := range tables {
		for _, r := range t.R16 {
			s = appendStride(s, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			s = appendStride(s, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return s.normal()
}

func appendStride(s runeSet, lo, hi, stride rune) runeSet {
	if stride == 1 {
		return append(s, runeRange{lo, hi})
	}
	for r := lo; r <= hi; r += stride {
		s = append(s, runeRange{r, r})
	}
	return s
}

// normal sorts and joins the ranges, in place.
func (s runeSet) normal() runeSet {
	slices.SortFunc(s, func(a, b runeRange) int { return int(a.lo - b.lo) })
	out := s[:0]
	for _, r := range s {
		if n := len(out); n > 0 && r.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, r.hi)
		} else {
			out = append(out, r)
		}
	}
	return out
}

func (s runeSet) has(r rune) bool {
	_, ok := slices.BinarySearchFunc(s, r, func(e runeRange, r rune) int {
		switch {
		case e.hi < r:
			return -1
		case e.lo > r:
			return 1
		}
		return 0
	})
	return ok
}

func (s runeSet) or(t runeSet) runeSet {
	return append(append(make(runeSet, 0, len(s)+len(t)), s...), t...).normal()
}

func (s runeSet) negated() runeSet {
	var out runeSet
	next := rune(0)
	for _, r := range s {
		if r.lo > next {
			out = append(out, runeRange{next, r.lo - 1})
		}
		next = r.hi + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, runeRange{next, unicode.MaxRune})
	}
	return out
}

func (s runeSet) and(t runeSet) runeSet {
	var out runeSet
	for i, j := 0, 0; i < len(s) && j < len(t); {
		lo, hi := max(s[i].lo, t[j].lo), min(s[i].hi, t[j].hi)
		if lo <= hi {
			out = append(out, runeRange{lo, hi})
		}
		if s[i].hi < t[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

func (s runeSet) minus(t runeSet) runeSet { return s.and(t.negated()) }

// lastFolding is above every code point that has another case.
const lastFolding = 0x1E944

// folded adds the other cases of every member (simple case folding).
func (s runeSet) folded() runeSet {
	out := append(runeSet(nil), s...)
	for _, r := range s {
		for c := r.lo; c <= min(r.hi, lastFolding); c++ {
			for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
				out = append(out, runeRange{f, f})
			}
		}
	}
	return out.normal()
}

// property finds a Unicode class by its name in any of its usual spellings:
// a general category, a script or one of a few properties.
func property(name string) (runeSet, bool) {
	key, val, pair := strings.Cut(name, "=")
	if !pair {
		key, val, pair = strings.Cut(name, ":")
	}
	kind := ""
	if pair {
		switch plain(key) {
		case "generalcategory", "gc":
			kind = "category"
		case "script", "sc":
			kind = "script"
		default:
			return nil, false
		}
		name = val
	}
	want := plain(name)
	if kind == "" {
		switch want {
		case "any":
			return allRunes, true
		case "ascii":
			return runeSet{{0, 0x7f}}, true
		case "assigned":
			return fromTables(unicode.C, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z), true
		case "alphabetic", "alpha":
			return alphabetic, true
		case "uppercase", "upper":
			return fromTables(unicode.Lu, unicode.Other_Uppercase), true
		case "lowercase", "lower":
			return fromTables(unicode.Ll, unicode.Other_Lowercase), true
		case "whitespace", "wspace", "space":
			return whiteSpace, true
		}
	}
	if kind != "script" {
		for n, t := range unicode.Categories {
			if plain(n) == want {
				return fromTables(t), true
			}
		}
		for alias, n := range unicode.CategoryAliases {
			if plain(alias) == want {
				return fromTables(unicode.Categories[n]), true
			}
		}
	}
	if kind != "category" {
		for n, t := range unicode.Scripts {
			if plain(n) == want {
				return fromTables(t), true
			}
		}
	}
	if kind == "" {
		for n, t := range unicode.Properties {
			if plain(n) == want {
				return fromTables(t), true
			}
		}
	}
	return nil, false
}

// plain drops what loose matching of property names ignores.
func plain(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
}
