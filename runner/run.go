package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"agentgraph/agents"
	"agentgraph/internal/watch"
	"agentgraph/runner/internal/ledger"
)

// Summary is what a run came to.
type Summary struct {
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	// Refused counts turns that were refused before admission, those of
	// earlier runs that nothing has changed about among them.
	Refused int `json:"refused"`
	// Incomplete sets of agents with join: all wait for a file.
	Incomplete int `json:"incomplete"`
	// Unreadable inputs could not be taken.
	Unreadable int `json:"unreadable"`
	// Stopped agents have settings that are wrong.
	Stopped int `json:"stopped"`
	// Held turns have an answer that cannot be published or recorded now; it
	// is tried again, also by the next run.
	Held int `json:"held"`
	// Paused turns and inputs belong to an agent that is paused.
	Paused int `json:"paused"`
	// Interrupted is true when the run was ended before its work.
	Interrupted bool `json:"interrupted"`
}

// ExitCode is 0 when everything was completed, 1 otherwise, 130 after an
// interruption.
func (s Summary) ExitCode() int {
	switch {
	case s.Interrupted:
		return 130
	case s.Failed+s.Refused+s.Incomplete+s.Unreadable+s.Stopped+s.Held+s.Paused > 0:
		return 1
	}
	return 0
}

// ErrNothingRuns is the error of Run and Once when no agent can run; the exit
// code is then 2.
var ErrNothingRuns = errors.New("no agent of this graph can run")

// fullScans is how many rescans look at every file although nothing says that
// one has changed: one in this many.
const fullScans = 10

// Once does all that is pending and returns. Canceling ctx stops running turns
// at once; they are claimed and come back.
func (r *Runner) Once(ctx context.Context) (Summary, error) {
	defer r.shutDown()
	if err := r.canRun(); err != nil {
		return Summary{}, err
	}
	r.once = true
	r.watchStop(ctx)
	if err := r.start(); err != nil {
		return Summary{}, err
	}
	for {
		r.waitIdle()
		r.mu.Lock()
		claims, stopping := r.claims, r.stopping
		r.mu.Unlock()
		if stopping {
			break
		}
		// What came meanwhile was not reported by anyone.
		r.mu.Lock()
		for _, st := range r.agents {
			for _, in := range st.intakes {
				in.mark()
			}
		}
		r.mu.Unlock()
		r.waitIdle()
		r.mu.Lock()
		done := r.claims == claims
		r.mu.Unlock()
		if done {
			break
		}
	}
	return r.summary(), nil
}

// Run watches the graph and works it until ctx ends or Finish is called.
func (r *Runner) Run(ctx context.Context) error {
	defer r.shutDown()
	mode := r.cfg.Watch
	if mode == "" {
		mode = watch.Mode(r.graph.Settings.Watch)
	}
	r.watcher = watch.New(watch.Config{Mode: mode, Every: r.cfg.PollEvery, Source: r.cfg.source, Problem: func(p watch.Problem) {
		dir := ""
		if p.Dir != "" {
			dir = r.rel(p.Dir) + ": "
		}
		r.problem("", dir+p.Msg, p.Hint)
	}})
	stop := r.watchStop(ctx)
	control, err := r.listen()
	if err != nil {
		// The graph runs all the same.
		r.problem("", "the control socket cannot be had: "+cause(err), "status, stop and retry will not reach this runner")
	} else {
		defer control.close()
	}
	if err := r.start(); err != nil {
		return err
	}
	r.mu.Lock()
	rescan := r.graph.Settings.Rescan
	r.mu.Unlock()
	ticker := time.NewTicker(rescan)
	defer ticker.Stop()
	for n := 1; ; {
		select {
		case <-stop:
			r.waitIdle()
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.stateGone {
				return fmt.Errorf("%w; start it again: the ledger is rebuilt from turns/", ErrStateGone)
			}
			return nil
		case <-r.watcher.Ready():
			r.dispatch(r.watcher.Take())
		case <-ticker.C:
			r.tick(n%fullScans == 0)
			n++
			r.mu.Lock()
			if now := r.graph.Settings.Rescan; now != rescan {
				rescan = now
				ticker.Reset(rescan)
			}
			r.mu.Unlock()
		}
	}
}

// canRun reports a graph in which no agent can run.
func (r *Runner) canRun() error {
	for _, a := range r.graph.Agents {
		if a.Err == nil {
			return nil
		}
	}
	if len(r.graph.Agents) == 0 {
		return fmt.Errorf("%w: %s is empty; add a folder with a system folder in it", ErrNothingRuns, filepath.Join(r.root, agents.AgentsDir))
	}
	return fmt.Errorf("%w: %w", ErrNothingRuns, r.graph.Agents[0].Err)
}

// start makes the agents known and looks everywhere once.
func (r *Runner) start() error {
	r.sweepSnapshots()
	paused, err := r.ledger.Paused()
	if err != nil {
		return err
	}
	counts, err := r.ledger.Counts("")
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch(r.root, role{kind: roleGraph})
	r.watch(filepath.Join(r.root, agents.AgentsDir), role{kind: roleAgents})
	for _, a := range r.graph.Agents {
		if err := r.addAgent(a, counts[a.Name], paused[a.Name]); err != nil {
			return err
		}
	}
	r.untold = !r.once
	r.pump()
	return nil
}

// recheckAtStart opens refused turns that may run now: what they were refused
// on has changed, or it was the model, which nothing tells about. The others
// stay refused. Called with mu held.
func (r *Runner) recheckAtStart(st *agentState) {
	r.looking++
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		now := st.current().Fingerprint()
		for r.reopenRefused(st, func(t ledger.Turn) bool {
			switch t.Code {
			case "model_unavailable", "capability_missing", "internal":
				return true
			}
			return t.Fingerprint != now
		}) {
			r.moment()
		}
		r.mu.Lock()
		r.looking--
		r.pump()
		r.mu.Unlock()
	}()
}

// watchStop sees to it that the end of ctx stops everything at once, and that
// Finish stops what has not begun. The channel it returns is closed when
// either happened.
func (r *Runner) watchStop(ctx context.Context) <-chan struct{} {
	stop := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			r.stop(true)
		case <-r.finish:
			r.stop(false)
		case <-r.ended:
			return
		}
		close(stop)
		select {
		case <-ctx.Done():
			r.stop(true)
		case <-r.ended:
		}
	}()
	return stop
}

// stop starts nothing new; at once also ends what runs.
func (r *Runner) stop(atOnce bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopping = true
	for _, st := range r.agents {
		st.giveUpPlaces()
	}
	if atOnce {
		r.cancel()
	}
	r.checkIdle()
}

// giveUpPlaces is for an agent that starts nothing new: turns that do not run
// must not hold up those that do. Called with mu held.
func (st *agentState) giveUpPlaces() {
	for _, j := range st.ready {
		st.order.give(j.place)
		j.place = nil
	}
}

// waitIdle returns when nothing is under way.
func (r *Runner) waitIdle() {
	for {
		r.mu.Lock()
		busy := r.busy()
		r.mu.Unlock()
		if !busy {
			return
		}
		select {
		case <-r.idle:
		case <-time.After(time.Second):
		}
	}
}

// summary is called when nothing is under way.
func (r *Runner) summary() Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Refused = 0
	for _, st := range r.agents {
		s.Refused += st.counts[ledger.Refused]
		s.Held += len(st.stuck)
		if st.paused {
			s.Paused += len(st.ready) + len(st.queue)
		}
		s.Incomplete += len(st.joiner.incomplete())
		if st.current().Err != nil {
			s.Stopped++
		}
	}
	s.Interrupted = r.stopping && r.ctx.Err() != nil
	return s
}

// Left is how many turns were left for the next run by one that was stopped:
// all that were pending, but not those of agents that are paused or whose
// settings are wrong. Call it when Run or Once has returned.
func (r *Runner) Left() int { return r.left }

// countLeft is called when everything has ended, before the ledger is closed.
func (r *Runner) countLeft(unclaimed map[string]int) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = r.ledger.Flush(ctx) // what is not on disk is not counted
	counts, err := r.ledger.Counts("")
	if err != nil {
		r.problem("", err.Error(), "")
	}
	n := 0
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, st := range r.agents {
		if st.paused || st.current().Err != nil {
			continue
		}
		n += unclaimed[name]
		for state, c := range counts[name] {
			if state.Open() {
				n += c
			}
		}
	}
	return n
}

// shutDown ends everything; nothing of the runner is left afterwards.
func (r *Runner) shutDown() {
	r.mu.Lock()
	r.stopping = true
	var held []*job
	unclaimed := map[string]int{}
	for _, st := range r.agents {
		unclaimed[st.name] = len(st.queue)
		for _, in := range st.intakes {
			unclaimed[st.name] += in.waiting
		}
		for _, in := range st.intakes {
			in.close()
		}
		for j, t := range st.waiting {
			t.Stop()
			delete(st.waiting, j)
			r.waitingTurns--
			held = append(held, j)
		}
	}
	r.mu.Unlock()
	r.cancel()
	if r.watcher != nil {
		_ = r.watcher.Close()
	}
	r.wg.Wait()
	for _, st := range r.agents {
		held = append(append(held, st.stuck...), st.ready...)
	}
	for _, j := range held {
		r.withdraw(j)
	}
	close(r.ended)
	r.left = r.countLeft(unclaimed)
	if r.stateGone {
		r.ledger.Abandon()
	} else if err := r.ledger.Close(); err != nil {
		r.problem("", "closing the ledger: "+err.Error(), "")
	}
	_ = r.audit.Close() // every event was written when it happened
	_ = r.tools.Close() // servers are killed either way
	r.unlock()
}
