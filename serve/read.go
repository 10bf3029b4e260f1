package serve

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// readIn reads a regular file below root; more than limit bytes are an error.
func readIn(root *os.Root, rel string, limit int64) ([]byte, error) {
	path := filepath.FromSlash(rel)
	info, err := root.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // before a FIFO is opened
		return nil, &fs.PathError{Op: "open", Path: rel, Err: fs.ErrNotExist}
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s has more than the %d bytes that are read", rel, limit)
	}
	return b, nil
}
