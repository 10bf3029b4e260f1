// Package store keeps turn records in a folder and appends to the audit log.
//
// # Layout
//
// A record is turns/<turn id>.json. Long texts that many records share (a
// system message, a schema, an earlier exchange) are stored once, as
// turns/sources/<sha256>, and a record refers to them; Read puts them back.
// See Pieces for the form of a reference.
//
// # Durability
//
// A record replaces an earlier one of the same turn whole or not at all: it is
// written beside it, synced and renamed, and the folder is synced.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"agentgraph/record"
)

// Bounds of what is read.
const (
	MaxRecordBytes = 64 << 20
	MaxSourceBytes = 16 << 20
)

const (
	sourcesDir = "sources"
	suffix     = ".json"
	tempPrefix = ".agentgraph-"
	tempSuffix = ".tmp"
)

// Sentinels; every error of this package is an *Error that wraps one of them
// or an error of the file system.
var (
	ErrMissingSource = errors.New("a text the record refers to is missing")
	ErrCorruptSource = errors.New("a text the record refers to is not the one it was")
	ErrMalformed     = errors.New("not a turn record")
	ErrTooLarge      = errors.New("larger than is read")
	ErrBadID         = errors.New("not usable as a turn id")
)

// Error says what is wrong with which file.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return e.Path + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Store is one turns/ folder. It is safe for use by many goroutines.
type Store struct {
	dir string

	mu    sync.Mutex
	known map[string]int64 // sources seen to be whole: hash → size
}

// Open names a turns/ folder; it is made by the first Write.
func Open(turnsDir string) *Store {
	return &Store{dir: turnsDir, known: map[string]int64{}}
}

// Path is where the record of a turn is or would be.
func (s *Store) Path(id string) string { return filepath.Join(s.dir, id+suffix) }

// Write stores a record and returns its path. A record of the same turn is
// replaced.
func (s *Store) Write(id string, r *record.Record) (string, error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	stored, sources := split(record.Normal(r))
	b, err := encode(stored)
	if err != nil {
		return "", &Error{s.Path(id), err}
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return "", err
	}
	for sum, text := range sources {
		if err := s.writeSource(sum, text); err != nil {
			return "", err
		}
	}
	path := s.Path(id)
	if err := writeFile(path, b, 0o644); err != nil {
		return "", err
	}
	return path, nil
}

// Read returns a whole record.
func (s *Store) Read(id string) (*record.Record, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	return s.ReadFile(s.Path(id))
}

// ReadFile is Read by path; the sources are those of this store.
func (s *Store) ReadFile(path string) (*record.Record, error) {
	b, err := readBounded(path, MaxRecordBytes)
	if err != nil {
		return nil, err
	}
	r, err := join(b, s.readSource)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			err = &Error{path, err}
		}
		return nil, err
	}
	return r, nil
}

// Each calls f for every record, in the order of their ids. A file that is no
// record does not stop it; all of these are in the returned error, each an
// *Error. An error of f ends it.
func (s *Store) Each(f func(id string, r *record.Record) error) error {
	ids, err := s.IDs()
	if err != nil {
		return err
	}
	var bad []error
	for _, id := range ids {
		r, err := s.Read(id)
		if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrMissingSource) {
			continue // removed in the meantime
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if err := f(id, r); err != nil {
			return err
		}
	}
	return errors.Join(bad...)
}

// IDs lists the turns that have a record, sorted. A missing folder has none.
func (s *Store) IDs() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), suffix)
		if ok && e.Type().IsRegular() && checkID(id) == nil {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	return ids, nil
}

// Sweep removes what a writer that died left behind. Nobody else may be
// writing to the folder.
func (s *Store) Sweep() (removed []string, err error) {
	for _, dir := range []string{s.dir, filepath.Join(s.dir, sourcesDir)} {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return removed, err
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), tempPrefix) || !strings.HasSuffix(e.Name(), tempSuffix) {
				continue
			}
			path := filepath.Join(dir, e.Name())
			if err := os.Remove(path); err != nil {
				return removed, err
			}
			removed = append(removed, path)
		}
	}
	return removed, nil
}

// checkID keeps an id inside the folder and out of the way of other files.
func checkID(id string) error {
	bad := id == "" || len(id) > 200 || id[0] == '.' || strings.ContainsFunc(id, func(r rune) bool {
		return r < 0x20 || r == 0x7f || strings.ContainsRune(`/\:`, r)
	})
	if bad {
		return &Error{fmt.Sprintf("turn %q", id), ErrBadID}
	}
	return nil
}

// readBounded reads a regular file of at most max bytes.
func readBounded(path string, max int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{path, fmt.Errorf("%w: not a regular file", ErrMalformed)}
	}
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > max {
		return nil, &Error{path, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, max)}
	}
	return b, nil
}

// writeFile puts data at path, replacing what is there, or changes nothing.
func writeFile(path string, data []byte, mode os.FileMode) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, tempPrefix+"*"+tempSuffix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Chmod(mode); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func encode(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return []byte(b.String()), err
}
