package validate

import (
	"strings"
)

// maxFindingBytes bounds the findings of one answer, written as a JSON array
// of objects with the members code, instance and schema.
const maxFindingBytes = 2048

// bounded cuts a list of findings to the bounds. Its pointers are bounded
// already, so that at least one finding always fits.
func bounded(findings []Finding) []Finding {
	total := len("[]")
	for i, f := range findings {
		total += f.size()
		if i == maxFindings || total > maxFindingBytes {
			return findings[:i]
		}
	}
	return findings
}

func (f Finding) size() int {
	return len(`{"code":,"instance":,"schema":},`) + len(quote(f.Code)) + len(quote(f.Instance)) + len(quote(f.Schema))
}

// What Feedback tells a model about each code.
var advice = map[string]string{
	MalformedJSON:    "not well-formed JSON",
	JSONBytes:        "too long",
	JSONStructure:    "too many values, nested too deep, or a member that stands twice",
	ValidationWork:   "too costly to check",
	SchemaViolation:  "breaks the schema",
	GrammarViolation: "does not match the required form",
}

// Bounds of Feedback's max.
const (
	MinFeedback = 512
	MaxFeedback = 4096
)

// Feedback words findings for the model that is to repair its answer: one
// line each, codes and pointers only. The text has at most max bytes, which
// is taken as at least MinFeedback and at most MaxFeedback; findings that do
// not fit are counted.
func Feedback(findings []Finding, max int) string {
	if max < MinFeedback {
		max = MinFeedback
	}
	if max > MaxFeedback {
		max = MaxFeedback
	}
	const head = "Your last answer is not valid:\n"
	const tail = "Give the whole answer again, corrected, and nothing else."
	room := max - len(head) - len(tail) - len("- and 8 more\n")
	var b strings.Builder
	b.WriteString(head)
	for i, f := range findings {
		line := f.line()
		if room -= len(line); room < 0 {
			if i == 0 {
				b.WriteString("- " + f.Code + ": " + advice[f.Code] + "\n")
				i++
			}
			if i < len(findings) {
				b.WriteString("- and " + ordinal(len(findings)-i) + " more\n")
			}
			break
		}
		b.WriteString(line)
	}
	b.WriteString(tail)
	return b.String()
}

func (f Finding) line() string {
	line := "- " + f.Code + ": " + advice[f.Code]
	if f.Code == SchemaViolation || f.Instance != "" {
		line += "; answer " + quote(f.Instance)
	}
	if f.Schema != "" {
		line += ", schema " + quote(f.Schema)
	}
	return line + "\n"
}
