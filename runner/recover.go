package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentgraph/agents"
	"agentgraph/output"
	"agentgraph/record"
	"agentgraph/runner/internal/ledger"
)

// recoverAgent brings back the turns of an agent that were under way when the
// last runner ended, in the order of their claims, and removes what it left.
// Called with mu held.
func (r *Runner) recoverAgent(st *agentState) error {
	turns, err := r.ledger.OpenOf(st.name)
	if err != nil {
		return err
	}
	a := st.current()
	for _, t := range turns {
		if r.openKeys[t.Key] {
			continue
		}
		j := &job{stage: stageRun, turn: t}
		if t.State == ledger.Publishing {
			if err := r.recoverPublish(st, j); err != nil {
				return fmt.Errorf("turn %s: %w", t.ID, err)
			}
		}
		r.openKeys[t.Key] = true
		for _, in := range t.Inputs {
			if in.Bytes > inlineSnapshot {
				r.snapshots[in.SHA256]++
				j.files = append(j.files, in.SHA256)
			}
		}
		if t.State == ledger.Waiting {
			r.later(st, j, max(t.NextAt.Sub(r.now()), 0))
			continue
		}
		j.place = st.order.take()
		st.ready = append(st.ready, j)
	}
	if _, err := output.Sweep(a.OutputDir); err != nil {
		r.problem(st.name, err.Error(), "")
	}
	if _, err := st.store.Sweep(); err != nil {
		r.problem(st.name, err.Error(), "")
	}
	r.sweepStreams(a)
	r.activate(st)
	return nil
}

// recoverPublish finds out whether an answer was published.
func (r *Runner) recoverPublish(st *agentState, j *job) error {
	in, ok, err := r.ledger.Intent(j.turn.ID)
	if err != nil {
		return err
	}
	var rec record.Record
	if !ok || json.Unmarshal(in.Record, &rec) != nil || rec.Outcome == nil || rec.Outcome.Output == nil {
		return nil // nothing was published without an intent; the turn is redone
	}
	j.rec, j.format, j.ext = &rec, in.Format, in.Ext
	j.turn.Attempts = max(rec.Attempt-1, 0)
	j.stage = stagePublish
	if in.Inode == withdrawn {
		return nil
	}
	dir := st.current().OutputDir
	temp := filepath.Join(dir, output.TempName(j.turn.ID))
	if info, err := os.Lstat(temp); err == nil {
		if name := findAnswer(dir, in.Inode, "", nil); name != "" && fileIdentity(info) == in.Inode {
			// Linked under its name, not yet unlinked under the other.
			j.published(dir, name)
			return nil
		}
		// Not renamed. The sweep may take the file, so the intent goes first.
		in.Inode = withdrawn
		return r.ledger.Intend(j.turn.ID, j.turn.Attempts, in).Wait(r.ctx)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	pattern := output.Default
	if j.ext != "" {
		if p, err := output.NewPattern(j.format, j.ext); err == nil {
			pattern = p
		}
	}
	sha := hashOf(published(&rec))
	if name := findAnswer(dir, in.Inode, sha, func(name string) bool {
		_, taken, err := r.ledger.ByOutput(r.rel(filepath.Join(dir, name)))
		return pattern.Match(name) && err == nil && !taken
	}); name != "" {
		j.published(dir, name)
		return nil
	}
	if in.Boot != "" && in.Boot == r.boot {
		// The rename happened, and somebody has taken the answer away since.
		j.stage = stageRecord
		r.problem(st.name, "the answer of turn "+j.turn.ID+" was published and is gone from "+r.rel(dir), "its text is in the turn's record")
	}
	return nil
}

func (j *job) published(dir, name string) {
	j.output = filepath.Join(dir, name)
	j.stage = stageRecord
}

// findAnswer returns the name of the file with this inode, or else of a file
// with this hash that may be it.
func findAnswer(dir, inode, sha string, may func(name string) bool) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && inode != "" && fileIdentity(info) == inode {
			if sha == "" {
				return e.Name()
			}
			if data, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil && hashOf(data) == sha {
				return e.Name()
			}
		}
	}
	if sha == "" {
		return ""
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !may(e.Name()) {
			continue
		}
		if data, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil && hashOf(data) == sha {
			return e.Name()
		}
	}
	return ""
}

// sweepSnapshots removes snapshot files that no open turn needs.
func (r *Runner) sweepSnapshots() {
	dir := filepath.Join(r.root, agents.StateDir, "snapshots")
	names, err := readNames(dir)
	if err != nil {
		return
	}
	open, err := r.ledger.Open()
	if err != nil {
		return
	}
	needed := map[string]bool{}
	for _, t := range open {
		for _, in := range t.Inputs {
			needed[in.SHA256] = true
		}
	}
	for _, n := range names {
		if !needed[n] {
			_ = os.Remove(filepath.Join(dir, n))
		}
	}
}
