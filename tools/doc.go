// Package tools is what a model may call: programs, the tools of MCP servers,
// and built-ins that stay inside the graph.
//
// # Tools and offers
//
// A Tool says what it is and answers calls. A Box opens the entries of the
// setting `tools:` and gives back Offers: tools with their policy and bounds.
// Descriptions of programs and connections to MCP servers are kept by the Box
// and shared by all turns that use it.
//
// # Bounds
//
// Every call has a time-out. What comes back is cut after a number of bytes;
// the size and the SHA-256 are those of the whole. A program runs in a process
// group of its own, which is killed when the call is over, in a working folder
// that is set, with an environment that holds nothing but a few plain
// variables and those that are listed. The values of listed variables are
// taken out of results.
//
// # Failures
//
// A call that fails is no error of the turn: the model reads why. Only a
// policy ends a turn.
package tools
