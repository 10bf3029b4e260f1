// Package ledger is the runner's index over inputs and turns, in SQLite.
//
// # Contract
//
// The folders are the truth; the ledger is derived from them and can be
// rebuilt. What it alone holds is about turns that are under way: which bytes
// an input had when it was claimed, and what a publish is about to do.
//
// Writes go through one goroutine in the order they were asked for, many in
// one transaction, which is on disk when Wait returns. Reads see what was
// committed. A write that fails (a full disk) leaves no trace; writes that
// nobody waits for are tried again.
//
// # Compatibility
//
// A ledger of another version is not read: ErrOlder and ErrCorrupt mean that
// it can be set aside and built anew, ErrNewer that a newer program is in use.
package ledger
