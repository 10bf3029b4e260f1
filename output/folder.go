package output

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Folder is one output folder. It remembers the highest number of a turn, so
// that one more answer among many old ones needs no listing; the memory is
// trusted only while the folder looks as it did after our own last change.
// A Folder is safe for use by many goroutines and holds nothing open.
type Folder struct {
	path   string
	naming sync.Mutex // one publish after the other chooses and takes a name

	mu      sync.Mutex
	seen    fs.FileInfo        // the folder after our last change; nil means doubt
	highest map[string]highest // by Pattern.key; right while seen is
	scans   int                // listings so far, for tests
}

type highest struct {
	pattern Pattern
	turn    uint64
	name    string // of the answer with that number; "" when there is none
}

// A folder is asked for one pattern, and for another after its schema file
// was renamed. More are forgotten.
const maxPatterns = 8

// Open returns the folder at dir. Nothing is read yet; a folder that does not
// exist is made by the first publish, unless its parent does not exist either.
func Open(dir string) *Folder {
	return &Folder{path: dir, highest: map[string]highest{}}
}

// Path of the folder.
func (f *Folder) Path() string { return f.path }

// openFolder is the folder held open for one publish: everything happens
// relative to it, wherever its path leads by then.
type openFolder struct {
	root *os.Root
	self *os.File
}

func openDir(path string) (*openFolder, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		if info, serr := os.Stat(path); serr == nil && !info.IsDir() {
			err = syscall.ENOTDIR // OpenRoot has words of its own for it
		}
		return nil, err
	}
	self, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	return &openFolder{root: root, self: self}, nil
}

// makeDir makes the folder, not its parents: a deleted agent does not return.
func makeDir(path string) error {
	if err := os.Mkdir(path, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if parent, err := os.Open(filepath.Dir(path)); err == nil {
		_ = syncDir(parent) // the folder may be lost in a power cut; the answer's own sync decides
		parent.Close()
	}
	return nil
}

func (d *openFolder) close() {
	d.self.Close()
	d.root.Close()
}

// exists reports whether anything has this name, a dangling link included.
func (d *openFolder) exists(name string) (bool, error) {
	_, err := d.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// each calls do for every name. Types would cost a call of the system each.
func (d *openFolder) each(do func(name string)) error {
	list, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer list.Close()
	for {
		names, err := list.Readdirnames(4096)
		for _, name := range names {
			do(name)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// isDir reports whether name is a folder.
func (d *openFolder) isDir(name string) bool {
	info, err := d.root.Lstat(name)
	return err == nil && info.IsDir()
}

// known reports whether the folder looks as it did after our last change.
// Where the clock of the file system is coarse, a file that somebody else
// makes within the same tick goes unseen; at the latest the exclusive rename
// finds it. Called with mu held.
func (f *Folder) known(d *openFolder) bool {
	if f.seen == nil {
		return false
	}
	now, err := d.self.Stat()
	return err == nil && sameState(f.seen, now)
}

func sameState(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && changeTime(a) == changeTime(b)
}

// change makes a change of our own to the folder and keeps what is known of
// it, if anything was. published is the new answer's name, if there is one.
func (f *Folder) change(d *openFolder, published string, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, seen := f.known(d), f.seen
	f.seen = nil
	if err := do(); err != nil {
		if errors.Is(err, fs.ErrExist) {
			f.seen = seen // nothing was changed
			f.collide(published)
		}
		return err
	}
	if !known {
		return nil
	}
	if published != "" {
		f.count(published)
	}
	if now, err := d.self.Stat(); err == nil {
		f.seen = now
	}
	return nil
}

// count takes a name into account. Called with mu held.
func (f *Folder) count(name string) {
	for key, h := range f.highest {
		if n, ok := h.pattern.Turn(name); ok && (h.name == "" || n > h.turn) {
			h.turn, h.name = n, name
			f.highest[key] = h
		}
	}
}

// highestTurn returns the highest number of a turn in the folder; any is
// false when there is none.
func (f *Folder) highestTurn(d *openFolder, p Pattern) (turn uint64, any bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.highest[p.key]; !ok || !f.known(d) {
		if err := f.scan(d, p); err != nil {
			return 0, false, err
		}
	}
	h := f.highest[p.key]
	return h.turn, h.name != "", nil
}

// scan lists the folder. Called with mu held.
func (f *Folder) scan(d *openFolder, p Pattern) error {
	f.scans++
	f.seen = nil
	if len(f.highest) >= maxPatterns {
		clear(f.highest)
	}
	f.highest[p.key] = highest{pattern: p}
	before, err := d.self.Stat()
	if err != nil {
		return err
	}
	f.forget()
	if err := d.each(f.count); err != nil {
		return err
	}
	for _, h := range f.highest {
		if h.name == "" || !d.isDir(h.name) {
			continue
		}
		// A folder is no answer; look at the type of every name, once.
		f.forget()
		err := d.each(func(name string) {
			if f.counts(name) && !d.isDir(name) {
				f.count(name)
			}
		})
		if err != nil {
			return err
		}
		break
	}
	after, err := d.self.Stat()
	if err != nil {
		return err
	}
	if sameState(before, after) {
		f.seen = after
	}
	return nil
}

// forget drops what is known of the numbers, not of the patterns.
func (f *Folder) forget() {
	for key, h := range f.highest {
		f.highest[key] = highest{pattern: h.pattern}
	}
}

// counts reports whether a name has a number in any pattern.
func (f *Folder) counts(name string) bool {
	for _, h := range f.highest {
		if _, ok := h.pattern.Turn(name); ok {
			return true
		}
	}
	return false
}

// nextName returns the first name that is free now.
func (f *Folder) nextName(d *openFolder, p Pattern, started time.Time) (string, error) {
	ms := milliseconds(started)
	var turn uint64
	if p.turns > 0 {
		n, any, err := f.highestTurn(d, p)
		if err != nil {
			return "", err
		}
		if any {
			if turn = n + 1; turn == 0 {
				return "", errNoNumber
			}
		}
	}
	for {
		name := p.name(turn, ms)
		if len(name) > maxName {
			return "", errTooLong
		}
		taken, err := d.exists(name)
		if err != nil || !taken {
			return name, err
		}
		if p.turns == 0 {
			ms++
		} else if turn++; turn == 0 {
			return "", errNoNumber
		}
	}
}

// collide makes the next name wait for a listing when a name is taken that we
// did not know of. Called with mu held.
func (f *Folder) collide(name string) {
	for _, h := range f.highest {
		if n, ok := h.pattern.Turn(name); ok && (h.name == "" || n > h.turn) {
			f.seen = nil
		}
	}
}
