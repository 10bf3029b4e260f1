// Package constraint turns the bytes of a promise (a JSON Schema, a regular
// expression, a Lark grammar or a raw llguidance grammar) into one Constraint
// that masks tokens while a model answers and validates the finished text.
//
// A Constraint is compiled once, on a vocabulary of bytes, and bound to each
// model's Vocabulary the first time an answer is asked of that model; every
// answer gets a Matcher of its own, a clone that costs a fraction of a
// millisecond.
//
// # Goroutines
//
// A Constraint and a Vocabulary are safe for use by many goroutines. A Matcher
// belongs to one goroutine; only its Cancel may be called from another.
//
// # Without the native library
//
// A program linked without it (CGO_ENABLED=0, or tag nonative) still compiles
// and validates JSON Schemas and regular expressions. What needs masks, and
// the two grammar kinds, answer ErrNotBuilt.
package constraint

import (
	"context"
)

// Constraint is an admitted promise. Compile makes it.
type Constraint struct {
	spec Spec
	sha  string
	opt  Options
}

// Compile admits and compiles a promise. Results are cached by content and
// options. The error is a *Refusal.
func Compile(spec Spec, opt Options) (*Constraint, error) {
	return nil, &Refusal{File: spec.File, Kind: spec.Kind, Reason: ErrNotBuilt.Error(), NotNative: true}
}

// Spec returns what was compiled.
func (c *Constraint) Spec() Spec { return c.spec }

// SHA256 is the hash of the source, in lower-case hexadecimal.
func (c *Constraint) SHA256() string { return c.sha }

// Options returns what it was compiled with, defaults filled in.
func (c *Constraint) Options() Options { return c.opt }

// Admit says what will stand behind the promise when the answer comes from e,
// or refuses with a *Refusal when the options ask for more than e can hold.
func (c *Constraint) Admit(e Engine) (EnforcedBy, error) { return "", ErrNotBuilt }

// Validate decides whether text keeps the promise. It stops early when ctx
// ends; the verdict is then not valid.
func (c *Constraint) Validate(ctx context.Context, text string) Verdict { return Verdict{} }
