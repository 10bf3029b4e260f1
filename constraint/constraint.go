// Package constraint turns the bytes of a promise (a JSON Schema, a regular
// expression, a Lark grammar or a raw llguidance grammar) into one Constraint
// that masks tokens while a model answers and validates the finished text.
//
// A Constraint is compiled once, on a vocabulary of bytes, and bound to each
// model's Vocabulary the first time an answer is asked of that model; every
// answer gets a Matcher of its own, a clone that costs a fraction of a
// millisecond.
//
// # What a mask holds
//
// The engine is llguidance. A mask fixes the order of members (as the schema
// lists them), compact spacing and one spelling of numbers and escapes. Up to
// these it accepts everything the schema accepts. What llguidance cannot hold
// is taken out of the mask and listed by Unmasked; Admit refuses it or leaves
// it to validation, as Options.Enforce says. Validate is the last word.
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
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"agentgraph/constraint/internal/llg"
)

// Constraint is an admitted promise. Compile makes it.
type Constraint struct {
	spec Spec
	*compiled
}

// compiled is what specs of equal content and options share.
type compiled struct {
	sha     string
	opt     Options
	grammar grammarKey // what the engine reads
	// onVocabulary is the grammar for a vocabulary that has tokens of its own
	// for parts of it; nil where there is none.
	onVocabulary func(*Vocabulary) grammarKey
	caps         digitCaps
	unmasked     []Unmasked
	judge        judge
	// callGate is what text begins with when numbers in it are JSON's; empty
	// where the kind says it all.
	callGate string
}

// Unmasked is a part of a promise that the mask does not hold and validation
// decides.
type Unmasked struct {
	// Construct is the keyword ("uniqueItems"), or the syntax of a regular
	// expression ("lookahead").
	Construct string
	// Path is the JSON pointer of the schema object that holds it.
	Path         string
	Line, Column int
	// Reason is set where the keyword alone does not say why.
	Reason string
}

// keptConstraints bounds the compiled promises a process keeps.
const keptConstraints = 512

type compileKey struct {
	kind Kind
	sum  [sha256.Size]byte
	opt  Options
}

type compileResult struct {
	once sync.Once
	c    *compiled
	err  *Refusal
}

var compileCache = newCache[compileKey, *compileResult](keptConstraints, func(*compileResult) {})

// Compile admits and compiles a promise. Results are cached by content and
// options. The error is a *Refusal.
func Compile(spec Spec, opt Options) (*Constraint, error) {
	opt, err := opt.orDefault()
	if err != nil {
		return nil, &Refusal{File: spec.File, Kind: spec.Kind, Reason: err.Error()}
	}
	sum := sha256.Sum256(spec.Source)
	r := compileCache.get(compileKey{spec.Kind, sum, opt}, func() *compileResult { return new(compileResult) })
	r.once.Do(func() {
		r.c = &compiled{sha: hex.EncodeToString(sum[:]), opt: opt}
		r.err = r.c.compile(spec.Kind, spec.Source)
	})
	if r.err != nil {
		e := *r.err
		e.File, e.Kind = spec.File, spec.Kind
		return nil, &e
	}
	return &Constraint{spec, r.c}, nil
}

// orDefault fills in defaults and refuses values that are none.
func (o Options) orDefault() (Options, error) {
	o.Limits = o.Limits.OrStandard()
	switch o.Enforce {
	case "":
		o.Enforce = EnforceMask
	case EnforceMask, EnforceValidate:
	default:
		return o, fmt.Errorf("enforce is %q; it is mask or validate", o.Enforce)
	}
	switch o.Formats {
	case "":
		o.Formats = FormatsMask
	case FormatsMask, FormatsAssert, FormatsIgnore:
	default:
		return o, fmt.Errorf("formats is %q; it is mask, assert or ignore", o.Formats)
	}
	return o, nil
}

// compile fills c. The refusal has no file yet.
func (c *compiled) compile(kind Kind, src []byte) *Refusal {
	if len(src) > c.opt.Limits.SchemaBytes {
		return &Refusal{Limit: "schema_bytes", Construct: "size",
			Reason: fmt.Sprintf("the source has %d bytes, more than schema_bytes: %d", len(src), c.opt.Limits.SchemaBytes),
			Hint:   "make it smaller, or raise limits: schema_bytes"}
	}
	if i := invalidUTF8(src); i >= 0 {
		return at(src, i, &Refusal{Construct: "encoding", Reason: "bytes that are not UTF-8", Hint: "save the file as UTF-8"})
	}
	switch kind {
	case JSON:
		return c.compileJSON(src)
	case Regex:
		return c.compileRegex(src)
	case Lark:
		return c.compileLark(src)
	case LLG:
		return c.compileLLG(src)
	}
	return &Refusal{Reason: fmt.Sprintf("%q is no kind of constraint; the kinds are json, regex, lark and llg", kind)}
}

func invalidUTF8(src []byte) int {
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return -1
}

// Spec returns what was compiled.
func (c *Constraint) Spec() Spec { return c.spec }

// SHA256 is the hash of the source, in lower-case hexadecimal.
func (c *Constraint) SHA256() string { return c.sha }

// Options returns what it was compiled with, defaults filled in.
func (c *Constraint) Options() Options { return c.opt }

// Unmasked lists what validation decides because the mask does not hold it,
// in the order of the source.
func (c *Constraint) Unmasked() []Unmasked { return append([]Unmasked(nil), c.unmasked...) }

// Validate decides whether text keeps the promise. It stops early when ctx
// ends; the verdict is then not valid.
func (c *Constraint) Validate(ctx context.Context, text string) Verdict {
	if len(text) > c.opt.Limits.AnswerBytes {
		return Verdict{Diagnostics: []Diagnostic{{Code: JSONBytes}}}
	}
	d := bound(c.judge.judge(ctx, text))
	return Verdict{Valid: len(d) == 0, Diagnostics: d}
}

// refuse names the source in a refusal.
func (c *Constraint) refuse(r *Refusal) *Refusal {
	r.File, r.Kind = c.spec.File, c.spec.Kind
	return r
}

func (c *compiled) engineLimits() llg.Limits { return llg.Limits{} }

// engineRefusal words what llguidance said about a grammar that compiled on
// bytes and does not on a model's vocabulary.
func (c *Constraint) engineRefusal(err error) error {
	var e *llg.Error
	if !errors.As(err, &e) {
		return err
	}
	return c.refuse(engineRefusal(c.spec.Kind, c.spec.Source, e))
}

// tryEngine compiles the grammar on the byte vocabulary.
func (c *compiled) tryEngine(key grammarKey) error {
	v, err := ByteVocabulary()
	if err != nil {
		return err
	}
	m, err := v.matcher(key, c.engineLimits())
	if err != nil {
		return err
	}
	m.Close()
	return nil
}
