package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentgraph/record"
	"agentgraph/runner/internal/ledger"
)

// RetryOptions say which turns to do again.
type RetryOptions struct {
	// Target is a turn's id or an agent's name; empty with All.
	Target string `json:"target,omitempty"`
	All    bool   `json:"all,omitempty"`
	// Force also repeats completed turns, each as a new turn with an answer of
	// its own. Without it, failed and refused turns are done again under their
	// own name.
	Force bool `json:"force,omitempty"`
}

// RetryResult is what came of it.
type RetryResult struct {
	// Turns that are pending now, by id.
	Turns []string `json:"turns"`
	// Skipped turns and why: their input is gone or has changed.
	Skipped map[string]string `json:"skipped,omitempty"`
}

// Retry makes turns of this runner pending again.
func (r *Runner) Retry(o RetryOptions) (RetryResult, error) {
	if err := r.ledger.Flush(r.ctx); err != nil {
		return RetryResult{}, err
	}
	turns, err := pickRetry(r.ledger, o)
	if err != nil {
		return RetryResult{}, err
	}
	res := RetryResult{Turns: []string{}, Skipped: map[string]string{}}
	r.mu.Lock()
	held := 0
	for _, st := range r.agents {
		if !o.All && o.Target != st.name {
			continue
		}
		for _, j := range st.stuck {
			st.ready = append(st.ready, j)
			res.Turns = append(res.Turns, j.turn.ID)
			held++
		}
		st.stuck = nil
		r.activate(st)
	}
	r.mu.Unlock()
	for _, t := range turns {
		r.mu.Lock()
		st := r.agents[t.Agent]
		r.mu.Unlock()
		if st == nil {
			res.Skipped[t.ID] = "its agent is gone"
			continue
		}
		if why := inputsChanged(r.root, t); why != "" {
			res.Skipped[t.ID] = why
			continue
		}
		r.mu.Lock()
		ok := false
		if t.State == ledger.Done {
			t, ok = r.repeat(st, t)
		} else {
			ok = r.reopen(st, t)
		}
		r.mu.Unlock()
		if ok {
			res.Turns = append(res.Turns, t.ID)
		} else {
			res.Skipped[t.ID] = "it is under way"
		}
	}
	r.mu.Lock()
	r.pump()
	r.mu.Unlock()
	return res, nil
}

// repeat makes a new turn of a completed one. Called with mu held.
func (r *Runner) repeat(st *agentState, t ledger.Turn) (ledger.Turn, bool) {
	if r.openKeys[t.Key] || st.removed || r.stopping {
		return t, false
	}
	n := repeated(t, r.nextSeq.Add(1), r.now())
	r.openKeys[n.Key] = true
	r.ledger.Claim(n, nil, nil)
	st.ready = append(st.ready, &job{stage: stageRun, turn: n})
	r.activate(st)
	return n, true
}

func repeated(t ledger.Turn, seq int64, now time.Time) ledger.Turn {
	return ledger.Turn{
		Seq: seq, ID: record.NewID(), Agent: t.Agent, Key: t.Key, State: ledger.Claimed, Created: now,
		Inputs: t.Inputs, Lineage: t.Lineage, Trace: t.Trace, Forced: true,
		Sample: t.Sample, Samples: t.Samples,
	}
}

// pickRetry finds the turns that a retry is about.
func pickRetry(l *ledger.Ledger, o RetryOptions) ([]ledger.Turn, error) {
	if (o.Target == "") != o.All {
		return nil, errors.New("name a turn or an agent, or ask for all")
	}
	if !o.All {
		if t, ok, err := l.ByID(o.Target); err != nil {
			return nil, err
		} else if ok {
			if t.State == ledger.Done && !o.Force {
				return nil, fmt.Errorf("turn %s is completed; --force repeats it as a new turn", t.ID)
			}
			if t.State.Open() {
				return nil, fmt.Errorf("turn %s is not over: it is %s", t.ID, t.State)
			}
			return []ledger.Turn{t}, nil
		}
	}
	var list []ledger.Turn
	if o.Force {
		all, err := l.All(o.Target)
		if err != nil {
			return nil, err
		}
		// Of several turns on the same input, the newest.
		seen := map[string]bool{}
		for _, t := range slices.Backward(all) {
			if !t.State.Open() && !seen[t.Agent+t.Key] {
				list = append(list, t)
			}
			seen[t.Agent+t.Key] = true
		}
		slices.Reverse(list)
	} else {
		for _, state := range []ledger.State{ledger.Failed, ledger.Refused} {
			turns, err := l.Over(state, o.Target)
			if err != nil {
				return nil, err
			}
			list = append(list, turns...)
		}
		slices.SortFunc(list, func(a, b ledger.Turn) int { return int(a.Seq - b.Seq) })
	}
	if len(list) == 0 && !o.All {
		if known, err := l.All(o.Target); err != nil || len(known) == 0 {
			return nil, errors.Join(err, fmt.Errorf("no turn and no agent with turns is called %q", o.Target))
		}
	}
	return list, nil
}

// inputsChanged says why a turn cannot be what it was.
func inputsChanged(root string, t ledger.Turn) string {
	for _, in := range t.Inputs {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(in.Path)))
		if err != nil {
			return fmt.Sprintf("its input %s cannot be read: %s", in.Path, cause(err))
		}
		if hashOf(data) != in.SHA256 {
			return fmt.Sprintf("its input %s has changed; the new content has a turn of its own", in.Path)
		}
	}
	return ""
}

// RetryOffline does what Retry does when no runner works the graph: the turns
// are pending at the next start. The error wraps ErrLocked when one does.
func RetryOffline(root string, o RetryOptions) (res RetryResult, err error) {
	r, err := New(Config{Root: root})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	turns, err := pickRetry(r.ledger, o)
	if err != nil {
		return res, err
	}
	res = RetryResult{Turns: []string{}, Skipped: map[string]string{}}
	for _, t := range turns {
		if why := inputsChanged(r.root, t); why != "" {
			res.Skipped[t.ID] = why
			continue
		}
		if t.State == ledger.Done {
			t = repeated(t, r.nextSeq.Add(1), r.now())
			r.ledger.Claim(t, nil, nil)
		} else {
			t.State, t.Attempts, t.NextAt = ledger.Claimed, 0, time.Time{}
			r.ledger.Set(t)
		}
		res.Turns = append(res.Turns, t.ID)
	}
	return res, r.ledger.Flush(r.ctx)
}
