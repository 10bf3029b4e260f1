package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ThreadInfo is a thread in a list.
type ThreadInfo struct {
	Name    string
	Changed time.Time
}

// maxThreads bounds the files that are looked at for one list.
const maxThreads = 100_000

// ListThreads lists the threads of a folder, those that changed last first. A
// folder that is not there has none.
func ListThreads(dir string) ([]ThreadInfo, error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxThreads)
	if err != nil && err != io.EOF {
		return nil, err
	}
	var list []ThreadInfo
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), threadExt)
		if !ok || !threadName.MatchString(name) {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			continue // it went away, or is no thread
		}
		list = append(list, ThreadInfo{name, info.ModTime()})
	}
	slices.SortFunc(list, func(a, b ThreadInfo) int {
		if c := b.Changed.Compare(a.Changed); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list, nil
}

// maxFirst bounds the line that First reads.
const maxFirst = 64 << 10

// First is the first question of the thread; empty where its line is longer
// than 64 KiB or not there.
func (t *Thread) First() string {
	f, err := os.Open(t.path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(f, maxFirst).ReadSlice('\n')
	if err != nil {
		return ""
	}
	var e Exchange
	_ = json.Unmarshal(line, &e) // whoever reads the thread is told
	return e.User
}

// Session is what a protocol keeps of the session that a thread is.
type Session struct {
	Cwd  string `json:"cwd"`
	Mode string `json:"mode,omitempty"`
}

func (t *Thread) sessionPath() string {
	dir, file := filepath.Split(t.path)
	return filepath.Join(dir, "."+strings.TrimSuffix(file, threadExt)+".session.json")
}

// Session is what was kept last; the zero value where that is nothing.
func (t *Thread) Session() Session {
	var s Session
	if b, err := readBounded(t.sessionPath(), maxFirst); err == nil {
		_ = json.Unmarshal(b, &s) // a file that is torn keeps nothing
	}
	return s
}

// KeepSession keeps it.
func (t *Thread) KeepSession(s Session) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return writeFile(t.sessionPath(), append(b, '\n'), 0o600)
}
