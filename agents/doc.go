// Package agents reads a graph from its folders: which agents there are, what
// their settings are, which folders join them, and what a turn of an agent on
// an input asks of a model.
//
// # Folders
//
// A folder under agents/ that holds system/, input/ or agent.yaml is an agent.
// Load never changes anything on disk. Settings are strict: an unknown key, a
// wrong type or a name that refers to nothing is a Finding with file, line and
// column, and stops that agent only.
//
// # Confinement
//
// Every folder and every file that is followed stays inside the graph, also
// through symbolic links. A link that leads out is not an input.
//
// # Freshness
//
// Agent.Turn reads the system parts and the schema file each time it is
// called, so a change on disk holds for the next turn.
package agents
