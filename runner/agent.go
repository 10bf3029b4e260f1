package runner

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentgraph/agents"
	"agentgraph/internal/watch"
	"agentgraph/output"
	"agentgraph/record/store"
	"agentgraph/runner/internal/ledger"
)

// role says what a watched folder is.
type role struct {
	kind roleKind
	st   *agentState
	in   *intake
}

type roleKind int

const (
	roleGraph  roleKind = iota // the graph's root: agentgraph.yaml
	roleAgents                 // agents/
	roleAgent                  // agents/<name>
	roleSystem                 // its system/
	roleInput                  // an input folder
)

// addAgent makes an agent known and brings back its open turns. Called with mu
// held, before its folders are watched.
func (r *Runner) addAgent(a *agents.Agent, counts map[ledger.State]int, paused bool) error {
	st := &agentState{
		name: a.Name, intakes: map[string]*intake{}, waiting: map[*job]*time.Timer{}, together: map[string]int{}, jobs: map[*job]bool{},
		folder: output.Open(a.OutputDir), store: store.Open(a.TurnsDir), counts: counts, paused: paused,
	}
	if st.counts == nil {
		st.counts = map[ledger.State]int{}
	}
	st.ctx, st.cancel = context.WithCancel(r.ctx)
	st.cur.Store(a)
	st.rule.Store(ruleOf(a))
	r.agents[a.Name] = st
	r.watch(a.Dir, role{kind: roleAgent, st: st})
	r.watch(a.SystemDir, role{kind: roleSystem, st: st})
	if a.Err != nil {
		r.tellStopped(a)
		return nil
	}
	r.makeFolders(a)
	if err := r.recoverAgent(st); err != nil {
		return err
	}
	r.openIntakes(st)
	if st.counts[ledger.Refused] > 0 {
		r.recheckAtStart(st)
	}
	return nil
}

func ruleOf(a *agents.Agent) watch.Rule {
	return watch.Rule{Quiet: a.Settings.Settle, Max: max(a.Settings.MaxSettle, a.Settings.Settle), Always: a.Settings.SettleSet}
}

func (r *Runner) tellStopped(a *agents.Agent) {
	e := Event{Kind: AgentStopped, Agent: a.Name, Message: a.Err.Error()}
	r.emit(e)
}

// makeFolders makes the folders an agent needs. What cannot be made is told
// when it is needed.
func (r *Runner) makeFolders(a *agents.Agent) {
	for _, dir := range append([]string{a.OutputDir, a.TurnsDir}, a.Inputs...) {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			r.problem(a.Name, "the folder "+r.rel(dir)+" cannot be made: "+cause(err), "let this user write to "+r.rel(filepath.Dir(dir)))
		}
	}
}

// openIntakes starts to look at the agent's input folders. Called with mu held.
func (r *Runner) openIntakes(st *agentState) {
	a := st.current()
	if a.Settings.Join == agents.JoinAll {
		st.joiner = newJoiner(r, st)
	}
	for _, dir := range a.Inputs {
		in := newIntake(r, st, dir)
		st.intakes[dir] = in
		r.intakes[dir] = append(r.intakes[dir], in)
		r.watch(dir, role{kind: roleInput, st: st, in: in})
		in.mark()
	}
}

// closeIntakes is called with mu held.
func (r *Runner) closeIntakes(st *agentState) {
	for dir, in := range st.intakes {
		in.close()
		r.intakes[dir] = slices.DeleteFunc(r.intakes[dir], func(x *intake) bool { return x == in })
		r.unwatch(dir, func(x role) bool { return x.in == in })
		delete(st.intakes, dir)
	}
	st.queue = nil
	st.joiner = nil
}

// stopTurns ends the turns that run; the ones that come after are not touched.
// Called with mu held.
func (st *agentState) stopTurns(parent context.Context) {
	st.ctxMu.Lock()
	defer st.ctxMu.Unlock()
	st.cancel()
	st.ctx, st.cancel = context.WithCancel(parent)
}

// removeAgent forgets an agent whose folder is gone; what it finished stays in
// the ledger. Called with mu held.
func (r *Runner) removeAgent(st *agentState) {
	st.removed = true
	st.ctxMu.Lock()
	st.cancel()
	st.ctxMu.Unlock()
	r.closeIntakes(st)
	r.unwatch(st.current().Dir, func(x role) bool { return x.st == st })
	r.unwatch(st.current().SystemDir, func(x role) bool { return x.st == st })
	for j, t := range st.waiting {
		t.Stop()
		r.waitingTurns--
		delete(st.waiting, j)
		delete(r.openKeys, j.turn.Key)
	}
	for _, j := range append(slices.Clone(st.ready), st.stuck...) {
		st.order.give(j.place)
		delete(r.openKeys, j.turn.Key)
	}
	st.ready, st.stuck = nil, nil
	delete(r.agents, st.name)
	r.emit(Event{Kind: AgentRemoved, Agent: st.name})
}

// watch notes a folder's role and watches it. Called with mu held.
func (r *Runner) watch(dir string, x role) {
	r.roles[dir] = append(r.roles[dir], x)
	if r.watcher != nil {
		r.watcher.Add(dir)
	}
}

// unwatch is called with mu held.
func (r *Runner) unwatch(dir string, drop func(role) bool) {
	left := slices.DeleteFunc(r.roles[dir], drop)
	if len(left) > 0 {
		r.roles[dir] = left
		return
	}
	delete(r.roles, dir)
	if r.watcher != nil {
		r.watcher.Remove(dir)
	}
}

// fileAppeared tells the readers of a folder about a file that this runner put
// there. Called with mu held.
func (r *Runner) fileAppeared(path string) {
	for _, in := range r.intakes[filepath.Dir(path)] {
		in.mark(filepath.Base(path))
	}
}
