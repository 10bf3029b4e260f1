// Package mcp serves a graph and its models over the Model Context Protocol,
// on the official Go SDK: stdio, and streamable HTTP on loopback.
//
// # Tools
//
// respond asks a model once and returns the answer as text, its parsed value
// as structuredContent.output and the whole turn record as
// structuredContent.task. A turn that is refused or not completed is a tool
// error with the same record. With a graph there are also list_agents, send,
// answers, check and approve.
//
// # Questions
//
// A tool whose policy is to ask waits for the tool approve, and asks the user
// of a client that can be asked; the first decision counts.
//
// # Resources
//
// Answers, records and, per agent, the list of its latest answers. A
// subscription to the list of an agent tells of each new answer.
//
// # Trust
//
// Everything a client sends is bounded and checked; see package serve for
// paths. HTTP wants a token, and a Host and an Origin that are this machine's;
// see [HTTP].
package mcp
