package output

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// Names of temporary files: dotfiles, so that nobody takes one for an answer.
const (
	tempPrefix = ".agentgraph-"
	tempSuffix = ".tmp"
)

// TempName is the name of the temporary file of the publish with this id.
func TempName(id string) string { return tempPrefix + id + tempSuffix }

// IsTemp reports whether name is that of a temporary file of a publish.
func IsTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix) && len(name) > len(tempPrefix)+len(tempSuffix)
}

// Pending is an answer whose bytes are on disk and which has no name yet. It
// must be ended with a Commit that succeeds or with Discard. One goroutine
// uses it at a time.
type Pending struct {
	folder *Folder
	dir    *openFolder
	file   *os.File // holds the lock that tells Sweep we are alive
	info   fs.FileInfo
	temp   string
	done   bool
}

// Prepare writes data to a temporary file in the folder and syncs it. The id
// names that file; it is the turn's id, or empty for a random one. A file left
// by a dead process under the same id is replaced. The error is an *Error, or
// ctx's; nothing is left behind then.
func (f *Folder) Prepare(ctx context.Context, id string, data []byte) (*Pending, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if id == "" {
		var b [12]byte
		_, _ = rand.Read(b[:]) // never fails
		id = hex.EncodeToString(b[:])
	}
	temp := TempName(id)
	if len(temp) > maxName || strings.ContainsAny(id, `/\`) || strings.ContainsFunc(id, unicode.IsControl) {
		return nil, &Error{Path: f.path, Doing: "naming the temporary file", Err: errBadID, Hint: "use a short id without path separators"}
	}
	dir, err := openDir(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeDir(f.path); err == nil {
			dir, err = openDir(f.path)
		}
	}
	if err != nil {
		return nil, failure(f.path, "opening the output folder", err)
	}
	p := &Pending{folder: f, dir: dir, temp: temp}
	if err := p.create(); err != nil {
		dir.close()
		return nil, failure(f.path, "making a temporary file", err)
	}
	if err := p.write(ctx, data); err != nil {
		_ = p.Discard() // the first error is the one to report
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, failure(f.path, "writing the answer", err)
	}
	return p, nil
}

// create makes the temporary file and locks it.
func (p *Pending) create() error {
	for range 20 {
		err := p.folder.change(p.dir, "", func() (err error) {
			p.file, err = p.dir.root.OpenFile(p.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
			return err
		})
		if errors.Is(err, fs.ErrExist) {
			stale, err := p.dir.removeStale(p.temp)
			if err != nil {
				return err
			}
			if !stale {
				time.Sleep(time.Millisecond) // a Sweep holds it for a moment, a publish for longer
			}
			continue
		}
		if err != nil {
			return err
		}
		// A Sweep may have taken the new file for a stale one before the lock.
		locked, err := tryLock(p.file)
		if err != nil {
			return errors.Join(err, p.Discard())
		}
		here, err := p.dir.root.Lstat(p.temp)
		if p.info, _ = p.file.Stat(); locked && err == nil && p.info != nil && os.SameFile(p.info, here) {
			return nil
		}
		p.file.Close()
	}
	return errInUse
}

func (p *Pending) write(ctx context.Context, data []byte) error {
	if _, err := p.file.Write(data); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.file.Sync()
}

// Temp is the path of the temporary file.
func (p *Pending) Temp() string { return filepath.Join(p.folder.path, p.temp) }

// NextName returns the name to try next: the first that is free now, for an
// answer whose generation began at started. It changes nothing on disk and
// reserves nothing. The error is an *Error.
func (p *Pending) NextName(pattern Pattern, started time.Time) (string, error) {
	if p.done {
		return "", errDone
	}
	name, err := p.folder.nextName(p.dir, pattern, started)
	if err != nil {
		return "", failure(p.folder.path, "choosing a name", err)
	}
	return name, nil
}

// Commit gives the answer its name and syncs the folder. The error is an
// *Error. When errors.Is(err, fs.ErrExist), somebody else has the name:
// nothing was changed, ask NextName again. A path that comes with an error is
// an answer that stands there but may not survive a power cut.
func (p *Pending) Commit(name string) (path string, err error) {
	path, err = p.rename(name)
	if err != nil {
		return "", err
	}
	return path, p.sync(path)
}

// rename is the part of Commit that decides who has the name.
func (p *Pending) rename(name string) (path string, err error) {
	switch {
	case p.done:
		return "", errDone
	case name == "" || name[0] == '.' || strings.ContainsAny(name, `/\`):
		return "", &Error{Path: p.folder.path, Doing: "publishing", Err: errBadName, Hint: "use a name from NextName"}
	}
	path = filepath.Join(p.folder.path, name)
	if err := p.folderIsThere(); err != nil {
		return "", failure(p.folder.path, "publishing", err)
	}
	if !renamesOpenFiles {
		p.file.Close()
	}
	err = p.folder.change(p.dir, name, func() error { return p.dir.rename(p.temp, name, p.info) })
	if errors.Is(err, fs.ErrExist) {
		return "", &Error{Path: path, Doing: "publishing", Err: err, Hint: "take the next name"}
	}
	if err != nil {
		return "", failure(path, "publishing", err)
	}
	return path, nil
}

func (p *Pending) sync(path string) error {
	err := syncDir(p.dir.self)
	p.end()
	if err != nil {
		return failure(path, "syncing the folder", err)
	}
	return nil
}

// folderIsThere refuses to publish into a folder that was moved away.
func (p *Pending) folderIsThere() error {
	there, err := os.Stat(p.folder.path)
	if err != nil {
		return err
	}
	ours, err := p.dir.self.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(there, ours) {
		return ErrMoved
	}
	return nil
}

// Discard removes the temporary file. After a Commit that succeeded it does
// nothing.
func (p *Pending) Discard() error {
	if p.done {
		return nil
	}
	if !renamesOpenFiles {
		p.file.Close()
	}
	err := p.folder.change(p.dir, "", func() error { return p.dir.root.Remove(p.temp) })
	p.end()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failure(p.Temp(), "removing the temporary file", err)
	}
	return nil
}

func (p *Pending) end() {
	p.done = true
	p.file.Close()
	p.dir.close()
}

// linkNew gives temp a second name, unless that is taken, and removes the
// first: for systems that cannot rename without replacing.
func (d *openFolder) linkNew(temp, name string, info fs.FileInfo) error {
	if err := d.root.Link(temp, name); err != nil {
		// A network file system may repeat a request that had succeeded.
		if got, lerr := d.root.Lstat(name); !errors.Is(err, fs.ErrExist) || lerr != nil || !os.SameFile(got, info) {
			return err
		}
	}
	_ = d.root.Remove(temp) // the answer is published; Sweep takes the rest
	return nil
}
