package watch

import "os"

// identity cannot be had from a FileInfo here; Check still finds a folder
// that is missing or back.
func identity(os.FileInfo) string { return "folder" }
