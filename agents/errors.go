package agents

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentgraph/record"
)

// Severity of a Finding.
type Severity string

// An Error stops what it concerns; a Warning does not.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Finding is one thing that is wrong with a graph.
type Finding struct {
	File     string   `json:"file"` // relative to the graph where it lies inside
	Line     int      `json:"line,omitempty"`
	Col      int      `json:"column,omitempty"`
	Severity Severity `json:"severity"`
	Msg      string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`
	// Agent is the agent it concerns; empty means the whole graph.
	Agent string `json:"agent,omitempty"`
}

// String prints "file:line:col: message; hint".
func (f Finding) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(Printable(f.File))
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, max(f.Col, 1))
		}
		b.WriteString(": ")
	}
	b.WriteString(Printable(f.Msg))
	if f.Hint != "" {
		b.WriteString("; ")
		b.WriteString(Printable(f.Hint))
	}
	return b.String()
}

// Printable is a text on one line that does nothing to a terminal: what does
// not print is written as an escape, such as \n, \x1b or \u202e. All paths
// and messages that people see go through it; what prints stays as it is.
func Printable(s string) string {
	plain := func(r rune, n int) bool { return unicode.IsPrint(r) && (r != utf8.RuneError || n > 1) }
	var b strings.Builder
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRuneInString(s[at:])
		if plain(r, n) {
			b.WriteString(s[at : at+n])
		} else {
			q := strconv.Quote(s[at : at+n])
			b.WriteString(q[1 : len(q)-1])
		}
		at += n
	}
	return b.String()
}

// Error is a reason why an agent or one of its turns cannot run.
type Error struct {
	Code record.Code
	Finding
	// Cause is the error of a room below, where there is one.
	Cause error
}

func (e *Error) Error() string { return e.Finding.String() }

func (e *Error) Unwrap() error { return e.Cause }

// Record is the error as a turn record holds it.
func (e *Error) Record() *record.Error {
	return &record.Error{
		Code: e.Code, Message: e.Msg, Hint: e.Hint,
		File: e.File, Line: e.Line, Column: e.Col,
	}
}
