// Package turn runs one turn in memory: it renders the prompt, admits the
// constraint, calls the model, validates the answer, repairs it at most once
// and returns a record. It touches no file; callers publish and store.
//
// # Contract
//
// Run always returns a record. A refusal, before any token, is a record
// without an outcome. An answer is "completed" only when the model ended it
// itself and, under a constraint, it validated here; everything else keeps
// its text in the record alone.
package turn
