package lark

import (
	"fmt"
	"strings"
)

// Pos is a place in the source: line and column from 1, columns in
// characters.
type Pos struct{ Line, Col int }

// String returns "line:col".
func (p Pos) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Col) }

// Error is why a grammar is refused, or why it cannot be translated.
type Error struct {
	// Line and Col count from 1; columns are characters.
	Line, Col int
	// Construct names what the refusal is about, in words that do not change
	// with the grammar: "priority", "undefined name", "syntax".
	Construct string
	// Msg says what is wrong.
	Msg string
	// Hint says what to do; it may be empty.
	Hint string
}

// Error returns "line:col: what is wrong; what to do".
func (e *Error) Error() string {
	s := fmt.Sprintf("%d:%d: %s", e.Line, e.Col, e.Msg)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

func errAt(p Pos, construct, hint, format string, args ...any) *Error {
	return &Error{Line: p.Line, Col: p.Col, Construct: construct, Hint: hint, Msg: fmt.Sprintf(format, args...)}
}

// The constructs of refusals.
const (
	cSyntax    = "syntax"
	cSize      = "size"
	cEncoding  = "encoding"
	cJSONText  = "JSON text"
	cNesting   = "nesting"
	cString    = "string"
	cQuote     = "single-quoted string"
	cRegex     = "regular expression"
	cRange     = "character range"
	cRepeat    = "repetition"
	cJSON      = "%json"
	cRegexExt  = "%regex"
	cNested    = "%lark"
	cOptions   = "%llguidance"
	cPriority  = "priority"
	cTemplate  = "template"
	cDeclare   = "%declare"
	cOverride  = "%override"
	cImport    = "import"
	cFile      = "file import"
	cAttribute = "attribute"
	cParam     = "parameter"
	cSpecial   = "special token"
	cGrammar   = "grammar reference"
	cAnd       = "&"
	cNot       = "~"
	cStart     = "no start"
	cUndefined = "undefined name"
	cDuplicate = "duplicate name"
	cRecursive = "recursive terminal"
	cRuleInTok = "rule in a terminal"
	cEndless   = "endless recursion"
	cUnused    = "unused name"
	cLazy      = "lazy"
	cLeft      = "left recursion"
)

// short cuts a piece of source to something that fits into a message.
func short(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i] + "…"
	}
	r := []rune(s)
	if len(r) > 40 {
		return string(r[:39]) + "…"
	}
	return s
}
