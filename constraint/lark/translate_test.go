package lark

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"agentgraph/constraint/internal/bnftest"

	"github.com/rogpeppe/go-internal/txtar"
)

// translatable lists the grammars that translations are tried on: those of
// the corpus that can be read, and testdata/translate.txtar.
func translatable(t testing.TB) []sample {
	t.Helper()
	ar, err := txtar.ParseFile("testdata/translate.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var out []sample
	for _, f := range ar.Files {
		out = append(out, sample{"accept", f.Name, string(f.Data)})
	}
	for _, s := range corpus(t) {
		if s.verdict == "accept" || s.verdict == "vocabulary" {
			out = append(out, s)
		}
	}
	return out
}

// bothDialects translates g; the error says why it cannot be done.
func bothDialects(t testing.TB, g *Grammar) (map[bnftest.Dialect]string, error) {
	t.Helper()
	a, err1 := g.GBNF()
	b, err2 := g.EBNF()
	if (err1 == nil) != (err2 == nil) {
		t.Errorf("the dialects differ: %v, %v", err1, err2)
	}
	return map[bnftest.Dialect]string{bnftest.GBNF: a, bnftest.EBNF: b}, err1
}

// TestTranslations: every text drawn from a grammar is accepted by its
// translations, which the judge reads as strictly as the engines.
func TestTranslations(t *testing.T) {
	var refused []string
	tried, drawn := 0, 0
	for _, s := range translatable(t) {
		g := mustParse(t, s.src)
		texts, err := bothDialects(t, g)
		if err != nil {
			refused = append(refused, s.name+": "+err.Error())
			checkPosition(t, s, err.(*Error))
			continue
		}
		tried++
		judges := map[bnftest.Dialect]*bnftest.Grammar{}
		for d, text := range texts {
			if judges[d], err = bnftest.Parse(text, d); err != nil {
				t.Fatalf("%s: %v\n%s\n%s", s.name, err, s.src, text)
			}
		}
		r := rand.New(rand.NewPCG(uint64(tried), 2))
		for range 25 {
			text, err := g.Sample(r)
			if err != nil {
				t.Fatalf("%s: translated, and no text can be drawn: %v", s.name, err)
			}
			drawn++
			for d, j := range judges {
				if !j.Accepts(text) {
					t.Fatalf("%s: %v refuses %.200q\n%s\n%s", s.name, d, text, s.src, texts[d])
				}
			}
			if len(text) > 3000 {
				break
			}
		}
	}
	if tried < 150 || drawn < 3000 {
		t.Errorf("only %d grammars and %d texts", tried, drawn)
	}
	golden(t, "testdata/untranslatable.golden", refused)
}

// TestTranslationsRefuse: what the grammar does not allow, its translations
// do not allow.
func TestTranslationsRefuse(t *testing.T) {
	for _, test := range []struct {
		src      string
		yes, no  []string
		readable string // the GBNF, when its looks matter
	}{
		{"start: \"yes\" | \"no\"\n", []string{"yes", "no"}, []string{"", "ye", "yess", "yesno"},
			"root ::= start\nstart ::= \"yes\" | \"no\"\n"},
		{"start: item (\",\" item)*\nitem: /[a-z]{2,3}/ \"!\"?\n", []string{"ab", "abc!,de"}, []string{"a", "abcd", "ab,", ",ab"},
			"root ::= start\nstart ::= item (\",\" item)*\nitem ::= [a-z]{2,3} \"!\"?\n"},
		{"start: sum\nsum: sum \"+\" N | N\nN: /[0-9]/\n", []string{"1", "1+2+3"}, []string{"", "+", "1+", "+1", "12"},
			"root ::= start\nstart ::= sum\nsum ::= N sum-more\nN ::= [0-9]\nsum-more ::= (\"+\" N)*\n"},
		{"start: e\ne: e OP e | /[0-9]/\nOP: \"+\" | \"*\"\n", []string{"1", "1+2*3"}, []string{"1+", "12", "++"}, ""},
		{"start: a\na: b \"x\" | \"y\"\nb: a \"z\" | \"w\"\n", []string{"y", "wx", "yzx", "wxzx"}, []string{"x", "z", "yz", "wxz", "yx"}, ""},
		{"start: a \".\"\na: | a \"x\"\n", []string{".", "x.", "xx."}, []string{"", "x", "y."}, ""},
		{"start: (x? y?)* \".\"\nx: \"a\"*\ny: \"b\"?\n", []string{".", "abba."}, []string{"", "c."}, ""},
		{"start: \"a\"{2500}\n", []string{strings.Repeat("a", 2500)}, []string{"", "a", strings.Repeat("a", 2499), strings.Repeat("a", 2501)}, ""},
		{"start: \"a\"{3,2100} \"b\"\n", []string{"aaab", strings.Repeat("a", 2100) + "b"}, []string{"aab", strings.Repeat("a", 2101) + "b"}, ""},
		{"start: \"a\"{2001,} \"b\"\n", []string{strings.Repeat("a", 2001) + "b", strings.Repeat("a", 2600) + "b"}, []string{strings.Repeat("a", 2000) + "b"}, ""},
		{"start: (\"a\" | \"bc\"){2}\n", []string{"aa", "abc", "bcbc"}, []string{"a", "aaa", "bb"}, ""},
		{"%ignore \" \"\nstart: \"a\" \"b\" [\"c\"]\n", []string{"ab", "a  b", "a b c"}, []string{" ab", "ab ", "a b c ", "a-b"}, ""},
		{"%llguidance {\"ignore_once\": true, \"allow_initial_skip\": true}\n%ignore \" \"\nstart: \"a\" \"b\"\n", []string{"ab", " a b"}, []string{"  ab", "a  b"}, ""},
		{"%ignore \" \"\nstart: \"a\" %lark {\n  %ignore \"_\"\n  start: \"b\" \"c\"\n} \"d\"\n", []string{"abcd", "ab_c d"}, []string{"a bcd", "ab cd", "abc_d"}, ""},
		{"start: /[^a-y\\n]|\\n\\n/ /\\d/ /./s\n", []string{"z1x", "\n\n٣\n", "é5日"}, []string{"a1x", "\n1x", "zx1"}, ""},
		{"start: /[^a]/ /[^é]/\n", []string{"bè", "éa"}, []string{"aè", "bé"},
			"root ::= start\nstart ::= [^a] [\\u0000-èê-\\U0010FFFF]\n"},
		{"start: \"ſ\"i \"K\"i /(?i)é/\n", []string{"skÉ", "ſ\u212Aé"}, []string{"ske", "xké"}, ""},
		{"start: /[]^\\-\\[\\\\\"]/ \"\\\"\\\\\\n\\u0001f\"\n", []string{"]\"\\\n\x01f", "^\"\\\n\x01f", "-\"\\\n\x01f", "[\"\\\n\x01f", "\\\"\\\n\x01f", "\"\"\\\n\x01f"}, []string{"a\"\\\n\x01f"}, ""},
		{"start: %regex {\"substring_words\": \"a b c\"}\n", []string{"", "a", "a b", " b c", "a b c"}, []string{"ac", "b a", "a b c "}, ""},
		{"start: %json {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}, \"b\": {\"type\": \"boolean\"}, \"c\": {\"enum\": [\"x\", null]}}, \"required\": [\"b\"], \"additionalProperties\": false}\n",
			[]string{`{"b":true}`, `{"a":-7,"b":false}`, `{"a":0,"b":true,"c":"x"}`, `{"b":true,"c":null}`},
			[]string{`{}`, `{"a":1}`, `{"b":true,"a":1}`, `{"b":true,}`, `{"b":1}`, `{"a":01,"b":true}`, `{"b":true,"c":"y"}`}, ""},
		{"start: %json {\"type\": \"array\", \"items\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 2}, \"minItems\": 1, \"maxItems\": 2}\n",
			[]string{`["a"]`, `["é","\n\""]`}, []string{`[]`, `["",""]`, `["abc"]`, `["a","b","c"]`, `["a" ]`, "[\"\n\"]"}, ""},
		{"start: %json true\n", []string{`null`, `-0.5e+3`, `{"a":[1,{}],"b":"\\"}`, `[]`}, []string{``, `nul`, `1.`, `[1,]`, `{a:1}`, `01`}, ""},
		{"start: _a _A root\n_a: \"1\"\n_A: \"2\"\nroot: \"3\"\n", []string{"123"}, []string{"12", "321"}, ""},
	} {
		g := mustParse(t, test.src)
		texts, err := bothDialects(t, g)
		if err != nil {
			t.Errorf("%s: %v", test.src, err)
			continue
		}
		if test.readable != "" && texts[bnftest.GBNF] != test.readable {
			t.Errorf("%s: written as\n%s", test.src, texts[bnftest.GBNF])
		}
		for d, text := range texts {
			j, err := bnftest.Parse(text, d)
			if err != nil {
				t.Errorf("%s: %v\n%s", test.src, err, text)
				continue
			}
			for _, s := range test.yes {
				if !j.Accepts(s) {
					t.Errorf("%s: refuses %.80q\n%s", test.src, s, text)
				}
			}
			for _, s := range test.no {
				if j.Accepts(s) {
					t.Errorf("%s: accepts %.80q\n%s", test.src, s, text)
				}
			}
		}
	}
}

func TestUntranslatable(t *testing.T) {
	for _, test := range []struct{ src, construct, want string }{
		{"start: a\na: \"x\" %json {\"type\": \"object\", \"properties\": {\"n\": {\"minimum\": 3}}, \"additionalProperties\": false}\n", cJSON,
			`2:8: "minimum" at /properties/n/minimum in %json cannot be written in a llama.cpp grammar; send the schema itself, or write the format as rules`},
		{"start: %json {\"type\": \"object\", \"properties\": {\"n\": {}}}\n", cJSON,
			`1:8: an object without "additionalProperties": false in %json cannot be written in a llama.cpp grammar; send the schema itself, or write the format as rules`},
		{"start: a \"b\"\na[lazy]: /.*b/\n", cLazy, `2:3: lazy cannot be written in a llama.cpp grammar; write an expression that cannot match its own end, as in /[^<]*/`},
		{"start[suffix=\"b\"]: /.*/\n", cLazy, `1:7: suffix cannot be written in a llama.cpp grammar; write an expression that cannot match its own end, as in /[^<]*/`},
		{"start[max_tokens=9]: /.*/\n", cAttribute, `1:7: max_tokens cannot be written in a llama.cpp grammar; bound the characters instead, as in /.{0,200}/`},
		{"start: \"a\" <|end|>\n", cSpecial, `1:12: the special token <|end|> cannot be written in a llama.cpp grammar; leave it out: an answer ends by itself`},
		{"start: A\nA: /[a-z]+/ & /[^x]+/\n", cAnd, `2:15: & cannot be written in a llama.cpp grammar; write one expression for both`},
		{"start: A\nA: ~/x/\n", cNot, `2:4: ~ cannot be written in a llama.cpp grammar; write what may stand there instead of what may not`},
		{"start: a::0\na::_: \"x\" a::incr(_) %if lt(_, 3)\n   | \"\"\n", cParam, `1:8: the parameter of a cannot be written in a llama.cpp grammar; write one rule for each value`},
		{"start: /ab\\p{Emoji}/\n", cRegex, `1:11: \p{Emoji} cannot be written in a llama.cpp grammar; write the characters as ranges, or a property such as \p{L}`},
		{"start: /a(?P<stop>b)/\n", cRegex, `1:10: the lookahead (?P<stop> … ) cannot be written in a llama.cpp grammar; rename the group`},
		{"%llguidance {\"allow_invalid_utf8\": true}\nstart: /\\xff/\n", cRegex, `2:9: bytes that are not UTF-8 cannot be written in a llama.cpp grammar; leave out allow_invalid_utf8`},
	} {
		g := mustParse(t, test.src)
		for name, f := range map[string]func() (string, error){"a llama.cpp grammar": g.GBNF, "an XGrammar grammar": g.EBNF} {
			text, err := f()
			var e *Error
			want := strings.Replace(test.want, "a llama.cpp grammar", name, 1)
			if !errors.As(err, &e) || text != "" || e.Error() != want || e.Construct != test.construct {
				t.Errorf("%s: got %q, %v\nwant %s", test.src, text, err, want)
			}
		}
	}
	g, err := ParseAmong([]byte("start: \"a\" @other"), "other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.GBNF(); err == nil || err.Error() != "1:12: the grammar @other cannot be written in a llama.cpp grammar; write the grammar here" {
		t.Errorf("another grammar: %v", err)
	}
}

// TestRegexTo compares the translation of expressions with Go's own matching.
func TestRegexTo(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, rx := range []string{
		`a`, `abc|abd`, `(a|b)*c`, `a+b?c{2}`, `[a-c]{1,3}d*`, `[^a]b`, `(ab|a)(bc|c)?`, `(?i)aB`, `(?i:[a-b])C`, `a.c`,
		`(?s)a.c`, `()`, `a|`, `(a?b?)*`, `(a*)*b`, `((a|b)+c?)+`, `(a{2}){2,3}`, `[[:digit:]a]+`, `\x61\x{62}|\n`, `a{0}b`,
		`^abc$`, `(^a|^b)c$`, `[\]\-^]a`, `"a\\b"`, `(?P<name>ab)c`, `a*?b+?c??`, `[ab]`, `(a|ab)(c|bcd)(d*)`,
	} {
		want, err := regexp.Compile(`^(?:` + rx + `)$`)
		if err != nil {
			t.Fatal(err)
		}
		for d, f := range map[bnftest.Dialect]func(string) (string, error){bnftest.GBNF: RegexToGBNF, bnftest.EBNF: RegexToEBNF} {
			text, err := f(rx)
			if err != nil {
				t.Errorf("%s: %v", rx, err)
				continue
			}
			j, err := bnftest.Parse(text, d)
			if err != nil {
				t.Errorf("%s: %v\n%s", rx, err, text)
				continue
			}
			seen := map[bool]int{}
			for range 3000 {
				var b strings.Builder
				for range r.IntN(7) {
					b.WriteByte("aaabbbcccdABC\n1]-^\"\\"[r.IntN(19)])
				}
				s := b.String()
				// Go's $ and . have the same meaning here: no flag m.
				yes := want.MatchString(s)
				seen[yes]++
				if got := j.Accepts(s); got != yes {
					t.Errorf("%s: %q accepted: %v, by Go: %v\n%s", rx, s, got, yes, text)
				}
			}
			if seen[false] == 0 {
				t.Errorf("%s: nothing was refused", rx)
			}
		}
	}
	for rx, want := range map[string]string{
		`a(?=b)`:      `1:2: lookaround is not supported; say with ~ and & of terminals what must not match, or write the expression without it`,
		`日\bx`:        `1:2: \b is not supported here; remove it`,
		"a\nb(":       `2:2: the ( is never closed; close it with ), or write \( for the character`,
		`x\p{Emoji}y`: `1:2: \p{Emoji} cannot be written in a llama.cpp grammar; write the characters as ranges, or a property such as \p{L}`,
	} {
		if _, err := RegexToGBNF(rx); err == nil || err.Error() != want {
			t.Errorf("%s: %v", rx, err)
		}
	}
}

// FuzzTranslate: a translation is well-formed and accepts the texts drawn
// from its grammar.
func FuzzTranslate(f *testing.F) {
	for i, s := range translatable(f) {
		f.Add(s.src, uint64(i))
	}
	f.Fuzz(func(t *testing.T, src string, seed uint64) {
		if len(src) > 400 {
			t.Skip()
		}
		g, err := Parse([]byte(src))
		if err != nil || hugeRepeat(g) {
			t.Skip()
		}
		texts, err := bothDialects(t, g)
		if err != nil {
			return
		}
		text, serr := g.Sample(rand.New(rand.NewPCG(seed, 1)))
		for d, tr := range texts {
			j, err := bnftest.Parse(tr, d)
			if err != nil {
				t.Fatalf("%v\n%q\n%s", err, src, tr)
			}
			if serr == nil && len(text) < 200 && len(tr) < 4000 && !j.Accepts(text) {
				t.Fatalf("%q of %q is refused by\n%s", text, src, tr)
			}
		}
	})
}

// hugeRepeat keeps the fuzzer from drawing texts of millions of characters.
func hugeRepeat(g *Grammar) bool {
	huge := false
	g.walk(func(x Expr) {
		switch x := x.(type) {
		case *Repeat:
			huge = huge || x.Min > 50 || x.Max > 50
		case *Regexp:
			huge = huge || regexp.MustCompile(`\{\s*[0-9]{2}`).MatchString(x.Source)
		case *JSON:
			huge = huge || regexp.MustCompile(`[0-9]{2}`).MatchString(x.Source)
		}
	})
	return huge
}

func ExampleGrammar_GBNF() {
	g, err := Parse([]byte("start: verdict \" because \" REASON\nverdict: \"accept\" | \"reject\"\nREASON: /[a-z ]{3,80}/\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := g.GBNF()
	fmt.Print(text, err)
	// Output:
	// root ::= start
	// start ::= verdict " because " REASON
	// verdict ::= "accept" | "reject"
	// REASON ::= [ a-z]{3,80}
	// <nil>
}
