package lark

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// property reads what follows \p or \P: a letter or {name}, {name=value}.
func (p *rparser) property(at int, negated bool, f *rflags) runeSet {
	if !f.u {
		p.fail(at, `\p needs Unicode`, "leave out the flag -u and the option allow_invalid_utf8")
	}
	p.space(f)
	if p.eof() {
		p.fail(at, `nothing follows \p`, `write \p{L}`)
	}
	name := ""
	if p.take("{") {
		end := strings.IndexByte(p.src[p.i:], '}')
		if end < 0 {
			p.fail(at, "the { is never closed", "close it with }")
		}
		name = p.src[p.i : p.i+end]
		p.i += end + 1
	} else {
		name = string(p.next())
	}
	key, value, hasValue := name, "", false
	if k, v, ok := strings.Cut(name, "!="); ok {
		key, value, hasValue, negated = k, v, true, !negated
	} else if i := strings.IndexAny(name, ":="); i >= 0 {
		key, value, hasValue = name[:i], name[i+1:], true
	}
	// A name is looked up once.
	cached := cacheKey{loose(key) + "=" + loose(value), negated, f.i}
	if set, ok := properties.Load(cached); ok {
		return set.(runeSet)
	}
	var pairs []rune
	known, extended := false, false
	if !hasValue {
		pairs, known = namedSet(key)
	} else {
		switch loose(key) {
		case "generalcategory", "gc", "script", "sc":
			pairs, known = namedSet(value)
		case "scriptextensions", "scx", "age", "graphemeclusterbreak", "gcb", "wordbreak", "wb", "sentencebreak", "sb":
			extended = true // no tables for these
		default:
			p.fail(at, "there is no Unicode property "+short(key), "")
		}
	}
	if named := !hasValue && otherProperty(key) || hasValue && (otherProperty(value) || extended); !known && !named {
		p.fail(at, "there is no Unicode property "+short(name), `examples are \p{L}, \p{Lu}, \p{Nd} and \p{Greek}`)
	}
	if f.i && known {
		pairs = fold(pairs, true)
	}
	set := runeSet{pairs: pairs}
	if !known {
		set.unknown = name
	}
	if negated {
		set = set.negate()
	}
	if known {
		properties.Store(cached, set)
	}
	return set
}

type cacheKey struct {
	name          string
	negated, fold bool
}

// properties holds the sets of known properties, a few hundred at most.
var properties sync.Map

// loose drops what does not count in the name of a property.
func loose(s string) string {
	s = strings.ToLower(s)
	s = strings.NewReplacer(" ", "", "_", "", "-", "").Replace(s)
	if len(s) > 2 {
		s = strings.TrimPrefix(s, "is")
	}
	return s
}

var namedTables = sync.OnceValue(func() map[string][]*unicode.RangeTable {
	m := map[string][]*unicode.RangeTable{}
	for _, tabs := range []map[string]*unicode.RangeTable{unicode.Properties, unicode.Scripts, unicode.Categories} {
		for name, t := range tabs {
			m[loose(name)] = []*unicode.RangeTable{t}
		}
	}
	for long, name := range unicode.CategoryAliases {
		m[loose(long)] = m[loose(name)]
	}
	m["alphabetic"] = []*unicode.RangeTable{unicode.L, unicode.Nl, unicode.Other_Alphabetic}
	m["alpha"] = m["alphabetic"]
	m["lowercase"] = []*unicode.RangeTable{unicode.Ll, unicode.Other_Lowercase}
	m["uppercase"] = []*unicode.RangeTable{unicode.Lu, unicode.Other_Uppercase}
	m["whitespace"] = []*unicode.RangeTable{unicode.White_Space}
	m["space"] = m["whitespace"]
	m["lower"], m["upper"] = m["lowercase"], m["uppercase"]
	return m
})

func namedSet(name string) ([]rune, bool) {
	switch n := loose(name); n {
	case "any":
		return []rune{0, utf8.MaxRune}, true
	case "ascii":
		return []rune{0, 0x7f}, true
	case "assigned":
		unassigned := table(namedTables()["cn"]...)
		return runeSet{pairs: unassigned}.negate().pairs, true
	default:
		tabs, ok := namedTables()[n]
		if !ok {
			return nil, false
		}
		return intersect(table(tabs...), []rune{0, 0xD7FF, 0xE000, utf8.MaxRune}), true
	}
}

// otherProperties are names that llguidance knows and this package has no
// table for: they can be read, not translated.
const otherProperties = ` bidimirrored caseignorable cased changeswhencasefolded changeswhencasemapped
 changeswhenlowercased changeswhentitlecased changeswhenuppercased defaultignorablecodepoint di emoji
 emojicomponent emojimodifier emojimodifierbase emojipresentation extendedpictographic graphemebase grbase
 graphemeextend grext graphemelink idcontinue idc idstart ids xidcontinue xidc xidstart xids math
 cwcf cwcm cwl cwt cwu ci compex bidic bidim bidicontrol joinc dash hex ahex `

// scriptCodes are the short names of scripts (ISO 15924), which Go does not
// list.
const scriptCodes = ` adlm aghb arab armi armn avst bali bamu bass batk beng bhks bopo brah brai bugi buhd cakm cans cari
 cher chrs copt cpmn cprt cyrl deva diak dogr dsrt dupl egyp elba elym ethi gara geor glag gong gonm
 goth gran grek gujr gukh guru hang hani hano hatr hebr hira hluw hmng hmnp hrkt hung ital java kali
 kana khar khmr khoj kits knda krai kthi lana laoo latn lepc limb lina linb lyci lydi mahj maka mand
 mani marc medf mend merc mero mlym mong mroo mtei mult mymr nagm nand narb nbat nkoo nshu ogam olck
 onao orkh orya osge osma ougr palm pauc perm phag phli phlp phnx plrd prti qaac qaai rjng rohg runr
 samr sarb saur sgnw shaw shrd sidd sind sinh sogd sogo sora soyo sund sunu sylo syrc tagb takr tale
 talu taml tang tavt telu tfng tglg thaa tibt tirh tnsa todr tutg ugar vaii vith wara wcho xpeo xsux
 yezi yiii zanb zinh zyyy zzzz `

func otherProperty(name string) bool {
	return slices.Contains(strings.Fields(otherProperties+scriptCodes), loose(name))
}
