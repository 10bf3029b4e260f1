// Package serve answers for programs: one call of a model, and the folders of
// a graph, for whoever speaks a protocol. The commands respond, mcp and acp
// are faces over it.
//
// # Calls
//
// [Service.Respond] runs one turn in memory. What a [Call] leaves open comes
// from the graph's defaults, or from an agent's folder when it names one. The
// answer is in the record; no file is published. A schema holds for the call
// and never for the thread it belongs to.
//
// # Graphs
//
// [Service.Send] drops an input into an agent's folder and can wait for what
// becomes of it. The turn is the runner's: one that works the graph already,
// or one that the service starts then and ends in [Service.Close].
//
// # Trust
//
// Callers are not trusted with paths. Names of agents, inputs, turns and
// answers are looked up in the graph, and nothing outside it is read or
// written. Everything that is read has a bound.
package serve
