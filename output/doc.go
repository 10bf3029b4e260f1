// Package output names answers and publishes them.
//
// # Contract
//
// A file that [Pending.Commit] or [Publish] made is whole, durable, and did
// not exist before: bytes go to a temporary dotfile in the same folder, which
// is synced and then renamed without replacing; the folder is synced last. An
// existing file, whoever made it, is never replaced.
//
// The number of a turn is 0 in an empty folder, otherwise one more than the
// highest among the files whose whole name matches the pattern. When another
// publisher takes that name first, the next free one is used.
//
// # Steps
//
// [Folder.Prepare], [Pending.NextName] and [Pending.Commit] are separate so
// that a caller can write down what it is about to do; [Publish] is the loop
// over them. Between the steps a publish is only a temporary file; when its
// process dies, [Sweep] removes it.
//
// # Platforms
//
// Linux renames with RENAME_NOREPLACE. Other Unix systems, and file systems
// that cannot do that, link the new name and unlink the temporary one. All
// steps work on one open folder, so a folder that is swapped for another
// meanwhile gets nothing. On Windows paths are used instead.
package output
