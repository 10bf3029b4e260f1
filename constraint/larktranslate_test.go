//go:build cgo && !nonative

package constraint

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentgraph/constraint/internal/bnftest"
	"agentgraph/constraint/lark"

	"github.com/rogpeppe/go-internal/txtar"
)

// greedy names the grammars whose translations take more than llguidance: a
// terminal in them can run on into what follows, and llguidance reads it as
// far as it goes.
var greedy = map[string]string{
	"code-02.lark":    "a comment can hold the rest of its line",
	"code-08.lark":    "a quoted cell can hold the quote that ends it",
	"unicode-02.lark": "a Greek sign can be one of the first characters or the one after",
}

// TestLarkTranslations: texts drawn from a grammar, and texts a little beside
// it, are judged alike by llguidance and by the translations.
func TestLarkTranslations(t *testing.T) {
	needNative(t)
	samples := larkCorpus(t)
	ar, err := txtar.ParseFile("lark/testdata/translate.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ar.Files {
		samples = append(samples, larkSample{"accept", f.Name, string(f.Data)})
	}
	drawn, beside, refused := 0, 0, 0
	for i, s := range samples {
		if s.verdict != "accept" {
			continue
		}
		g, err := lark.Parse([]byte(s.src))
		if err != nil {
			t.Fatal(err)
		}
		judges := translations(t, g)
		if judges == nil {
			continue
		}
		c := mustCompile(t, Lark, s.src)
		r := rand.New(rand.NewPCG(uint64(i), 5))
		for range 12 {
			text, err := g.Sample(r)
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			if len(text) > 400 {
				continue
			}
			drawn++
			compare(t, s, c, judges, text)
			for range 3 {
				m := mutate(r, text)
				beside++
				if !compare(t, s, c, judges, m) {
					refused++
				}
			}
		}
	}
	t.Logf("%d texts drawn, %d beside, %d of these refused", drawn, beside, refused)
	if drawn < 1500 || refused < 1000 {
		t.Errorf("only %d texts drawn and %d refused", drawn, refused)
	}
}

func translations(t *testing.T, g *lark.Grammar) map[string]*bnftest.Grammar {
	t.Helper()
	a, err := g.GBNF()
	if err != nil {
		return nil
	}
	b, err := g.EBNF()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*bnftest.Grammar{}
	if out["GBNF"], err = bnftest.Parse(a, bnftest.GBNF); err != nil {
		t.Fatalf("%v\n%s", err, a)
	}
	if out["EBNF"], err = bnftest.Parse(b, bnftest.EBNF); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return out
}

// compare reports whether llguidance takes text, and fails when a translation
// judges otherwise without a reason.
func compare(t *testing.T, s larkSample, c *Constraint, judges map[string]*bnftest.Grammar, text string) bool {
	t.Helper()
	want := c.Validate(context.Background(), text).Valid
	for name, j := range judges {
		got := j.Accepts(text)
		switch {
		case got == want:
		case got && greedy[s.name] != "":
		// Translations leave out spaces in JSON, numbers beyond 17 digits
		// and ignored text at the end of a grammar.
		case want && strings.Contains(s.src, "%json"):
		case want && strings.Contains(s.src, "%ignore"):
			if len(text) > 0 && !endsIgnored(j, text) {
				t.Errorf("%s: %s refuses %q\n%s", s.name, name, text, s.src)
			}
		default:
			t.Errorf("%s: %q: llguidance says %v, %s %v\n%s", s.name, text, want, name, got, s.src)
		}
	}
	return want
}

// endsIgnored reports whether text is one that j takes once spaces are taken
// out.
func endsIgnored(j *bnftest.Grammar, text string) bool {
	if j.Accepts(strings.TrimRight(text, " \t\r\n_")) {
		return true
	}
	for i := range text {
		if strings.ContainsAny(text[i:i+1], " \t\r\n_") && j.Accepts(text[:i]+text[i+1:]) {
			return true
		}
	}
	return false
}

// mutate changes one character of text.
func mutate(r *rand.Rand, text string) string {
	runes := []rune(text)
	pool := append([]rune("ab 0\"(é\nxZ,1]"), runes...)
	c := pool[r.IntN(len(pool))]
	i := r.IntN(len(runes) + 1)
	switch {
	case r.IntN(3) == 0 && i < len(runes):
		runes = slices.Delete(runes, i, i+1)
	case r.IntN(2) == 0 && i < len(runes):
		runes[i] = c
	default:
		runes = slices.Insert(runes, i, c)
	}
	return string(runes)
}

// TestLarkTokenLimits: where text is judged, a limit of tokens is none, also
// in a nested grammar, but for the limit 0.
func TestLarkTokenLimits(t *testing.T) {
	needNative(t)
	c := mustCompile(t, Lark, "start: \"a\" %lark {\n  start: b c\n  b[max_tokens=1]: /x+/\n  c[max_tokens=0]: /y+/\n}\n")
	for text, want := range map[string]bool{"ax": true, "axxxx": true, "a": false, "axy": false} {
		if got := valid(c, text); got != want {
			t.Errorf("%q is valid: %v", text, got)
		}
	}
}
