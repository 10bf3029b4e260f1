package lark

import (
	"maps"
	"slices"
	"strings"
)

// common holds the terminals of %import common, as regular expressions. The
// sets of texts are those of llguidance.
var common = map[string]string{
	"DIGIT":          `[0-9]`,
	"HEXDIGIT":       `[0-9A-Fa-f]`,
	"INT":            `[0-9]+`,
	"SIGNED_INT":     `[+-]?[0-9]+`,
	"DECIMAL":        `[0-9]+\.[0-9]*|\.[0-9]+`,
	"_EXP":           `[Ee][+-]?[0-9]+`,
	"FLOAT":          `([0-9]+\.[0-9]*|\.[0-9]+)([Ee][+-]?[0-9]+)?|[0-9]+[Ee][+-]?[0-9]+`,
	"SIGNED_FLOAT":   `[+-]?(([0-9]+\.[0-9]*|\.[0-9]+)([Ee][+-]?[0-9]+)?|[0-9]+[Ee][+-]?[0-9]+)`,
	"NUMBER":         `([0-9]+\.?[0-9]*|\.[0-9]+)([Ee][+-]?[0-9]+)?`,
	"SIGNED_NUMBER":  `[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([Ee][+-]?[0-9]+)?`,
	"ESCAPED_STRING": `"([^"\\]|\\.)*"`,
	"LCASE_LETTER":   `[a-z]`,
	"UCASE_LETTER":   `[A-Z]`,
	"LETTER":         `[A-Za-z]`,
	"WORD":           `[A-Za-z]+`,
	"CNAME":          `[A-Z_a-z][0-9A-Z_a-z]*`,
	"WS_INLINE":      `[\t ]+`,
	"WS":             `[\t\n\f\r ]+`,
	"CR":             `\r`,
	"LF":             `\n`,
	"NEWLINE":        `(\r?\n)+`,
	"SH_COMMENT":     `#[^\n]*`,
	"CPP_COMMENT":    `//[^\n]*`,
	"C_COMMENT":      `/\*([^*]|\*+[^*/])*\*+/`,
	"SQL_COMMENT":    `--[^\n]*`,
}

func (b *builder) imports(pos Pos, im *pImport) Item {
	out := &Import{Pos: pos}
	at := posOf(im.Pos)
	path := im.Path
	if im.Local || path[0] != "common" {
		b.fail(at, cFile, "only terminals of common can be imported; copy the definition into this grammar",
			"%s cannot be imported: grammars are not read from other files", short(strings.Join(path, ".")))
		return out
	}
	if len(im.Names) > 0 {
		if len(path) > 1 {
			b.fail(at, cImport, "write %import common (INT, WS)", "common has no parts")
		}
		for _, n := range im.Names {
			b.common(posOf(n.Pos), n.Name)
			out.Names = append(out.Names, ImportName{Pos: posOf(n.Pos), Name: n.Name})
		}
		return out
	}
	if len(path) != 2 {
		b.fail(at, cImport, "write %import common.INT", "an import names one terminal of common")
		return out
	}
	b.common(at, path[1])
	name := ImportName{Pos: at, Name: path[1]}
	if im.Alias != path[1] {
		name.Alias = im.Alias
	}
	out.Names = []ImportName{name}
	return out
}

func (b *builder) common(p Pos, name string) {
	if _, ok := common[name]; !ok {
		b.fail(p, cImport, "common has "+strings.Join(slices.Sorted(maps.Keys(common)), ", "), "common has no terminal %s", short(name))
	}
}

// terminal is an imported name as if it stood in the grammar.
func (n ImportName) terminal() *Terminal {
	rx := &Regexp{Pos: n.Pos, Source: strings.ReplaceAll(common[n.Name], "/", `\/`)}
	seq := &Sequence{Pos: n.Pos, Exprs: []Expr{rx}}
	return &Terminal{Pos: n.Pos, Name: n.Local(), Body: &Alternatives{
		Pos: n.Pos, Alts: []*Alternative{{Pos: n.Pos, And: []*Sequence{seq}}},
	}}
}
