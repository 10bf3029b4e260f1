// Package watch says which folders may have changed, and when a file has
// stopped changing.
//
// # Contract
//
// What it reports are hints. A folder that is reported dirty may be unchanged;
// a change is never left unreported for good: after an overflow of the
// kernel's queue, after an error, and after a folder was deleted, moved or
// made again, the whole folder is reported. The truth is always a comparison
// of the folder with what is known about it.
//
// Folders are watched, never files, and not the folders below them. A folder
// need not exist: it is watched as soon as it does. A watch is added before
// the folder is reported, so a reader that scans on the report misses nothing.
//
// # Limits
//
// Where no watch can be had (the kernel's limit, a network file system) the
// folder is polled, and a Problem says why and what to do. Notifications need
// inotify, kqueue or what else fsnotify knows; a read lease, which tells that
// no writer has a file open, needs Linux and a file of one's own.
package watch
