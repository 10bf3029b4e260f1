package schemafile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// MaxBytes is the most a source may have, unless the caller gives
// [WithMaxBytes].
const MaxBytes = 1 << 20

// File is a schema file as it was read.
type File struct {
	Name Name
	Path string
	// Source is the text without a byte-order mark and, for a regular
	// expression, without one trailing newline; otherwise untouched.
	Source []byte
	// SHA256 is the hash, in hexadecimal, of the bytes on disk.
	SHA256 string
}

// Kind is the language of Source.
func (f *File) Kind() Kind { return f.Name.Kind() }

// Option changes how files are read.
type Option func(*options)

type options struct {
	maxBytes int64
	check    func(path string) error
}

// WithMaxBytes sets the size above which a file is refused.
func WithMaxBytes(n int64) Option { return func(o *options) { o.maxBytes = n } }

// WithCheck is asked about the file that was found before anything of it is
// read; its error is the error of Find.
func WithCheck(check func(path string) error) Option { return func(o *options) { o.check = check } }

// Times a folder or file that changes while it is read is read again.
const tries = 5

// Find reads the schema file of a system folder; nil and no error mean that
// the folder has none. The error is an *Error. Links are followed; whether
// they stay inside a graph is for WithCheck to say.
func Find(systemDir string, opts ...Option) (*File, error) {
	o := options{}
	for _, opt := range opts {
		opt(&o)
	}
	for try := 1; ; try++ {
		name, err := find(systemDir)
		if name == "" || err != nil {
			return nil, err
		}
		if o.check != nil {
			if err := o.check(filepath.Join(systemDir, name)); err != nil {
				return nil, err
			}
		}
		file, err := Read(filepath.Join(systemDir, name), opts...)
		if try < tries && errors.Is(err, fs.ErrNotExist) {
			if _, gone := os.Lstat(filepath.Join(systemDir, name)); gone != nil {
				continue // renamed or removed since the listing
			}
		}
		return file, err
	}
}

// find returns the name of the one schema file.
func find(dir string) (string, error) {
	names, err := list(dir)
	if err != nil {
		return "", &Error{Rule: RuleRead, File: dir, Msg: "the folder cannot be read: " + reason(err), Hint: "make it a folder this user can read", Err: err}
	}
	var found []string
	for _, name := range names {
		if looksLike(name) && !leftover(name, names) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", &Error{Rule: RuleTwo, File: filepath.Join(dir, found[1]),
		Msg:  fmt.Sprintf("the folder has %d schema files, %s and %s", len(found), printable(strings.Join(found[:len(found)-1], ", ")), printable(found[len(found)-1])),
		Hint: "keep one; the others can move to another folder"}
}

// list returns the names in dir. A folder that changes meanwhile is listed
// again: a file renamed during a listing may be missed under both names.
func list(dir string) ([]string, error) {
	for try := 1; ; try++ {
		before, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		d, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		names, err := d.Readdirnames(-1)
		d.Close()
		if err != nil {
			return nil, err
		}
		after, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		if try == tries || os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()) {
			return names, nil
		}
	}
}

// looksLike reports names that are meant as schema files, also where they
// miss the exact form: those are refused, not skipped.
func looksLike(name string) bool {
	const stem = ".schema"
	if len(name) < len(stem) || !strings.EqualFold(name[:len(stem)], stem) {
		return false
	}
	rest := name[len(stem):]
	return rest == "" || strings.ContainsRune("-._@", rune(rest[0]))
}

// leftover reports what an editor keeps beside a schema file while that file
// itself is there. Without it the leftover is refused like any other name: an
// answer must not slip out unconstrained while an editor saves.
func leftover(name string, all []string) bool {
	for _, end := range []string{"~", ".swp", ".swo", ".swn", ".swx", ".tmp", ".part", ".bak", ".backup", ".orig", ".rej", ".save"} {
		if base, ok := strings.CutSuffix(name, end); ok && slices.Contains(all, base) {
			_, err := Parse(base)
			return err == nil
		}
	}
	return false
}

// Read reads one schema file, whose name must be one. The error is an *Error.
func Read(path string, opts ...Option) (*File, error) {
	o := options{maxBytes: MaxBytes}
	for _, opt := range opts {
		opt(&o)
	}
	name, err := Parse(filepath.Base(path))
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.File = path
		}
		return nil, err
	}
	raw, err := readAll(path, o.maxBytes)
	if err != nil {
		return nil, err
	}
	src, err := Source(name.Kind(), path, raw, Object)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	return &File{Name: name, Path: path, Source: src, SHA256: hex.EncodeToString(sum[:])}, nil
}

// readAll reads a regular file of at most limit bytes. One that is written to
// meanwhile is read again, so that a half-saved source is rarely seen.
func readAll(path string, limit int64) ([]byte, error) {
	cannot := func(err error) error {
		return &Error{Rule: RuleRead, File: path, Msg: "the file cannot be read: " + reason(err), Hint: "make it a file this user can read, or remove it", Err: err}
	}
	for try := 1; ; try++ {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return nil, notRegular(path, info)
		}
		// Not blocking, in case a named pipe takes the file's place just now.
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, cannot(err)
		}
		raw, same, err := readOnce(f, path, limit)
		f.Close()
		if err != nil {
			var e *Error
			if errors.As(err, &e) {
				return nil, err
			}
			return nil, cannot(err)
		}
		if same || try == tries {
			return raw, nil
		}
	}
}

func readOnce(f *os.File, path string, limit int64) (raw []byte, same bool, err error) {
	before, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if !before.Mode().IsRegular() {
		return nil, false, notRegular(path, before)
	}
	raw, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, false, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if size := max(int64(len(raw)), after.Size()); int64(len(raw)) > limit {
		return nil, false, &Error{Rule: RuleSize, File: path, Msg: fmt.Sprintf("the file has %d bytes; a schema file may have %d", size, limit), Hint: "make it smaller"}
	}
	same = before.Size() == after.Size() && before.ModTime().Equal(after.ModTime()) && int64(len(raw)) == after.Size()
	return raw, same, nil
}

func notRegular(path string, info fs.FileInfo) error {
	what := "a device"
	switch m := info.Mode(); {
	case m.IsDir():
		what = "a folder"
	case m&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case m&fs.ModeSocket != 0:
		what = "a socket"
	}
	return &Error{Rule: RuleFile, File: path, Msg: "this is " + what + ", not a file", Hint: "put a regular file there, or remove it"}
}

// reason is the system's own words, without the path that Error has already.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
