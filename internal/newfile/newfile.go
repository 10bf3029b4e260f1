// Package newfile writes files that nobody had: whole or not at all, and never
// in the place of another one.
//
// A file is written under a temporary name beside its own, synced, and then
// linked to its name, which fails where there is one. A Set is several files,
// all of which go again when one of them cannot be written.
package newfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// File is a file on its way. It ends with Commit or Discard.
type File struct {
	file *os.File
	path string
	done bool
}

// Create begins a file in a folder that is there. The name is taken only by
// Commit.
func Create(path string) (*File, error) {
	if err := mustBeNew(path); err != nil {
		return nil, err
	}
	temp := filepath.Join(filepath.Dir(path), ".agentgraph-"+rand.Text()+".tmp")
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, about(path, err)
	}
	return &File{file: f, path: path}, nil
}

// Write appends to the file.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.file.Write(b)
	if err != nil {
		err = about(f.path, err)
	}
	return n, err
}

// Commit gives the file its name when all of it is on disk, or leaves nothing.
// The error is fs.ErrExist where somebody has the name.
func (f *File) Commit() error {
	defer f.Discard()
	if err := errors.Join(f.file.Sync(), f.file.Close()); err != nil {
		return about(f.path, err)
	}
	if err := name(f.file.Name(), f.path); err != nil {
		return about(f.path, err)
	}
	// The name, too; not every file system can do it.
	if dir, err := os.Open(filepath.Dir(f.path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
	return nil
}

// Discard removes what was not committed; it is idempotent.
func (f *File) Discard() {
	if !f.done {
		f.done = true
		_ = f.file.Close() // the second time where Commit did
		_ = os.Remove(f.file.Name())
	}
}

// name links temp to path, or where the file system has no links, renames it.
func name(temp, path string) error {
	err := os.Link(temp, path)
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.EMLINK):
		if err := mustBeNew(path); err != nil {
			return err
		}
		return os.Rename(temp, path)
	}
	return err
}

func mustBeNew(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// about is an error with the name that people know.
func about(path string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	return &fs.PathError{Op: "write", Path: path, Err: err}
}

// Set is files and folders that are made together.
type Set struct{ made []string }

// Dir makes a folder and those above it that are not there.
func (s *Set) Dir(path string) error {
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := s.Dir(parent); err != nil {
			return err
		}
	}
	err := os.Mkdir(path, 0o777)
	if errors.Is(err, fs.ErrExist) {
		// Somebody else was faster, or no folder has the name.
		if info, serr := os.Stat(path); serr == nil && info.IsDir() {
			return nil
		}
	}
	if err != nil {
		return err
	}
	s.made = append(s.made, path)
	return nil
}

// Write makes a file, and the folders above it.
func (s *Set) Write(path string, data []byte) error {
	if err := s.Dir(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return err
	}
	s.made = append(s.made, path)
	return nil
}

// Undo removes what the set has made. A folder stays when somebody else has
// put something into it. The error names what could not be removed.
func (s *Set) Undo() error {
	var errs []error
	for _, path := range slices.Backward(s.made) {
		err := os.Remove(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			errs = append(errs, fmt.Errorf("what was made cannot be removed: %w", err))
		}
	}
	s.made = nil
	return errors.Join(errs...)
}
