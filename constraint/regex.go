package constraint

import (
	"bytes"
	"errors"
	"regexp"

	"agentgraph/constraint/internal/llg"
	"agentgraph/constraint/internal/validate"
)

// compileRegex admits a regular expression that stands for the whole answer.
func (c *compiled) compileRegex(src []byte) *Refusal {
	if len(src) == 0 {
		return &Refusal{Construct: "empty", Reason: "the regular expression is empty", Hint: "write one, or remove the file"}
	}
	if i := bytes.IndexByte(src, 0); i >= 0 {
		return at(src, i, &Refusal{Construct: "NUL", Reason: "a NUL byte", Hint: `write it as \x00`})
	}
	v, err := validate.Regex(string(src))
	if err != nil {
		return validateRefusal(err, "it is matched against the whole answer, without look-around and back-references")
	}
	c.judge = localJudge{v}
	c.grammar = grammarKey{llg.Regex, string(src)}
	if !llg.Built {
		return nil
	}
	if r := c.engineOrRefusal(Regex, src); r != nil {
		return r
	}
	// The engine may know a later Unicode than the validator: where classes
	// depend on it, it gets the validator's.
	if unicodeClass.Match(src) {
		if spelled := (grammarKey{llg.Regex, v.Spelled()}); c.tryEngine(spelled) == nil {
			c.grammar = spelled
		}
	}
	return nil
}

var unicodeClass = regexp.MustCompile(`\\[dDwWsSpP]|\(\?[a-zA-Z-]*i`)

// validateRefusal words what a local validator refuses.
func validateRefusal(err error, hint string) *Refusal {
	var e *validate.SchemaError
	if !errors.As(err, &e) {
		return &Refusal{Reason: err.Error()}
	}
	return &Refusal{Line: e.Line, Column: e.Column, Construct: e.Construct, Path: e.Path, Reason: e.Reason, Hint: hint}
}

// engineOrRefusal compiles the grammar and words what the engine refuses.
func (c *compiled) engineOrRefusal(kind Kind, src []byte) *Refusal {
	err := c.tryEngine(c.grammar)
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrNotBuilt) {
		return &Refusal{Reason: ErrNotBuilt.Error(), NotNative: true}
	}
	var e *llg.Error
	if !errors.As(err, &e) {
		return &Refusal{Reason: err.Error()}
	}
	return engineRefusal(kind, src, e)
}
