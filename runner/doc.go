// Package runner works a graph: it claims inputs, runs turns, and publishes
// answers.
//
// # Contract
//
// Every input gets one turn: identity is the agent, the input's path and the
// hash of its content. The bytes that are hashed at the claim are the bytes
// the model reads. A model may be asked twice for one turn (after a crash or a
// failure that may pass), an answer is published once. An input is never
// moved, changed or deleted.
//
// A runner may be killed at any moment. What it leaves is no torn file, no
// second answer and no lost input; docs/runner.md has the table of moments.
//
// # How it works
//
// Events only say where to look. One comparison of a folder with the ledger
// (the intake) finds inputs, at the start, after an event, after each turn and
// every rescan. A scheduler starts turns, fairly between agents and within
// the bounds of agents and models. Answers of one agent are published in the
// order in which their inputs were claimed.
//
// # The seam
//
// Generator is who generates: turn.Run in this process, unless the caller says
// otherwise. What crosses it is a rendered turn and its record; claims and
// publishes stay here.
package runner
