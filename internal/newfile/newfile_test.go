package newfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree lists what lies below dir.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			rel, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("whole")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has its name too soon: %v", err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Discard()
	if b, err := os.ReadFile(path); string(b) != "whole" || tree(t, dir) != "a.txt" {
		t.Errorf("%q, %v; there is %s", b, err, tree(t, dir))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o600 != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}

	f, err = Create(filepath.Join(dir, "b.txt"))
	if err != nil {
		t.Fatal(err)
	}
	f.Discard()
	if tree(t, dir) != "a.txt" {
		t.Errorf("left is %s", tree(t, dir))
	}
	if _, err := Create(filepath.Join(dir, "none", "c.txt")); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), ".tmp") {
		t.Errorf("no folder: %v", err)
	}
}

// Nothing is replaced: neither what was there, links that lead nowhere too, nor
// what came meanwhile.
func TestNothingIsReplaced(t *testing.T) {
	dir := t.TempDir()
	for _, there := range []func(path string) error{
		func(path string) error { return os.WriteFile(path, []byte("old"), 0o666) },
		func(path string) error { return os.Symlink("nowhere", path) },
		func(path string) error { return os.Mkdir(path, 0o777) },
	} {
		path := filepath.Join(dir, "a")
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := there(path); err != nil {
			t.Fatal(err)
		}
		if err := f.Commit(); !errors.Is(err, fs.ErrExist) || strings.Contains(err.Error(), ".tmp") {
			t.Errorf("it came meanwhile: %v", err)
		}
		if _, err := Create(path); !errors.Is(err, fs.ErrExist) {
			t.Errorf("it was there: %v", err)
		}
		if tree(t, dir) != "a" {
			t.Errorf("there is %s", tree(t, dir))
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUndo(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "there/already"), 0o777); err != nil {
		t.Fatal(err)
	}
	var s Set
	for _, err := range []error{
		s.Write(filepath.Join(dir, "there/new/deep/a"), []byte("a")),
		s.Write(filepath.Join(dir, "there/b"), []byte("b")),
		s.Dir(filepath.Join(dir, "empty/folder")),
		s.Dir(filepath.Join(dir, "there/already")),
		s.Write(filepath.Join(dir, "shared/c"), nil),
		os.WriteFile(filepath.Join(dir, "shared/theirs"), nil, 0o666),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Write(filepath.Join(dir, "there/b"), []byte("again")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v", err)
	}
	if err := s.Dir(filepath.Join(dir, "there/b/c")); err == nil {
		t.Error("a folder in a file")
	}
	if err := s.Undo(); err != nil {
		t.Error(err)
	}
	if got, want := tree(t, dir), "shared shared/theirs there there/already"; got != want {
		t.Errorf("left is %s, want %s", got, want)
	}
}
