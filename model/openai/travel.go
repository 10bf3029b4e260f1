package openai

import (
	"errors"
	"regexp"

	"agentgraph/constraint"
	"agentgraph/constraint/lark"
)

// asIs is the source itself.
func asIs(spec constraint.Spec) (string, *constraint.Refusal) { return string(spec.Source), nil }

// translator makes the text of a grammar dialect out of a source.
type translator struct {
	regex func(string) (string, error)
	lark  func(*lark.Grammar) (string, error)
}

var (
	toGBNF = translator{lark.RegexToGBNF, (*lark.Grammar).GBNF}
	toEBNF = translator{lark.RegexToEBNF, (*lark.Grammar).EBNF}
)

func (t translator) translate(spec constraint.Spec) (string, *constraint.Refusal) {
	var text string
	var err error
	if spec.Kind == constraint.Regex {
		text, err = t.regex(string(spec.Source))
	} else {
		var g *lark.Grammar
		if g, err = lark.Parse(spec.Source); err == nil {
			text, err = t.lark(g)
		}
	}
	if err != nil {
		return "", untranslated(spec, err)
	}
	return text, nil
}

// untranslated words what a server's grammars cannot say.
func untranslated(spec constraint.Spec, err error) *constraint.Refusal {
	r := &constraint.Refusal{File: spec.File, Kind: spec.Kind, Capability: true, Reason: err.Error()}
	var le *lark.Error
	if errors.As(err, &le) {
		r.Line, r.Column, r.Construct, r.Reason, r.Hint = le.Line, le.Col, le.Construct, le.Msg, le.Hint
	}
	if r.Hint != "" {
		r.Hint += ", or "
	}
	r.Hint += "use a server that takes it as it is, or allow validation alone with enforce: validate"
	return r
}

var optionLine = regexp.MustCompile(`(?m)^[ \t]*%llguidance\b`)

// withOptionLine is a Lark source that begins with the line which tells
// servers that it is llguidance's dialect.
func withOptionLine(spec constraint.Spec) (string, *constraint.Refusal) {
	src := string(spec.Source)
	at := optionLine.FindStringIndex(src)
	switch {
	case at == nil:
		return "%llguidance {}\n" + src, nil
	case at[0] == 0 && src[0] == '%':
		return src, nil
	}
	line, col := position(spec.Source, at[1]-len("%llguidance"))
	return "", &constraint.Refusal{File: spec.File, Line: line, Column: col, Kind: spec.Kind, Construct: "%llguidance", Capability: true,
		Reason: "the server knows the dialect by the %llguidance line, and only at the very beginning",
		Hint:   "make it the first line of the file"}
}
