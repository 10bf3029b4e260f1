// Package importer reads a configuration of AgentGraph (config.yaml) and plans
// the folders and settings that say the same here. docs/import.md lists what
// becomes of each key.
//
// A plan is made whole before a byte is written, replaces nothing, and names
// every key that it could not carry, with its place in the file. Keys that are
// secrets are never copied.
package importer
