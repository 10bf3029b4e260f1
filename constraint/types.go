package constraint

import "agentgraph/schemafile"

// Kind is schemafile.Kind; the rooms above need not import schemafile.
type Kind = schemafile.Kind

// The four kinds of constraint.
const (
	JSON  = schemafile.JSON
	Regex = schemafile.Regex
	Lark  = schemafile.Lark
	LLG   = schemafile.LLG
)

// Spec is a promise before it is admitted: the source as it stands in the
// file (byte-order mark dropped, bytes otherwise untouched).
type Spec struct {
	Kind   Kind
	Source []byte
	// File names the source in errors, e.g. "agents/x/system/.schema-a.json";
	// empty for a source given on a command line.
	File string
}

// Enforce says what may stand in for a mask.
type Enforce string

// EnforceMask (the default) refuses what the engine cannot hold while it
// generates; EnforceValidate lets local validation decide that part.
const (
	EnforceMask     Enforce = "mask"
	EnforceValidate Enforce = "validate"
)

// Formats says what JSON Schema's "format" does.
type Formats string

// FormatsMask shapes what is generated and asserts nothing about other text;
// FormatsAssert validates too; FormatsIgnore does neither. An unknown format
// is an annotation in all three.
const (
	FormatsMask   Formats = "mask"
	FormatsAssert Formats = "assert"
	FormatsIgnore Formats = "ignore"
)

// Options are the settings that change how a Spec is compiled. The zero
// value means mask, mask and the standard limits.
type Options struct {
	Enforce Enforce
	Formats Formats
	Limits  Limits
}

// EnforcedBy is what stood behind a promise during one turn.
type EnforcedBy string

// See SCHEMA.md, "What enforces a promise".
const (
	ByMask             EnforcedBy = "mask"
	ByMaskValidation   EnforcedBy = "mask+validation"
	ByServerValidation EnforcedBy = "server+validation"
	ByValidation       EnforcedBy = "validation"
)

// Source of a capability declaration; it chooses the wording of a refusal.
type Declared string

// Where a model's capability to hold constraints is declared.
const (
	DeclaredLocal  Declared = "local"
	DeclaredServer Declared = "server"
	DeclaredPlugin Declared = "plugin"
	DeclaredScript Declared = "script"
)

// Engine is what a model's engine says it can hold while it generates.
type Engine struct {
	// Name is shown to people: "llguidance 1.9.1", "vllm".
	Name string
	// Masks is true when this process masks every token itself, through a
	// Matcher of this package.
	Masks bool
	// Kinds lists what the engine constrains; empty means nothing.
	Kinds []Kind
	// Declared and Where say who declared this and where a user changes it.
	Declared Declared
	Where    string
}

// Holds reports whether the engine constrains kind.
func (e Engine) Holds(kind Kind) bool {
	for _, k := range e.Kinds {
		if k == kind {
			return true
		}
	}
	return false
}

// Code is a diagnostic's closed code.
type Code string

// The closed list of diagnostic codes.
const (
	MalformedJSON    Code = "malformed_json"
	JSONBytes        Code = "json_bytes"
	ValidationWork   Code = "validation_work"
	JSONStructure    Code = "json_structure"
	SchemaViolation  Code = "schema_violation"
	GrammarViolation Code = "grammar_violation"
)

// Diagnostic says where an answer broke its promise. It never holds a value
// of the answer or of the schema, only JSON pointers of at most 256 bytes.
type Diagnostic struct {
	Code     Code   `json:"code"`
	Instance string `json:"instance"`
	Schema   string `json:"schema"`
}

// Verdict is the outcome of Validate: valid exactly when Diagnostics is
// empty; at most eight diagnostics, 2048 bytes in all.
type Verdict struct {
	Valid       bool
	Diagnostics []Diagnostic
}
