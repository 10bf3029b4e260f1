package schemafile

import (
	"errors"
	"math/rand"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"
)

// oracle is the pattern that the split is defined by.
var oracle = regexp.MustCompile(`^\.schema-(.+)\.([a-z]+)(?:@([a-z]+))?$`)

// names is a table of 40 names with the rule each breaks ("" for none).
var names = []struct {
	name string
	rule Rule
	kind Kind
}{
	{".schema-rating.json", "", JSON},
	{".schema-rating.json@json", "", JSON},
	{".schema-out-{timestamp}.json", "", JSON},
	{".schema-log.txt@regex", "", Regex},
	{".schema-story.txt@lark", "", Lark},
	{".schema-output.json@llg", "", LLG},
	{".schema-output.json@regex", "", Regex},
	{".schema-a.b.c.json", "", JSON},
	{".schema-a.json.md@lark", "", Lark},
	{".schema-a@b.json", "", JSON},
	{".schema-a.json@llg.txt@regex", "", Regex},
	{".schema-{turn}.json", "", JSON},
	{".schema-{turn}-{turn}_{timestamp}.json", "", JSON},
	{".schema-été.json", "", JSON},
	{".schema-日本.md@regex", "", Regex},
	{".schema- a b .json", "", JSON},
	{".schema--.json", "", JSON},
	{".schema-a..json", "", JSON},
	{".schema-a:b?.json", "", JSON},
	{".schema-concept.json", "", JSON},
	{".schema-.json", RuleName, ""},
	{".schema-", RuleName, ""},
	{".schema-rating", RuleName, ""},
	{".schema.json", RuleName, ""},
	{"schema-rating.json", RuleName, ""},
	{".Schema-rating.json", RuleName, ""},
	{".schema_rating.json", RuleName, ""},
	{".schema-rating.JSON", RuleName, ""},
	{".schema-rating.mp3@regex", RuleName, ""},
	{".schema-rating.json@", RuleName, ""},
	{".schema-rating.json@JSON", RuleName, ""},
	{".schema-rating.json@regex@lark", RuleName, ""},
	{".schema-rating.json~", RuleName, ""},
	{".schema-a\nb.json", RuleControl, ""},
	{".schema-rating.json\n", RuleName, ""},
	{".schema-rating.txt", RuleNoType, ""},
	{".schema-rating.txt@yaml", RuleType, ""},
	{".schema-{name}.json", RuleVariable, ""},
	{".schema-..json", RuleDotfile, ""},
	{".schema-con.json", RuleReserved, ""},
}

func TestNames(t *testing.T) {
	if len(names) != 40 {
		t.Errorf("the table has %d names", len(names))
	}
	for _, tt := range names {
		n, err := Parse(tt.name)
		if rule := ruleOf(err); rule != tt.rule {
			t.Errorf("Parse(%q): rule %q (%v), want %q", tt.name, rule, err, tt.rule)
			continue
		}
		m := oracle.FindStringSubmatch(tt.name)
		if err == nil {
			if m == nil {
				t.Errorf("Parse(%q) = %+v, and the pattern does not match", tt.name, n)
				continue
			}
			if diff := cmp.Diff(Name{m[1], m[2], Kind(m[3])}, n); diff != "" {
				t.Errorf("Parse(%q) (-pattern +got):\n%s", tt.name, diff)
			}
			if n.Kind() != tt.kind || n.String() != tt.name {
				t.Errorf("Parse(%q): kind %q, prints %q", tt.name, n.Kind(), n.String())
			}
		} else if tt.rule == RuleName && m != nil {
			t.Errorf("Parse(%q) = %v, and the pattern matches", tt.name, err)
		}
	}
}

func TestRefusedFormats(t *testing.T) {
	stamps := strings.Repeat("{timestamp}", 19)
	for _, tt := range []struct {
		format string
		rule   Rule
		says   string
	}{
		{"{turn", RuleVariable, "'{'"},
		{"turn}", RuleVariable, "'}'"},
		{"{}", RuleVariable, "'{}'"},
		{"{Turn}", RuleVariable, "'{Turn}'"},
		{"{ turn }", RuleVariable, "'{ turn }'"},
		{"{{turn}}", RuleVariable, "'{'"},
		{"{turn}{agent}", RuleVariable, "'{agent}'"},
		{".hidden", RuleDotfile, "dotfiles"},
		{".", RuleDotfile, "dotfiles"},
		{"a/b", RuleSlash, "'/'"},
		{"../../etc/passwd", RuleSlash, "'/'"},
		{`a\b`, RuleSlash, `'\'`},
		{"a\x00b", RuleControl, "U+0000"},
		{"a\tb", RuleControl, "U+0009"},
		{"a\x7fb", RuleControl, "U+007F"},
		{"a\u0085b", RuleControl, "U+0085"},
		{"a\xffb", RuleName, "UTF-8"},
		{"CON", RuleReserved, "'CON'"},
		{"nul", RuleReserved, "'nul'"},
		{"aux.report", RuleReserved, "'aux'"},
		{"com1", RuleReserved, "'com1'"},
		{"lpt{turn}", RuleReserved, "'lpt{turn}'"},
		{"COM³", RuleReserved, "'COM³'"},
		{"com10", "", ""},
		{"console", "", ""},
		{"report.con", "", ""},
		{strings.Repeat("a", 242), "", ""},
		{strings.Repeat("a", 243), RuleLong, "256 bytes"},
		{strings.Repeat("é", 122), RuleLong, "257 bytes"},
		{stamps, "", ""},
		{stamps + "abcd", RuleLong, "256 bytes"},
	} {
		n := Name{Format: tt.format, Ext: "json"}
		_, err := Parse(n.String())
		if rule := ruleOf(err); rule != tt.rule {
			t.Errorf("format %q: rule %q (%v), want %q", tt.format, rule, err, tt.rule)
		} else if err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("format %q: %q does not say %q", tt.format, err, tt.says)
		}
		if e := new(Error); errors.As(err, &e) && e.Hint == "" {
			t.Errorf("format %q: no hint in %v", tt.format, err)
		}
	}
}

// Every plain name that fits into a folder is a usable schema file.
func TestLongestPlainName(t *testing.T) {
	name := Prefix + strings.Repeat("x", maxName-len(Prefix)-len(".json")) + ".json"
	if _, err := Parse(name); err != nil {
		t.Error(err)
	}
}

func TestErrorIsOneLine(t *testing.T) {
	for _, name := range []string{".schema-a\nb.json", ".schema-a\x1b[31m.json", ".schema-{\r\n}.json", ".schema-" + strings.Repeat("{x", 500) + ".json"} {
		_, err := Parse(name)
		if err == nil || strings.ContainsAny(err.Error(), "\n\r\x1b") {
			t.Errorf("Parse(%q) = %q", name, err)
		}
	}
}

// Generate makes a name that Parse takes.
func (Name) Generate(r *rand.Rand, size int) reflect.Value {
	pick := func(s []string) string { return s[r.Intn(len(s))] }
	first := []string{"a", "Z", "é", "日", "0", "_", "-", "@", " ", "{turn}", "{timestamp}"}
	more := append([]string{".", ".json", "@lark", "(", "$", ":"}, first...)
	n := Name{Format: pick(first)}
	for range r.Intn(12) {
		n.Format += pick(more)
	}
	n.Ext = pick([]string{"json", "txt", "md", "j", "log"})
	n.Type = Kind(pick([]string{"json", "regex", "lark", "llg"}))
	if n.Ext == "json" && r.Intn(2) == 0 {
		n.Type = ""
	}
	return reflect.ValueOf(n)
}

func TestPrintParse(t *testing.T) {
	roundTrip := func(n Name) bool {
		got, err := Parse(n.String())
		if err != nil || got != n {
			t.Logf("Parse(%q) = %+v, %v", n.String(), got, err)
		}
		return err == nil && got == n
	}
	if err := quick.Check(roundTrip, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range names {
		f.Add(tt.name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		n, err := Parse(name)
		m := oracle.FindStringSubmatch(name)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Rule == "" || e.Msg == "" || e.Hint == "" || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("Parse(%q) = %v", name, err)
			}
			if m != nil && e.Rule == RuleName && !strings.Contains(e.Msg, "UTF-8") {
				t.Errorf("Parse(%q) = %v, and the pattern matches", name, err)
			}
			return
		}
		if m == nil || n != (Name{m[1], m[2], Kind(m[3])}) {
			t.Errorf("Parse(%q) = %+v, the pattern says %q", name, n, m)
		}
		if n.String() != name {
			t.Errorf("Parse(%q) prints as %q", name, n.String())
		}
	})
}

func ruleOf(err error) Rule {
	var e *Error
	if errors.As(err, &e) {
		return e.Rule
	}
	if err != nil {
		return Rule("untyped: " + err.Error())
	}
	return ""
}
