package validate

import (
	"fmt"
	"strings"
)

// SchemaError refuses a schema. Path is a JSON pointer (of at most 1,024
// bytes, cut at a token) to what is wrong, Construct the keyword or the kind
// of fault ("JSON" when the source does not parse), Reason one sentence part
// that says what is wrong and what would be right. Line and Column count from
// 1 in the source as given, columns in characters; they are 0 where a regular
// expression given by itself is refused.
type SchemaError struct {
	Path      string
	Construct string
	Reason    string
	Line      int
	Column    int
}

func (e *SchemaError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", e.Line, e.Column)
	}
	if e.Path != "" {
		fmt.Fprintf(&b, "at %s: ", e.Path)
	}
	b.WriteString(e.Reason)
	return b.String()
}

const maxErrorPointer = 1024
