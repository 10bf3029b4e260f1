// Package llg is the only user of llguidance's C interface. It holds opaque
// pointers and gives out Go values; no C type leaves it.
//
// # Lifetimes
//
// A Tokenizer counts its matchers and is freed with the last of them. Close is
// idempotent everywhere; any other use of a closed value panics with a message
// that says which. An error of a Matcher is sticky.
//
// # Goroutines
//
// A Tokenizer may be used by many goroutines, a Matcher by one at a time. Only
// Matcher.Cancel may run beside another call, and also after Close.
package llg

import (
	"errors"
	"strings"
)

// ErrNotBuilt is what everything here returns in a program that was linked
// without the native library.
var ErrNotBuilt = errors.New("built without the native library (llguidance, llama.cpp); run \"make native\" and build again with cgo and without the tag nonative")

// ErrCancelled is the error of a matcher after Cancel.
var ErrCancelled = errors.New("cancelled")

// Grammar kinds as llguidance names them.
const (
	Regex      = "regex"
	JSONSchema = "json_schema"
	Lark       = "lark"
	LLGuidance = "llguidance"
)

// Limits bound what a grammar may cost; 0 keeps llguidance's default.
type Limits struct {
	InitialLexerFuel, StepLexerFuel uint64
	StepMaxItems, MaxItemsInRow     uint64
	MaxLexerStates, MaxGrammarSize  uint64
}

// Error is what llguidance said.
type Error struct {
	Msg string
	// Limit is true when a bound on the cost of the grammar was exceeded, so
	// that the grammar may be right and only too big.
	Limit bool
}

func (e *Error) Error() string { return e.Msg }

// limitTexts are how llguidance words an exceeded bound.
var limitTexts = []string{
	"Too many items", "too many items", "fuel", "too complex", "too many states",
	"too big", "size limit", "grammar size", "Current row has", "stack level exceeded",
	"too large", "maximum relevance", "limits.",
}

// message turns llguidance's text into an error.
func message(text string) error {
	text = strings.TrimSpace(text)
	if text == "cancelled" || strings.HasPrefix(text, "matcher cancelled") {
		return ErrCancelled
	}
	e := &Error{Msg: text}
	for _, t := range limitTexts {
		if strings.Contains(text, t) {
			e.Limit = true
		}
	}
	return e
}

// TokenizerConfig describes a vocabulary.
type TokenizerConfig struct {
	Tokens [][]byte // a special token's bytes start with 0xFF
	EOS    []uint32
	// Tokenize and TokenizeData are the addresses of a C function of type
	// LlgTokenizeFn and of its first argument.
	Tokenize, TokenizeData uintptr
	// SingleBytes tokenizes each byte as the token of that number.
	SingleBytes bool
	// Greedy tokenizes by longest match; no token is ever forced then.
	Greedy bool
}
