//go:build !race

package agentgraph_test

const raceDetector = false
