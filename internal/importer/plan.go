package importer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentgraph/internal/newfile"
)

// Kind says what became of a key.
type Kind string

// A Lost key has no counterpart here. A Changed one is carried, but does not
// mean quite the same, or wants something done.
const (
	Lost    Kind = "not_carried"
	Changed Kind = "changed"
)

// Note says what became of one key.
type Note struct {
	Kind    Kind   `json:"kind"`
	Key     string `json:"key"` // dotted: agents.coder.compression
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// File is one file to write. Path is relative to the graph, with forward
// slashes.
type File struct {
	Path string `json:"path"`
	// From is the file it is copied from; empty for one that is written.
	From string `json:"from,omitempty"`
	Data []byte `json:"-"`
	Text string `json:"text,omitempty"` // of one that is written
}

// Plan is what an import would do.
type Plan struct {
	Source  string   `json:"source"`
	Dir     string   `json:"dir"`
	Files   []File   `json:"files"`
	Folders []string `json:"folders"`
	Notes   []Note   `json:"notes"`
}

// ExistError names the files that are there already.
type ExistError struct{ Files []string }

func (e *ExistError) Error() string {
	names := e.Files
	more := ""
	if len(names) > 5 {
		names, more = names[:5], fmt.Sprintf(" and %d more", len(e.Files)-5)
	}
	return fmt.Sprintf("nothing was written: %s%s would be replaced; import into another folder", strings.Join(names, ", "), more)
}

// Check reports an *ExistError when a file of the plan is there already.
func (p *Plan) Check() error {
	var there []string
	for _, f := range p.Files {
		if _, err := os.Lstat(p.path(f.Path)); err == nil {
			there = append(there, p.path(f.Path))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("nothing was written: %w", err)
		}
	}
	if len(there) > 0 {
		slices.Sort(there)
		return &ExistError{there}
	}
	return nil
}

func (p *Plan) path(rel string) string { return filepath.Join(p.Dir, filepath.FromSlash(rel)) }

// Write does what is planned, or nothing when a file is in the way or one
// cannot be written.
func (p *Plan) Write() error {
	if err := p.Check(); err != nil {
		return err
	}
	var set newfile.Set
	if err := p.write(&set); err != nil {
		return fmt.Errorf("nothing was imported: %w; nothing is left of it", errors.Join(err, set.Undo()))
	}
	return nil
}

func (p *Plan) write(set *newfile.Set) error {
	for _, dir := range p.Folders {
		if err := set.Dir(p.path(dir)); err != nil {
			return err
		}
	}
	for _, f := range p.Files {
		if err := set.Write(p.path(f.Path), f.Data); err != nil {
			return err
		}
	}
	return nil
}
