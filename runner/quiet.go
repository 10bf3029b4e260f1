package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentgraph/agents"
	"agentgraph/turn"
)

// A schema file is often exchanged in two steps: the old one goes, the new one
// comes. Between them a folder looks like one that promises nothing, so turns
// take what system/ says only when it has been quiet.

// systemLook is how a system folder looks: it changes when a file comes, goes
// or is written to. newest is the time of the last change that shows.
func systemLook(dir string) (look string, newest time.Time) {
	var b strings.Builder
	add := func(path string) {
		info, err := os.Lstat(path)
		if err != nil {
			return
		}
		fmt.Fprintf(&b, "%q %d %d %d;", path, info.ModTime().UnixNano(), info.Size(), inodeNumber(info))
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	add(dir)
	if b.Len() == 0 {
		add(filepath.Dir(dir)) // it shows that the folder went just now
	}
	entries, _ := os.ReadDir(dir) // what cannot be read refuses the turn
	for _, e := range entries {
		add(filepath.Join(dir, e.Name()))
	}
	return b.String(), newest
}

// waitQuiet waits until the agent's system folder has not changed for its
// settle, max_settle at the longest. It reports how the folder looked then,
// and false when the runner or the agent was stopped meanwhile.
func (r *Runner) waitQuiet(st *agentState) (look string, ok bool) {
	stopped := st.context().Done()
	var last string
	var deadline time.Time
	for {
		a := st.current()
		look, newest := systemLook(a.SystemDir)
		quiet, age := a.Settings.Settle, time.Since(newest)
		if age >= quiet || look == last {
			return look, true
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(max(a.Settings.MaxSettle, quiet))
		} else if time.Now().After(deadline) {
			return look, true
		}
		last = ""
		if age < 0 {
			// Stamped by another clock: what counts is that it stays as it is.
			last, age = look, 0
		}
		t := time.NewTimer(quiet - age)
		select {
		case <-t.C:
		case <-stopped:
			t.Stop()
			return look, false
		case <-r.finish:
			t.Stop()
			return look, false
		}
	}
}

// prepare makes the request of a turn from the agent's folder at a quiet
// moment, with the fingerprint of what it was made from. ok is false when the
// runner or the agent was stopped before.
func (r *Runner) prepare(st *agentState, inputs []agents.Input) (a *agents.Agent, req *turn.Request, err error, fingerprint string, ok bool) {
	for try := 1; ; try++ {
		look, ok := r.waitQuiet(st)
		if !ok {
			return nil, nil, nil, "", false
		}
		a = st.current()
		fingerprint = a.Fingerprint()
		req, err = a.Turn(inputs)
		if now, _ := systemLook(a.SystemDir); now == look || try == maxPrepare {
			return a, req, err, fingerprint, true
		}
	}
}

// maxPrepare bounds how often a request is made anew because the folder
// changed meanwhile.
const maxPrepare = 10
