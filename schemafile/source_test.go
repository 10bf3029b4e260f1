package schemafile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSource(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind Kind
		raw  string
		want string
	}{
		{"json as it is", JSON, "{\"b\": 1,\r\n \"a\": 1.0e0, \"a\": 2}\n", "{\"b\": 1,\r\n \"a\": 1.0e0, \"a\": 2}\n"},
		{"json without its mark", JSON, "\uFEFF{}", "{}"},
		{"regex without LF", Regex, "[a-z]+\n", "[a-z]+"},
		{"regex without CRLF", Regex, "[a-z]+\r\n", "[a-z]+"},
		{"regex loses one newline only", Regex, "a\n\n", "a\n"},
		{"regex keeps a lone CR", Regex, "a\r", "a\r"},
		{"regex of spaces", Regex, "  \n", "  "},
		{"regex without its mark", Regex, "\uFEFFa", "a"},
		{"a second mark stays", Regex, "\uFEFF\uFEFFa", "\uFEFFa"},
		{"lark as it is", Lark, "\uFEFFstart: \"a\"\r\n\n", "start: \"a\"\r\n\n"},
		{"llg as it is", LLG, "  {\"grammars\": []}\n", "  {\"grammars\": []}\n"},
	} {
		got, err := Source(tt.kind, "f", []byte(tt.raw), Object)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestRefusedSources(t *testing.T) {
	for _, tt := range []struct {
		kind      Kind
		raw       string
		root      Root
		rule      Rule
		line, col int
	}{
		{JSON, "", Object, RuleEmpty, 0, 0},
		{JSON, "\uFEFF", Object, RuleEmpty, 0, 0},
		{JSON, " \n\t\n", Object, RuleEmpty, 0, 0},
		{Regex, "", Object, RuleEmpty, 0, 0},
		{Regex, "\n", Object, RuleEmpty, 0, 0},
		{Regex, "\r\n", Object, RuleEmpty, 0, 0},
		{Lark, "\n\n", Object, RuleEmpty, 0, 0},
		{LLG, "", Object, RuleEmpty, 0, 0},
		{JSON, "{\n  \"é\": \xff}", Object, RuleText, 2, 8},
		{Regex, "abc\x00", Object, RuleText, 1, 4},
		{Lark, "start: \"\xc3\"", Object, RuleText, 1, 9},
		{Lark, "\xed\xa0\x80", Object, RuleText, 1, 1}, // a surrogate is no UTF-8
		{Regex, "\xff\xfea\x00", Object, RuleText, 1, 1},
		{JSON, "\xfe\xff\x00{", Object, RuleText, 1, 1},
		{JSON, "{\"a\": }", Object, RuleJSON, 1, 7},
		{JSON, "\uFEFF{\"a\": }", Object, RuleJSON, 1, 7},
		{JSON, "{\n\t\"é\": 1,\n}", Object, RuleJSON, 3, 1},
		{JSON, "{\n\"a\": 1", Object, RuleJSON, 2, 7},
		{JSON, "{\r\n\"a\": tru\r\n}", Object, RuleJSON, 2, 9},
		{JSON, "{} {}", Object, RuleJSON, 1, 4},
		{JSON, "{} // note", Object, RuleJSON, 1, 4},
		{JSON, "{'a': 1}", Object, RuleJSON, 1, 2},
		{JSON, "{\"a\": \"\n\"}", Object, RuleJSON, 1, 8},
		{JSON, "hello", Object, RuleJSON, 1, 1},
		{JSON, "[]", Object, RuleObject, 1, 1},
		{JSON, "\n  \"x\"", Object, RuleObject, 2, 3},
		{JSON, "-1", Object, RuleObject, 1, 1},
		{JSON, "null", Object, RuleObject, 1, 1},
		{JSON, "true", Object, RuleObject, 1, 1},
		{JSON, "false", Object, RuleObject, 1, 1},
		{JSON, " false ", ObjectOrTrue, RuleFalse, 1, 2},
		{JSON, "[true]", ObjectOrTrue, RuleObject, 1, 1},
		{JSON, "tru", ObjectOrTrue, RuleJSON, 1, 4},
		{JSON, "{}", Object, "", 0, 0},
		{JSON, " true\n", ObjectOrTrue, "", 0, 0},
		{LLG, "start: /a/", Object, RuleJSON, 1, 1},
		{LLG, "true", ObjectOrTrue, RuleObject, 1, 1},
		{LLG, "[{}]", Object, RuleObject, 1, 1},
		{JSON, strings.Repeat("[", 20000), Object, RuleJSON, 1, 10001},
	} {
		_, err := Source(tt.kind, "f", []byte(tt.raw), tt.root)
		var got Error
		if err != nil {
			got = *err.(*Error)
		}
		if got.Rule != tt.rule || got.Line != tt.line || got.Col != tt.col {
			t.Errorf("Source(%s, %.40q): %v (rule %q), want %q at %d:%d", tt.kind, tt.raw, err, got.Rule, tt.rule, tt.line, tt.col)
		}
		if err != nil && (got.Hint == "" || got.File != "f") {
			t.Errorf("Source(%s, %.40q): incomplete: %+v", tt.kind, tt.raw, got)
		}
	}
}

func FuzzSource(f *testing.F) {
	for _, s := range []string{"{}", "\uFEFF{\"a\":1}\r\n", "true", "[1,", "a\x00", "\xff", "\n", "{\n\"é\": x}"} {
		for k := range 4 {
			f.Add(k, []byte(s))
		}
	}
	kinds := []Kind{JSON, Regex, Lark, LLG}
	f.Fuzz(func(t *testing.T, k int, raw []byte) {
		kind := kinds[uint(k)%4]
		before := bytes.Clone(raw)
		src, err := Source(kind, "f", raw, ObjectOrTrue)
		if !bytes.Equal(raw, before) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			e := err.(*Error)
			lines := 1 + bytes.Count(raw, []byte("\n"))
			if e.Rule == "" || e.Hint == "" || e.Line > lines || e.Col > len(raw)+1 || (e.Line == 0) != (e.Col == 0) {
				t.Errorf("Source(%s, %q) = %+v", kind, raw, e)
			}
			return
		}
		if len(src) == 0 || !utf8.Valid(src) || !bytes.Contains(raw, src) || bytes.IndexByte(src, 0) >= 0 {
			t.Errorf("Source(%s, %q) = %q", kind, raw, src)
		}
		if (kind == JSON || kind == LLG) && !json.Valid(src) {
			t.Errorf("Source(%s, %q) took what is no JSON", kind, raw)
		}
	})
}
