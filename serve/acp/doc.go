// Package acp speaks the Agent Client Protocol, version 1, for editors and
// other programs that start an agent as a child process.
//
// # Sessions
//
// A session is a thread: its id is the thread's name, and what was asked and
// answered in it is there after a restart, for session/load and for "respond
// --thread". The agents of the graph are the session's modes; the mode "/"
// asks with the graph's defaults. A schema holds for one prompt and is no part
// of the session.
//
// # Servers of the client
//
// The MCP servers that a client lists are connected for the session and end with
// it. Their tools stand behind those of the settings, under the policy of the
// setting client_tools. A server that cannot be had is told to the client and
// stands in the record; it keeps nobody from a session or an answer.
//
// # Turns
//
// Free text is sent while it grows, text held to a schema when it is whole and
// valid. Updates of one prompt arrive in the order in which things happened,
// and all of them before the response. A model never waits for a slow client:
// text that was not sent yet is put together.
//
// # Metadata
//
// A client that puts "agentgraph/v1" into the _meta of its capabilities gets
// the turn record with each response, and the turn's id and token count with
// the updates. Other clients get none of it; what kept a turn from an answer
// is then the error of the request.
package acp
