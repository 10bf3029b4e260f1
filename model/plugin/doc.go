// Package plugin runs a program as a model: AgentGraph's provider protocol,
// so that its ag-provider-* programs work unchanged. docs/plugins.md is for
// those who write one.
//
// # Protocol
//
// Each call is a process of its own. It reads one JSON object from stdin to
// its end and prints events, one a line: "T:" text, "R:" reasoning, "C:" a
// tool call as JSON, "D" the end, "X:" a failure. A line that is no event
// belongs to the text or reasoning before it: these may hold line ends.
//
// # Limits
//
// A line has at most 4 MiB and a reply 64 MiB. The process and all it started
// are killed when the call ends, however it ends. Stderr is read, its end is
// quoted when something goes wrong, and the rest is dropped. The program gets
// plain environment variables, AG_PROVIDER_<NAME>_* and those the settings
// list; the values of the latter are taken out of messages.
package plugin
