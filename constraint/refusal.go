package constraint

import (
	"fmt"
	"strings"

	"agentgraph/constraint/internal/llg"
)

// ErrNotBuilt says that this program was linked without the native library,
// and how to build it. A *Refusal with NotNative set wraps it.
var ErrNotBuilt = llg.ErrNotBuilt

// Refusal says why a promise is not taken on: what in it, where, and what to
// change. It is the error of Compile, Admit and NewMatcher.
type Refusal struct {
	// File is Spec.File; Line and Column count from 1 and are 0 when the
	// place is not known. Columns count characters.
	File         string
	Line, Column int
	Kind         Kind
	// Construct is the keyword or syntax at fault ("uniqueItems", "%declare").
	Construct string
	// Path is the JSON pointer of the schema object that holds Construct.
	Path string
	// Reason is a sentence without a full stop; Hint says what to do.
	Reason string
	Hint   string
	// NotNative is set when only the native library is missing.
	NotNative bool
	// Capability is set when the schema is fine and the model's engine is
	// what cannot hold it.
	Capability bool
	// Limit names the bound of Limits that is exceeded, if that is the reason.
	Limit string
}

// Error prints file:line:col: reason; hint.
func (r *Refusal) Error() string {
	var b strings.Builder
	if r.File != "" {
		b.WriteString(r.File)
		if r.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", r.Line, r.Column)
		}
		b.WriteString(": ")
	} else if r.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", r.Line, r.Column)
	}
	b.WriteString(r.Reason)
	if r.Hint != "" {
		b.WriteString("; ")
		b.WriteString(r.Hint)
	}
	return b.String()
}

// Unwrap lets errors.Is find ErrNotBuilt.
func (r *Refusal) Unwrap() error {
	if r.NotNative {
		return ErrNotBuilt
	}
	return nil
}
