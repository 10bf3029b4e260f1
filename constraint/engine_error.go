package constraint

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentgraph/constraint/internal/jsontree"
	"agentgraph/constraint/internal/llg"
)

// at fills in line and column of an offset in the source.
func at(src []byte, offset int, r *Refusal) *Refusal {
	r.Line, r.Column = jsontree.Position(src, offset)
	return r
}

func isCost(err error) bool {
	var e *llg.Error
	return errors.As(err, &e) && e.Limit
}

var (
	larkAt  = regexp.MustCompile(`^(?:at )?(\d+)\((\d+)\): `)
	caretAt = regexp.MustCompile(`(?m)^ {4}( *)\^+$`)
	rxError = regexp.MustCompile(`(?m)^error: (.+)$`)
)

// engineRefusal turns llguidance's text into a refusal with a position in the
// source, where the text has one.
func engineRefusal(kind Kind, src []byte, e *llg.Error) *Refusal {
	r := &Refusal{Construct: string(kind)}
	msg := firstLine(e.Msg)
	if e.Limit {
		r.Limit = "engine"
		r.Reason = "the grammar is too big for the engine: " + msg
		r.Hint = "shorten enumerations, bounds and repetitions"
		return r
	}
	switch kind {
	case Regex:
		r.Reason = "the regular expression is not accepted"
		if m := rxError.FindStringSubmatch(e.Msg); m != nil {
			msg = m[1]
		} else if _, after, ok := strings.Cut(msg, "): "); ok {
			msg = after
		}
		if m := caretAt.FindStringSubmatchIndex(e.Msg); m != nil && !strings.ContainsAny(string(src), "\n/") {
			r.Line, r.Column = 1, m[3]-m[2]+1
		}
		r.Reason += ": " + msg
		r.Hint = "it is a regular expression without lookaround and backreferences, over the whole answer"
	case Lark:
		if m := larkAt.FindStringSubmatch(msg); m != nil {
			r.Line, _ = strconv.Atoi(m[1])
			r.Column, _ = strconv.Atoi(m[2])
			msg = msg[len(m[0]):]
			clampPosition(src, r)
		}
		r.Reason = "the grammar is not accepted: " + msg
	default:
		r.Reason = fmt.Sprintf("%s does not take it: %s", llg.Version(), msg)
	}
	return r
}

// clampPosition keeps a position inside the source: at its end llguidance
// counts a line that is not there.
func clampPosition(src []byte, r *Refusal) {
	lines := strings.Split(strings.TrimRight(string(src), "\n"), "\n")
	if r.Line > len(lines) {
		r.Line = len(lines)
		r.Column = utf8.RuneCountInString(lines[len(lines)-1]) + 1
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(s)
}
