package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/runner"
)

// The folders and the runner are asked every pollEvery while somebody waits,
// and less often the longer it takes. A folder that did not change is not read,
// unless it changed so lately that its time may hide another change.
const (
	pollEvery = 100 * time.Millisecond
	pollMost  = time.Second
	grain     = 2 * time.Second
)

// Wait waits until the input's turn has ended and returns its record: an
// answer, a failure or a refusal; where an input gets several answers, that of
// one of them. It ends early with ctx, and when nothing can come any more.
func (s *Service) Wait(ctx context.Context, sent *Sent, progress func(runner.TurnStatus)) (*record.Record, error) {
	turns := store.Open(sent.turns)
	seen := map[string]bool{}
	var c *runner.Client
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	began := time.Now()
	var looked time.Time // what the folder's time was
	older := false       // earlier turns were looked at
	for {
		now := modTime(sent.turns)
		if !now.Equal(looked) || time.Since(now) < grain {
			if rec, err := findTurn(turns, sent, seen); rec != nil || err != nil {
				return rec, err
			}
			looked = now
		}
		var err error
		if c == nil {
			if c, err = s.running(ctx); err != nil {
				return nil, err
			}
		}
		if status, err := c.Status(); err != nil {
			c.Close()
			c = nil // it ended; another one may take over
		} else if err := s.look(status, sent, progress); err != nil {
			return nil, err
		} else if !older && time.Since(began) > grain && idle(status, sent.Agent) {
			older = true
			if err := hadItsTurn(turns, sent); err != nil {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(pollEvery+time.Since(began)/20, pollMost)):
		}
	}
}

// look reports progress, and what keeps the input from ever having a turn.
func (s *Service) look(status runner.Status, sent *Sent, progress func(runner.TurnStatus)) error {
	for _, ag := range status.Agents {
		if ag.Name != sent.Agent {
			continue
		}
		switch ag.State {
		case "paused":
			return fmt.Errorf("the agent %s is paused; 'agentgraph resume %s' lets it go on, and its answers stand in answers then", ag.Name, ag.Name)
		case "stopped":
			return fmt.Errorf("the agent %s is stopped: %s", ag.Name, ag.Error)
		}
		for _, t := range ag.Running {
			if progress != nil && slices.Contains(t.Inputs, sent.Input.Path) {
				progress(t)
			}
		}
		for _, set := range ag.Incomplete {
			if inSet(set, sent.Input.Path) {
				return fmt.Errorf("the agent %s waits for the other inputs of its set: %s", ag.Name, set)
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(s.cfg.Graph, filepath.FromSlash(sent.Input.Path))); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s was removed before it had its turn", sent.Input.Path)
	}
	return nil
}

// inSet reports that an incomplete set, as the runner words it, is about the
// input at path and not about one whose name is like it.
func inSet(set, path string) bool {
	rest := ", " + set
	return strings.Contains(rest, ", "+path+", ") || strings.Contains(rest, ", "+path+": ")
}

// idle reports that the agent has nothing to do.
func idle(status runner.Status, agent string) bool {
	return slices.ContainsFunc(status.Agents, func(a runner.AgentStatus) bool {
		return a.Name == agent && a.Pending+a.Settling+len(a.Running)+a.Retrying+a.Held == 0
	})
}

// hadItsTurn is an error when an input of this name and content had its turn
// before: it was removed and dropped again, and gets no other one.
func hadItsTurn(turns *store.Store, sent *Sent) error {
	ids, err := turns.IDs()
	if err != nil {
		return err
	}
	for i := len(ids) - 1; i >= 0 && i >= len(ids)-maxRecords; i-- {
		rec, err := turns.Read(ids[i])
		if err == nil && sent.made(rec) {
			return fmt.Errorf("%s had its turn before, with the same content: %s; take another name, or 'agentgraph retry --force %s'", sent.Input.Path, ids[i], ids[i])
		}
	}
	return nil
}

// made reports that the record is of a turn about this input.
func (s *Sent) made(rec *record.Record) bool {
	return slices.ContainsFunc(rec.Inputs, func(f record.FileRef) bool { return f.Path == s.Input.Path && f.SHA256 == s.Input.SHA256 })
}

// findTurn looks for the record of the input's turn among those that are
// younger than the input.
func findTurn(turns *store.Store, sent *Sent, seen map[string]bool) (*record.Record, error) {
	ids, err := turns.IDs()
	if err != nil {
		return nil, err
	}
	for i := len(ids) - 1; i >= 0 && ids[i] > sent.since; i-- {
		id := ids[i]
		if seen[id] {
			continue
		}
		rec, err := turns.Read(id)
		if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrMissingSource) {
			continue
		}
		seen[id] = true
		if err != nil {
			continue // another turn's, or the next look finds it whole
		}
		if sent.made(rec) {
			return rec, nil
		}
	}
	return nil, nil
}
