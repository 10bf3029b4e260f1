//go:build !linux

package watch

import "os"

// fileID tells a folder from another one of the same name, as far as its
// modification of metadata allows here.
type fileID struct{ info string }

func identify(dir string) (fileID, bool) {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return fileID{}, false
	}
	return fileID{identity(info)}, true
}

func networkFS(string) string { return "" }

// NetworkFS names the network file system that path lies on; not known here.
func NetworkFS(string) string { return "" }

// Writing reports whether some process has the file open for writing; not
// known here.
func Writing(string) (open, known bool) { return false, false }

// Free is how many bytes may still be written where path lies; not known here.
func Free(string) (bytes uint64, ok bool) { return 0, false }
