// Package server starts a model server as a program, waits until it answers,
// starts it again when it dies, and stops it.
//
// # No orphans
//
// The program runs under a supervisor: this same program, started with
// Supervise, which holds one end of a pipe. When the other end closes, because
// the caller closes it, or dies however suddenly, the supervisor ends the
// server and everything of its process group with SIGTERM, and after a while
// with SIGKILL. On Linux the kernel kills the server when the supervisor is
// killed, and what the server detached from its group is found as well. On
// Windows there are no process groups: the program itself is ended.
//
// # One server for all
//
// A lock beside the log says who runs the server of an address. A second
// process with the same command uses the server that is there, and starts its
// own when that one ends. A server that nobody here has started is an error:
// the address is taken.
//
// The log has at most two files of 1 MiB, for the user alone, without the
// values of the environment variables that the settings list.
package server
