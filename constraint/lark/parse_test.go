package lark

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mustParse reads a grammar that is right.
func mustParse(t testing.TB, src string) *Grammar {
	t.Helper()
	g, err := Parse([]byte(src))
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return g
}

// dump writes a tree without positions, a line for each value, so that two
// trees can be compared.
func dump(g *Grammar) string {
	var b strings.Builder
	var walk func(v reflect.Value, indent string)
	walk = func(v reflect.Value, indent string) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				walk(v.Elem(), indent)
			}
		case reflect.Slice:
			for i := range v.Len() {
				fmt.Fprintf(&b, "%s-\n", indent)
				walk(v.Index(i), indent+" ")
			}
		case reflect.Struct:
			fmt.Fprintf(&b, "%s%s\n", indent, v.Type().Name())
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() && f.Type != reflect.TypeFor[Pos]() {
					fmt.Fprintf(&b, "%s%s\n", indent, f.Name)
					walk(v.Field(i), indent+" ")
				}
			}
		default:
			fmt.Fprintf(&b, "%s%#v\n", indent, v.Interface())
		}
	}
	walk(reflect.ValueOf(g), "")
	return b.String()
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct{ name, src, want, construct string }{
		{"unclosed regular expression", `start: / "x"`, `1:8: the regular expression that begins here is never closed; close it with /`, cRegex},
		{"priority of a rule", "start: a\na.2: \"x\"", `2:2: priorities are not supported; remove .2`, cPriority},
		{"priority of a terminal", "start: A\nA.-1: \"x\"", `2:2: priorities are not supported; remove .-1`, cPriority},
		{"template", "start: sep{a}\n", `1:11: templates are not supported; write one rule for each use; a repetition is x{2,5}`, cTemplate},
		{"template definition", "pair{x}: x x\nstart: \"a\"", `1:5: templates are not supported; write one rule for each use`, cTemplate},
		{"declare", "%declare X\nstart: \"a\"", `1:1: %declare is not supported; define the terminal, or write a special token as <name>`, cDeclare},
		{"override", "start: \"a\"\n%override start: \"b\"", `2:1: %override is not supported; write the rule itself`, cOverride},
		{"file import", "%import .other (A)\nstart: A", `1:9: other cannot be imported: grammars are not read from other files; only terminals of common can be imported; copy the definition into this grammar`, cFile},
		{"single quotes", `start: "a" | 'b'`, `1:14: strings in single quotes are not supported; write "b"`, cQuote},
		{"recursive terminal", "start: A\nA: \"x\" B?\nB: A", `3:4: the terminal A contains itself (A → B → A); name A in lower case to make it a rule`, cRecursive},
		{"no start", `root: "a"`, `1:1: the grammar has no rule named start; rename root to start, or add start: root`, cStart},
		{"undefined", `start: "a" b`, `1:12: b is not defined; define it, or correct the name`, cUndefined},
		{"undefined import", `start: INT`, `1:8: INT is not defined; add %import common.INT`, cUndefined},
		{"duplicate", "start: \"a\"\nstart: \"b\"", `2:1: start is already defined at 1:1; rename one, or join them with |`, cDuplicate},
		{"terminal with a rule", "start: A\nA: \"x\" b\nb: \"y\"", `2:8: a terminal cannot contain the rule b; name b in upper case to make it a terminal, or A in lower case to make it a rule`, cRuleInTok},
		{"option", "%llguidance {\"no_forcing\": true,\n  \"nope\": 1}\nstart: \"a\"", `2:3: %llguidance has no option "nope"; the options are allow_initial_skip, allow_invalid_utf8, ignore_once and no_forcing`, cOptions},
		{"endless", "start: list\nlist: \"x\" list", `2:1: the rule list can never end: it always needs list again; add an alternative that does without it`, cEndless},
		{"endless through another", "start: \"q\" | a\na: \"x\" b\nb: \"y\" a", `2:1: the rule a can never end: it always needs a through b again; add an alternative that does without it`, cEndless},
		{"JSON", "\n {\"grammars\": []}", `2:2: a Lark grammar does not begin with {, JSON does; name a file that holds a raw llguidance grammar @llg, or start with a rule`, cJSONText},
		{"not UTF-8", "start: \"日\"\nx: \"\xff\"", `2:5: the byte 0xFF is not UTF-8; save the file as UTF-8`, cEncoding},
		{"column in characters", "start: \"日本\" 'x'", `1:13: strings in single quotes are not supported; write "x"`, cQuote},
		{"after a mark", "\uFEFFstart: 'x'", `1:8: strings in single quotes are not supported; write "x"`, cQuote},
		{"after CRLF", "start: \"a\"\r\n  | 'x'\r\n", `2:5: strings in single quotes are not supported; write "x"`, cQuote},
		{"regular expression over lines", "start: /a\nb(/", `2:2: the ( is never closed; close it with ), or write \( for the character`, cRegex},
		{"empty", "", `1:1: the grammar has no rule named start; add start: followed by what an answer is`, cStart},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := Parse([]byte(test.src))
			var e *Error
			if !errors.As(err, &e) || g != nil {
				t.Fatalf("got %v, %v", g, err)
			}
			if e.Error() != test.want {
				t.Errorf("got  %s\nwant %s", e, test.want)
			}
			if e.Construct != test.construct {
				t.Errorf("construct %q, want %q", e.Construct, test.construct)
			}
		})
	}
}

func TestSize(t *testing.T) {
	src := append([]byte("start: \"a\"\n"), bytes.Repeat([]byte("# filler\n"), MaxSize/9)...)
	if _, err := Parse(src[:MaxSize]); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	_, err := Parse(append(src, src...))
	var e *Error
	if !errors.As(err, &e) || e.Construct != cSize {
		t.Errorf("over the limit: %v", err)
	}
}

// TestFirstError: of several, the one that comes first in the source.
func TestFirstError(t *testing.T) {
	src := "start: a b\nb: 'x'\nc.2: \"y\"\n"
	_, err := Parse([]byte(src))
	if want := "2:4: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
	_, err = Parse([]byte("start: a b\nB: C\n%ignore D\n"))
	if want := "1:8: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

// TestPositions: the tree knows where things stand.
func TestPositions(t *testing.T) {
	g := mustParse(t, "# 日\nstart: \"日\" A{2} ~( B )\n  | %json {\n    \"type\": \"object\"} <eos>\nA: /x/ | B\n%import common (INT, WS)\nB: \"b\"\n")
	var got []string
	g.walk(func(x Expr) { got = append(got, x.Position().String()) })
	want := []string{"2:8", "2:12", "2:12", "2:17", "2:18", "2:20", "3:5", "4:23", "5:4", "5:10", "7:4"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if p := g.Schemas()[0].Start; p != (Pos{3, 11}) {
		t.Errorf("the schema begins at %v", p)
	}
	if p := g.Terminal("WS").Pos; p != (Pos{6, 22}) {
		t.Errorf("WS stands at %v", p)
	}
	if d := cmp.Diff([]string{"<eos>"}, g.SpecialTokens()); d != "" {
		t.Error(d)
	}
}

func TestWarnings(t *testing.T) {
	g := mustParse(t, "start: a\na: \"x\"\nunused: nope\nT: T \"x\"\n%import common.WS\n")
	var got []string
	for _, w := range g.Warnings() {
		got = append(got, w.Error())
	}
	want := []string{
		"3:1: start never needs the rule unused; remove it, or use it",
		"3:9: nope is not defined; define it, or correct the name",
		"4:1: start never needs the terminal T; remove it, or use it",
		"4:4: the terminal T contains itself (T → T); name T in lower case to make it a rule",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAmong(t *testing.T) {
	src := []byte(`start: "a" @other`)
	if _, err := ParseAmong(src, "other"); err != nil {
		t.Error(err)
	}
	if _, err := Parse(src); err == nil {
		t.Error("a grammar that is not there was found")
	}
}

func TestSettings(t *testing.T) {
	g := mustParse(t, "%llguidance {\"no_forcing\": true, \"ignore_once\": true}\n%llguidance {\"no_forcing\": false}\nstart: \"a\"\n")
	if d := cmp.Diff(Settings{IgnoreOnce: true}, g.Settings()); d != "" {
		t.Error(d)
	}
}
