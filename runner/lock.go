package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"agentgraph/agents"
)

// ErrLocked is the error of New when another runner works the graph.
var ErrLocked = errors.New("another runner works this graph")

// holder is what the lock file says about who holds it.
type holder struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
}

// lockGraph takes the graph's lock. The lock goes with the process, so one
// that a dead process left is free.
func lockGraph(root string, now time.Time) (unlock func(), err error) {
	state := filepath.Join(root, agents.StateDir)
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("making %s: %w; let this user write to the graph", state, err)
	}
	path := filepath.Join(state, "lock")
	l := flock.New(path, flock.SetPermissions(0o600))
	got, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if !got {
		h, herr := readHolder(path)
		if herr != nil {
			return nil, fmt.Errorf("%w; stop it first", ErrLocked)
		}
		return nil, fmt.Errorf("%w: process %d, since %s; stop it first ('agentgraph stop')", ErrLocked, h.PID, h.Started.Format(time.DateTime))
	}
	data, _ := json.Marshal(holder{os.Getpid(), now})
	// In place: a new file would have a new lock.
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		_ = l.Unlock()
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return func() { _ = l.Unlock() }, nil
}

func readHolder(path string) (h holder, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return h, err
	}
	err = json.Unmarshal(data, &h)
	return h, err
}
