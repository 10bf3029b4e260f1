// Package validate decides whether a finished answer keeps its promise.
//
// It holds two judges: JSON compiles a JSON Schema, Regex a regular
// expression. Both are pure Go, need no model and never read a file or the
// network. What they say is final: an answer is published when, and only
// when, Validate returns no finding.
//
// # JSON Schema
//
// Draft 2020-12 by default; drafts 04, 06, 07 and 2019-09 where "$schema" says
// so, with the rule of 04 to 07 that "$ref" hides its siblings. A "$schema"
// that is none of these is refused, and so is every reference that leaves the
// document. "dependencies" works in every draft. "format" is an annotation
// unless Options.AssertFormats; an unknown format always is.
//
// Numbers keep their exact value whatever their length: 9007199254740993 is
// not 9007199254740992, and 0.3 is a multiple of 0.1. "pattern" has the
// meaning of ECMA-262 over code points. Duplicate members, lone surrogates and
// text that is not UTF-8 are invalid.
//
// # Why not a ready-made validator
//
// The compiler and the evaluator are our own because of what a hostile schema
// or answer may cost: a known library looks up every subschema with a linear
// search (seconds for a wide object), walks maps in random order (so that the
// first eight findings differ between runs) and builds an error for each
// failure (gigabytes within the work limit). Tests hold this package against
// that library and against the official test suite.
//
// # Bounds
//
// An answer is bounded in bytes, JSON values, nesting and work. One unit of
// work is one schema applied to one value; a member tried against one
// patternProperties expression and every 16 digits of a long number that has
// to be divided count as one more. Regular expressions have a time budget
// per answer. What runs over a bound ends as a finding with the bound's code,
// never as a pass.
package validate

import "time"

// Limits bound what one answer may cost. Zero means the standard value.
type Limits struct {
	AnswerBytes int // bytes of text; standard 1 MiB
	AnswerNodes int // JSON values, member names not counted; standard 65,536
	AnswerDepth int // nested arrays and objects; standard 64
	Work        int // units of work; standard 16,777,216
}

func (l Limits) orStandard() Limits {
	fill := func(v *int, standard int) {
		if *v <= 0 {
			*v = standard
		}
	}
	fill(&l.AnswerBytes, 1<<20)
	fill(&l.AnswerNodes, 65536)
	fill(&l.AnswerDepth, 64)
	fill(&l.Work, 1<<24)
	return l
}

// Options change how a schema is compiled. The zero value is the default.
type Options struct {
	// AssertFormats makes the known values of "format" assertions.
	AssertFormats bool
	Limits        Limits
	// MatchTimeout is the time all pattern matches of one answer may take
	// together; zero means DefaultMatchTimeout. It is kept to within about a
	// tenth of a second.
	MatchTimeout time.Duration
}

// DefaultMatchTimeout is the default of Options.MatchTimeout.
const DefaultMatchTimeout = time.Second

// The codes a Finding may carry.
const (
	MalformedJSON    = "malformed_json"    // not JSON, not UTF-8, a lone surrogate
	JSONBytes        = "json_bytes"        // longer than Limits.AnswerBytes
	JSONStructure    = "json_structure"    // too many values, too deep, a member twice, an exponent past any use
	ValidationWork   = "validation_work"   // over the work or time limit, or cancelled
	SchemaViolation  = "schema_violation"  // the schema does not hold
	GrammarViolation = "grammar_violation" // the regular expression does not match
)

// Finding says where an answer breaks its promise: a code and two JSON
// pointers, never a value of the answer and never one of the schema.
type Finding struct {
	Code string
	// Instance points into the answer, at the value that is wrong. For a
	// member that may not be there, and for one that is there twice, it is
	// the member; for one that is missing, the object.
	Instance string
	// Schema points into the schema's source, at the keyword that failed
	// (for a missing member: at its name in "required"). Empty for findings
	// that no keyword made.
	Schema string
}
