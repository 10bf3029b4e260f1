package record

import (
	"encoding/json"
	"strings"

	"agentgraph/internal/plainjson"
	"agentgraph/model"
)

// Exit codes of the command line.
const (
	ExitCompleted    = 0
	ExitNotCompleted = 1 // admitted, but not completed
	ExitRefused      = 2 // arguments, settings or a refusal; nothing was asked of a model
	ExitCancelled    = 130
)

// ExitCode is the exit code of a command that ran this one turn.
func ExitCode(r *Record) int {
	switch {
	case r == nil || r.Outcome == nil:
		return ExitRefused
	case r.Outcome.Status == Completed:
		return ExitCompleted
	case r.Outcome.Status == Cancelled:
		return ExitCancelled
	default:
		return ExitNotCompleted
	}
}

// Answer returns the answer of a completed turn. It is the one way to an
// answer that may be published: text that was cut off, did not validate or
// was never asked to is not returned.
func (r *Record) Answer() (text string, ok bool) {
	if r == nil || r.Outcome == nil || r.Outcome.Status != Completed || r.Outcome.Output == nil {
		return "", false
	}
	if r.OutputValidation.Status == Invalid {
		return "", false
	}
	return *r.Outcome.Output, true
}

// FileText is what the file of an answer holds: the answer and, where it was
// free text, a blank line and the turn's tool calls, one JSON object a line. A
// shaped answer stands alone, byte for byte.
func (r *Record) FileText() (text string, ok bool) {
	text, ok = r.Answer()
	if !ok || r.OutputValidation.Status != NotRequested || len(r.ToolCalls) == 0 {
		return text, ok
	}
	var b strings.Builder
	b.WriteString(text + "\n\n")
	for _, c := range r.ToolCalls {
		line, err := plainjson.Marshal(fileCall{c.ID, c.Name, model.CompactArguments(c.Arguments)})
		if err != nil {
			continue // arguments are JSON; nothing else can fail
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String(), true
}

type fileCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}
