package lark

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readAgain(t testing.TB, text string) *Grammar {
	t.Helper()
	g, errs := read(text, split(text))
	if len(errs) > 0 {
		t.Fatalf("%v\n%s", errs[0], text)
	}
	return g
}

// TestPrintCorpus: what is printed reads as the same tree.
func TestPrintCorpus(t *testing.T) {
	n := 0
	for _, s := range corpus(t) {
		g, err := Parse([]byte(s.src))
		if err != nil {
			continue
		}
		n++
		again, err := Parse([]byte(g.String()))
		if err != nil {
			t.Errorf("%s: %v\n%s", s.name, err, g)
			continue
		}
		if d := cmp.Diff(dump(g), dump(again)); d != "" {
			t.Errorf("%s (-read +read again):\n%s\n%s", s.name, d, g)
		}
	}
	if n < 150 {
		t.Errorf("only %d grammars compared", n)
	}
}

// TestPrintRandom does it for random trees of every construct.
func TestPrintRandom(t *testing.T) {
	seed := uint64(1)
	for range 300 {
		seed++
		g := (&treeGen{rand.New(rand.NewPCG(seed, 7)), 0}).grammar()
		text := g.String()
		if d := cmp.Diff(dump(g), dump(readAgain(t, text))); d != "" {
			t.Fatalf("seed %d (-tree +read):\n%s\n%s", seed, d, text)
		}
	}
}

// treeGen makes trees such as the reader makes: no repetition directly inside
// another, no alias without a name.
type treeGen struct {
	*rand.Rand
	depth int
}

func pick[T any](g *treeGen, list ...T) T { return list[g.IntN(len(list))] }

func (g *treeGen) grammar() *Grammar {
	out := &Grammar{}
	for range 1 + g.IntN(4) {
		out.Items = append(out.Items, g.item())
	}
	return out
}

func (g *treeGen) item() Item {
	switch g.IntN(8) {
	case 0, 1, 2:
		r := &Rule{Name: g.ruleName(), Keep: g.IntN(5) == 0, Inline: g.IntN(5) == 0, Param: g.IntN(5) == 0, Body: g.alternatives()}
		if r.Inline && r.Name[0] == '_' {
			r.Name = r.Name[1:]
		}
		for g.IntN(3) == 0 {
			r.Attrs = append(r.Attrs, g.attr())
		}
		if attrsClash(r) {
			r.Attrs = nil
		}
		return r
	case 3, 4:
		return &Terminal{Name: g.termName(), Body: g.alternatives()}
	case 5:
		return &Ignore{Body: g.alternatives()}
	case 6:
		im := &Import{Names: []ImportName{{Name: "INT"}}}
		if g.IntN(2) == 0 {
			im.Names = append(im.Names, ImportName{Name: "WS"})
		} else if g.IntN(2) == 0 {
			im.Names[0].Alias = pick(g, g.ruleName(), g.termName())
		}
		return im
	}
	return &Options{Source: pick(g, `{}`, `{"no_forcing": true}`, "{\n  \"ignore_once\": false\n}")}
}

func attrsClash(r *Rule) bool {
	b := &builder{}
	b.attrPairs(r)
	return len(b.errs) > 0
}

func (g *treeGen) attr() Attr {
	switch g.IntN(6) {
	case 0:
		return Attr{Key: "capture"}
	case 1:
		return Attr{Key: pick(g, "capture", "stop_capture"), Text: g.text(), Named: true}
	case 2:
		return Attr{Key: "lazy"}
	case 3:
		return Attr{Key: pick(g, "stop", "suffix"), Value: g.value()}
	case 4:
		return Attr{Key: "max_tokens", Tokens: g.Uint64()}
	}
	return Attr{Key: "temperature", Number: float64(float32(g.ExpFloat64()))}
}

func (g *treeGen) ruleName() string { return pick(g, "start", "a", "b-c", "_x1", "rule_2", "i", "if") }
func (g *treeGen) termName() string { return pick(g, "A", "B-C", "_X1", "TOKEN_2", "I") }
func (g *treeGen) text() string {
	return pick(g, "", "a", `"\`, "\n\t\r\x00\x7f", "日本😀", "'", "/", "//", "#", "i", "\u0085\u2028")
}

func (g *treeGen) alternatives() *Alternatives {
	g.depth++
	defer func() { g.depth-- }()
	out := &Alternatives{}
	for range 1 + g.IntN(3) {
		alt := &Alternative{}
		for len(alt.And) == 0 || g.IntN(6) == 0 {
			seq := &Sequence{}
			for range g.IntN(4) {
				seq.Exprs = append(seq.Exprs, g.expr())
			}
			alt.And = append(alt.And, seq)
		}
		if g.IntN(5) == 0 {
			alt.Alias = g.ruleName()
		}
		if g.IntN(6) == 0 {
			alt.If = g.cond()
		}
		out.Alts = append(out.Alts, alt)
	}
	return out
}

func (g *treeGen) expr() Expr {
	x := g.atom()
	if g.IntN(6) == 0 {
		x = &Not{X: x}
	}
	if g.IntN(3) == 0 {
		r := &Repeat{X: x, Min: pick(g, 0, 0, 1, 2, 7), Max: -1}
		if g.IntN(2) == 0 {
			r.Max = r.Min + g.IntN(3)
		}
		return r
	}
	return x
}

func (g *treeGen) atom() Expr {
	if g.depth < 3 {
		switch g.IntN(8) {
		case 0:
			return &Group{Body: g.alternatives()}
		case 1:
			return &Maybe{Body: g.alternatives()}
		case 2:
			g.depth += 2
			defer func() { g.depth -= 2 }()
			return &Nested{Grammar: g.grammar()}
		}
	}
	return g.value()
}

func (g *treeGen) value() Expr {
	switch g.IntN(9) {
	case 0:
		return &Literal{Value: g.text(), Fold: g.IntN(3) == 0}
	case 1:
		return &Regexp{Source: pick(g, "a", `\/`, `[^"\n]+`, "a\nb", ` # `, `日|本`, `(?i:x)`), Flags: pick(g, "", "i", "ms", "xu")}
	case 2:
		return &Range{From: pick(g, "a", "0", `"`), To: pick(g, "z", "日", "😀")}
	case 3:
		return &Special{Text: pick(g, "<|eos|>", "<[1-2,5]>", "<[*]>", "<日>")}
	case 4:
		return &GrammarRef{Name: pick(g, "x", "a-b", "7", "A_1")}
	case 5:
		return &JSON{Source: pick(g, `{}`, `true`, "{\"a\": [\"}\", \"\\\"{\"],\n \"b\": {}}")}
	case 6:
		return &RegexExt{Source: pick(g, `{"substring_words": "a b"}`, `{"substring_chunks": ["}", "{"]}`)}
	case 7:
		return &Ref{Name: g.ruleName(), Param: g.param()}
	}
	return &Ref{Name: pick(g, g.ruleName(), g.termName())}
}

func (g *treeGen) bits() *Param {
	if g.IntN(2) == 0 {
		return &Param{Func: "_"}
	}
	from := g.IntN(63)
	return &Param{Func: "[]", From: from, To: from + 1 + g.IntN(64-from)}
}

func (g *treeGen) param() *Param {
	switch g.IntN(4) {
	case 0:
		return &Param{Number: g.Uint64()}
	case 1:
		return &Param{Func: "_"}
	}
	name := pick(g, sortedFuncs(paramFuncs)...)
	return g.call(name, paramFuncs[name])
}

func (g *treeGen) cond() *Param {
	for {
		name := pick(g, sortedFuncs(condFuncs)...)
		if c := g.call(name, condFuncs[name]); name != "true" {
			return c
		}
	}
}

func (g *treeGen) call(name string, want []string) *Param {
	out := &Param{Func: name}
	for _, kind := range want {
		switch kind {
		case "bits":
			out.Args = append(out.Args, g.bits())
		case "value":
			out.Args = append(out.Args, &Param{Number: g.Uint64()})
		case "bit":
			out.Args = append(out.Args, &Param{Number: uint64(g.IntN(64))})
		case "cond":
			if g.IntN(2) == 0 {
				out.Args = append(out.Args, &Param{Func: "true"})
			} else {
				out.Args = append(out.Args, &Param{Func: "bit_set", Args: []*Param{{Number: 3}}})
			}
		}
	}
	return out
}

func sortedFuncs(m map[string][]string) []string {
	n := map[string]int{}
	for k := range m {
		n[k] = 0
	}
	return sortedKeys(n)
}
