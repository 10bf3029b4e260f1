package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/gofrs/flock"

	"agentgraph/internal/plainjson"
)

// Exchange is one question and its answer in a thread. What held the answer
// to a shape is no part of it: a schema is for one call.
type Exchange struct {
	Time   time.Time `json:"time"`
	TurnID string    `json:"turn_id"`
	User   string    `json:"user"`
	Answer string    `json:"answer"`
}

// Thread is a conversation that is kept: threads/<name>.jsonl, one exchange a
// line, oldest first.
type Thread struct {
	path string
	lock *flock.Flock
}

const threadExt = ".jsonl"

var threadName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)

// OpenThread names a thread in a folder; the first Append makes both.
func OpenThread(dir, name string) (*Thread, error) {
	if !threadName.MatchString(name) {
		return nil, fmt.Errorf("%q cannot name a thread; take letters, digits, '.', '_' and '-', at most 100", name)
	}
	return &Thread{
		path: filepath.Join(dir, name+threadExt),
		lock: flock.New(filepath.Join(dir, "."+name+".lock"), flock.SetPermissions(0o600)),
	}, nil
}

// Lock waits until nobody else uses the thread, so that an answer follows the
// exchanges it was given.
func (t *Thread) Lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return nil, err
	}
	if _, err := t.lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, fmt.Errorf("waiting for the thread %s: %w", t.path, err)
	}
	return func() { _ = t.lock.Unlock() }, nil
}

// Exchanges returns the last n exchanges, all of them when n is 0. A line that
// a crash cut off is left out.
func (t *Thread) Exchanges(n int) ([]Exchange, error) {
	b, err := readBounded(t.path, MaxRecordBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if end := bytes.LastIndexByte(b, '\n'); end < len(b)-1 {
		b = b[:end+1]
	}
	var all []Exchange
	for i, line := range bytes.Split(b, []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		var e Exchange
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s:%d: not an exchange: %w; remove the line", t.path, i+1, err)
		}
		all = append(all, e)
	}
	if n > 0 && len(all) > n {
		all = all[len(all)-n:]
	}
	return all, nil
}

// Append adds an exchange and returns when it is on disk.
func (t *Thread) Append(e Exchange) error {
	line, err := plainjson.Marshal(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(t.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	// After a line that a crash cut off, or at the end.
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end := info.Size()
	last := make([]byte, 1)
	for end > 0 {
		if _, err := f.ReadAt(last, end-1); err != nil {
			return err
		}
		if last[0] == '\n' {
			break
		}
		end--
	}
	if err := f.Truncate(end); err != nil {
		return err
	}
	if _, err := f.WriteAt(append([]byte(line), '\n'), end); err != nil {
		return err
	}
	return f.Sync()
}
