package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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

// ErrStateGone is the error of Run when the folder with the ledger and the
// lock was taken away: another runner could start beside this one.
var ErrStateGone = errors.New("the folder " + agents.StateDir + " was deleted or moved while the graph was worked")

// lockFile is the graph's lock.
func lockFile(root string) string { return filepath.Join(root, agents.StateDir, "lock") }

// lockGraph takes the graph's lock. The lock goes with the process, so one
// that a dead process left is free. held is the file that is locked.
func lockGraph(root string, now time.Time) (unlock func(), held fs.FileInfo, err error) {
	state := filepath.Join(root, agents.StateDir)
	if real, err := filepath.EvalSymlinks(root); err == nil && agents.LeadsOut(real, state) {
		return nil, nil, fmt.Errorf("%s is a link that leads out of the graph; make it a folder", state)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, nil, lockError("making", state, err)
	}
	path := lockFile(root)
	l := flock.New(path, flock.SetPermissions(0o600))
	got, err := l.TryLock()
	if err != nil {
		return nil, nil, lockError("locking", path, err)
	}
	if !got {
		h, herr := readHolder(path)
		if herr != nil {
			return nil, nil, fmt.Errorf("%w; stop it first", ErrLocked)
		}
		return nil, nil, fmt.Errorf("%w: process %d, since %s; stop it first ('agentgraph stop')", ErrLocked, h.PID, h.Started.Format(time.DateTime))
	}
	data, _ := json.Marshal(holder{os.Getpid(), now})
	// In place: a new file would have a new lock.
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		_ = l.Unlock()
		return nil, nil, lockError("writing", path, err)
	}
	if held, err = os.Stat(path); err != nil {
		_ = l.Unlock()
		return nil, nil, lockError("reading", path, err)
	}
	return func() { _ = l.Unlock() }, held, nil
}

// checkState ends the runner when the file that it has locked is not the
// graph's lock any more. Running turns are stopped: whoever has the new lock
// works their inputs. Called with mu held.
func (r *Runner) checkState() {
	if r.stateGone || r.stopping {
		return
	}
	info, err := os.Stat(lockFile(r.root))
	if err == nil && os.SameFile(info, r.held) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	r.stateGone = true
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		r.stop(true)
		r.Finish()
	}()
}

// lockError says what to do about a graph that cannot be written to: nothing
// can be answered there.
func lockError(doing, path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err // its path is path
	}
	hint := "see that it is a folder of a graph, on a disk that can be written"
	switch {
	case errors.Is(err, syscall.EROFS):
		hint = "answers are written into the graph: mount the file system for writing, or run a copy of the graph elsewhere"
	case errors.Is(err, syscall.EPERM):
		hint = "take the immutable flag off (lsattr -d shows it, chattr -i removes it)"
	case errors.Is(err, fs.ErrPermission):
		hint = "answers are written into the graph: let this user write to it"
	case errors.Is(err, syscall.ENOSPC):
		hint = "free disk space"
	}
	return fmt.Errorf("%s %s: %w; %s", doing, path, err, hint)
}

func readHolder(path string) (h holder, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return h, err
	}
	err = json.Unmarshal(data, &h)
	return h, err
}
