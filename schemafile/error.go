package schemafile

import (
	"fmt"
	"strconv"
	"strings"
)

// Rule names the rule that a schema file breaks. SCHEMA.md has an example of
// each.
type Rule string

// The closed list of rules.
const (
	RuleTwo      Rule = "two schema files"
	RuleName     Rule = "name does not parse"
	RuleType     Rule = "unknown type"
	RuleNoType   Rule = "no type"
	RuleVariable Rule = "unknown variable"
	RuleDotfile  Rule = "dotfile"
	RuleLong     Rule = "name too long"
	RuleControl  Rule = "control character"
	RuleSlash    Rule = "path separator"
	RuleReserved Rule = "reserved name"
	RuleEmpty    Rule = "empty file"
	RuleText     Rule = "not UTF-8 text"
	RuleJSON     Rule = "JSON does not parse"
	RuleObject   Rule = "not a JSON object"
	RuleFalse    Rule = "unsatisfiable"
	RuleSize     Rule = "file too large"
	RuleFile     Rule = "not a regular file"
	RuleRead     Rule = "cannot be read"
)

// Rules are all of them, in the order they are checked.
var Rules = []Rule{
	RuleTwo, RuleName, RuleNoType, RuleType, RuleControl, RuleSlash, RuleVariable, RuleDotfile, RuleReserved, RuleLong,
	RuleRead, RuleFile, RuleSize, RuleText, RuleEmpty, RuleJSON, RuleObject, RuleFalse,
}

// Error says why a schema file is refused, where, and what to change.
type Error struct {
	Rule Rule
	File string // path or name of the schema file, or the folder searched
	// Line and Col count from 1, Col in characters; 0 where there is none.
	Line, Col int
	Msg       string
	Hint      string
	Err       error // the cause, when the file could not be read
}

// Error prints file:line:col: message; hint.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(printable(e.File))
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
			if e.Col > 0 {
				fmt.Fprintf(&b, ":%d", e.Col)
			}
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// Unwrap returns the cause, so that errors.Is(err, fs.ErrPermission) works.
func (e *Error) Unwrap() error { return e.Err }

// quote shows a part of a name on one line, cut where it is very long.
func quote(s string) string {
	if len(s) > 80 {
		cut := 80
		for cut > 76 && s[cut]&0xC0 == 0x80 {
			cut--
		}
		s = s[:cut] + "…"
	}
	return "'" + printable(s) + "'"
}

// printable escapes what would break a line or a terminal.
func printable(s string) string {
	q := strconv.Quote(s)
	q = q[1 : len(q)-1]
	q = strings.ReplaceAll(q, `\"`, `"`)
	return strings.ReplaceAll(q, `\\`, `\`)
}
