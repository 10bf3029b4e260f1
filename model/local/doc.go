// Package local runs GGUF models in this process with llama.cpp.
//
// # One engine, many answers
//
// A Model owns one llama.cpp context and one goroutine that uses it. Calls of
// Generate hand that goroutine a sequence and wait. Each step decodes, in one
// batch, the next tokens of all running sequences: a chunk of a prompt, or
// the token just chosen together with all tokens that the grammar leaves no
// choice about. Sequences join and leave between steps.
//
// # Constraints
//
// A constrained answer has a constraint.Matcher. Its mask is applied to the
// logits where they lie in C memory; end tokens are allowed exactly when the
// grammar allows an end. Special tokens never become text.
//
// # Prompt reuse
//
// The keys and values of earlier prompts stay in the context. A new prompt
// copies its longest common prefix with any of them and decodes the rest.
//
// # Same answer every time
//
// Greedy answers do not depend on who else is running, but for one thing: the
// shape of a batch changes the order in which floats are added, and where two
// tokens are almost equally likely that can decide. Request.Solo runs alone,
// without reuse, and gives the same answer every time on the same build,
// thread count and seed.
//
// # Without the native library
//
// Built without cgo, or with the tag nonative, Open returns
// constraint.ErrNotBuilt.
package local
