package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentgraph/agents"
	"agentgraph/internal/watch"
	"agentgraph/runner/internal/ledger"
)

// reloadPause gathers the events of one change.
const reloadPause = 50 * time.Millisecond

// dispatch acts on what the watcher reported.
func (r *Runner) dispatch(dirty []watch.Dirty) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reload := false
	for _, d := range dirty {
		for _, x := range r.roles[d.Dir] {
			switch x.kind {
			case roleGraph:
				if len(d.Names) == 0 || slices.Contains(d.Names, agents.StateDir) {
					r.checkState()
				}
				reload = reload || len(d.Names) == 0 && r.looksNew(d.Dir) || slices.Contains(d.Names, agents.GraphFile) || slices.Contains(d.Names, agents.AgentsDir)
			case roleAgents:
				reload = reload || len(d.Names) > 0 || r.looksNew(d.Dir)
			case roleAgent:
				reload = reload || len(d.Names) == 0 && r.looksNew(d.Dir) || slices.ContainsFunc(d.Names, changesAgent)
			case roleSystem:
				if x.st.counts[ledger.Refused] > 0 {
					r.recheckRefused(x.st, len(d.Names) > 0)
				}
			case roleInput:
				x.in.mark(d.Names...)
			}
		}
	}
	if reload {
		r.reloadSoon()
	}
}

// looksNew reports whether a folder with settings, or the settings in it, look
// other than the last time: a folder that is polled is reported all the time.
// Called with mu held.
func (r *Runner) looksNew(dir string) bool {
	look := ""
	for _, name := range []string{".", agents.AgentFile, agents.GraphFile, "system"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			look += fmt.Sprint(name, info.ModTime().UnixNano(), info.Size(), inodeNumber(info), ";")
		}
	}
	if r.looks[dir] == look {
		return false
	}
	r.looks[dir] = look
	return true
}

// changesAgent reports whether a name in an agent's folder can change what the
// agent is.
func changesAgent(name string) bool {
	switch name {
	case agents.AgentFile, "system", "input", "output", "turns", agents.GraphFile, agents.AgentsDir, agents.StateDir:
		return true
	}
	return false
}

// reloadSoon is called with mu held.
func (r *Runner) reloadSoon() {
	if r.stopping || r.reloading {
		return
	}
	r.reloading = true
	r.wg.Add(1)
	time.AfterFunc(reloadPause, func() {
		defer r.wg.Done()
		r.reload()
	})
}

// reload reads the settings again and applies what has changed.
func (r *Runner) reload() {
	r.mu.Lock()
	r.reloading = false // an event from here on asks for another one
	stopping := r.stopping
	r.mu.Unlock()
	if stopping {
		return
	}
	g, err := agents.LoadWith(r.cfg.Root, r.cfg.Load)
	if err != nil {
		r.problem("", err.Error(), "")
		return
	}
	paused, err := r.ledger.Paused()
	if err != nil {
		r.problem("", err.Error(), "")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return
	}
	r.graph = g
	for name, st := range r.agents {
		if a := g.Agent(name); a == nil || a.Dir != st.current().Dir {
			r.removeAgent(st)
		}
	}
	for _, a := range g.Agents {
		st := r.agents[a.Name]
		if st == nil {
			counts, err := r.ledger.Counts(a.Name)
			if err == nil {
				err = r.addAgent(a, counts[a.Name], paused[a.Name])
			}
			if err != nil {
				r.problem(a.Name, err.Error(), "")
				continue
			}
			r.emit(Event{Kind: AgentAdded, Agent: a.Name})
			continue
		}
		r.update(st, a)
	}
	r.pump()
}

// update gives an agent its new settings. Called with mu held.
func (r *Runner) update(st *agentState, a *agents.Agent) {
	old := st.current()
	was, is := errText(old.Err), errText(a.Err)
	same := was == is && old.Settings.SHA256() == a.Settings.SHA256() && slices.Equal(old.Inputs, a.Inputs) &&
		old.Settings.MaxHopsSet == a.Settings.MaxHopsSet && old.OutputDir == a.OutputDir && old.TurnsDir == a.TurnsDir && old.SystemDir == a.SystemDir
	if same {
		if st.counts[ledger.Refused] > 0 { // the rights of its folder may have changed
			r.recheckRefused(st, false)
		}
		return
	}
	st.cur.Store(a)
	st.rule.Store(ruleOf(a))
	if a.Err != nil {
		// Running turns end; nothing new starts.
		st.giveUpPlaces()
		r.closeIntakes(st)
		r.tellStopped(a)
		return
	}
	r.makeFolders(a)
	if old.Err != nil && len(st.jobs)+len(st.ready)+len(st.waiting)+len(st.stuck) == 0 {
		if err := r.recoverAgent(st); err != nil {
			r.problem(a.Name, err.Error(), "")
		}
	}
	if old.Err != nil || !slices.Equal(old.Inputs, a.Inputs) || old.Settings.Join != a.Settings.Join {
		r.closeIntakes(st)
		r.openIntakes(st)
	}
	for _, in := range st.intakes {
		in.again = true // max_hops or limits may have changed
		in.start()
	}
	r.recheckRefused(st, true)
	r.activate(st)
	r.emit(Event{Kind: AgentChanged, Agent: a.Name})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// recheckRefused makes refused turns pending again when what they were refused
// on has changed since the last time, or may have, with sure. Called with mu
// held.
func (r *Runner) recheckRefused(st *agentState, sure bool) {
	if r.stopping || st.removed {
		return
	}
	if sure {
		st.checked = ""
	}
	if st.checking {
		st.checkAgain = true
		return
	}
	st.checking = true
	r.looking++
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		for again := true; again; {
			_, quiet := r.waitQuiet(st)
			now := st.current().Fingerprint()
			r.mu.Lock()
			news := st.checked != now
			st.checked = now
			st.checkAgain = false
			r.mu.Unlock()
			missed := news && quiet && r.reopenRefused(st, func(t ledger.Turn) bool { return t.Fingerprint != now })
			if missed {
				r.moment()
			}
			r.mu.Lock()
			if missed {
				st.checked, st.checkAgain = "", true
			}
			if again = st.checkAgain; !again {
				st.checking = false
				r.looking--
				r.pump()
			}
			r.mu.Unlock()
		}
	}()
}

// moment waits until what takes an identity for a moment has given it back.
func (r *Runner) moment() {
	select {
	case <-time.After(reloadPause):
	case <-r.ctx.Done():
	}
}

// reopenRefused opens the refused turns of an agent that pick chooses. It
// reports whether one has to be looked at again: its input was being compared
// with the ledger, which takes its identity for a moment.
func (r *Runner) reopenRefused(st *agentState, pick func(t ledger.Turn) bool) (missed bool) {
	if err := r.ledger.Flush(r.ctx); err != nil {
		return false
	}
	refused, err := r.ledger.Over(ledger.Refused, st.name)
	if err != nil {
		r.problem(st.name, err.Error(), "")
		return false
	}
	if len(refused) == 0 {
		return false
	}
	refused = slices.DeleteFunc(refused, func(t ledger.Turn) bool { return !pick(t) })
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range refused {
		if !r.reopen(st, t) && !st.removed && !r.stopping {
			missed = true
		}
	}
	return missed
}

// reopen makes a turn that was over pending again; it keeps its identity and
// its record is replaced. Called with mu held.
func (r *Runner) reopen(st *agentState, t ledger.Turn) bool {
	if r.openKeys[t.Key] || st.removed || r.stopping {
		return false
	}
	r.openKeys[t.Key] = true
	j := &job{stage: stageRun, refused: t.State == ledger.Refused, turn: t}
	st.counts[t.State]--
	j.turn.State, j.turn.Attempts, j.turn.NextAt = ledger.Claimed, 0, time.Time{}
	r.ledger.Set(j.turn)
	st.ready = append(st.ready, j)
	r.activate(st)
	return true
}

// tick does what is due every rescan: look everywhere, also for settings, and
// try again what could not be written.
func (r *Runner) tick(full bool) {
	if r.watcher != nil {
		r.watcher.Check()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checkState()
	reload := false
	for dir, roles := range r.roles {
		switch roles[0].kind {
		case roleGraph, roleAgents, roleAgent:
			reload = r.looksNew(dir) || reload
		}
	}
	if reload {
		r.reloadSoon()
	}
	for _, st := range r.agents {
		for _, in := range st.intakes {
			in.maybe, in.again = true, true
			in.all = in.all || full
			in.start()
		}
		if st.counts[ledger.Refused] > 0 && st.current().Err == nil {
			r.recheckRefused(st, false)
		}
		for _, j := range st.stuck {
			st.ready = append(st.ready, j)
			r.activate(st)
		}
		st.stuck = nil
	}
	r.pump()
}
