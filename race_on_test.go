//go:build race

package agentgraph_test

// raceDetector is on: what runs no Go code is left to the run without it.
const raceDetector = true
