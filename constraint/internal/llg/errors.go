// Package llg is the only user of llguidance's C interface. It holds opaque
// pointers and gives out Go values; no C type leaves it.
//
// # Lifetimes
//
// A Tokenizer outlives its matchers: it counts them and is freed with the
// last. Close is idempotent everywhere; any other use of a closed value
// panics with a message that says which. An error of a Matcher is sticky.
package llg

import "errors"

// ErrNotBuilt is what everything here returns in a program that was linked
// without the native library.
var ErrNotBuilt = errors.New("built without the native library (llguidance, llama.cpp); run \"make native\" and build again with cgo and without the tag nonative")
