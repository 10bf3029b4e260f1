package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/runner/internal/ledger"
	"agentgraph/turn"
)

// work takes a turn as far as it goes now. What is to happen when the worker
// has left (a pause, a place among the stuck) is in job.park.
func (r *Runner) work(st *agentState, j *job) {
	defer r.wg.Done()
	defer r.leave(st, j)
	for more := true; more; {
		switch j.stage {
		case stageClaim:
			more = r.claim(st, j)
		case stageRun:
			more = r.run(st, j)
		case stagePublish:
			more = r.publish(st, j)
		case stageRecord:
			more = r.record(st, j)
		case stageEnd:
			more = r.end(st, j)
		default:
			return
		}
	}
}

// current is the agent as it was loaded last.
func (st *agentState) current() *agents.Agent { return st.cur.Load() }

// context ends when the turns of this agent must stop at once.
func (st *agentState) context() context.Context {
	st.ctxMu.Lock()
	defer st.ctxMu.Unlock()
	return st.ctx
}

// settings are those in use for the turns that start now.
func (st *agentState) settings() agents.Settings { return st.current().Settings }

// run makes one attempt and decides what becomes of it.
func (r *Runner) run(st *agentState, j *job) (more bool) {
	if err := r.load(st, j); err != nil && j.refused {
		// Nobody wants it any more; it stays refused.
		j.turn.State = ledger.Refused
		r.close(st, j)
		return false
	} else if err != nil {
		// The bytes are gone for good: the turn cannot be what it was.
		r.giveUp(st, j, &record.Error{Code: record.Internal, Message: err.Error(), Hint: "drop the input again"})
		return true
	}
	inputs := make([]agents.Input, len(j.turn.Inputs))
	for i, ref := range j.turn.Inputs {
		inputs[i] = agents.Input{Path: ref.Path, SHA256: ref.SHA256, Data: j.data[i], Size: ref.Bytes}
	}
	a, req, terr, fingerprint, ok := r.prepare(st, inputs)
	if !ok {
		j.park = func() { r.comeBack(st, j) }
		return false
	}
	r.name(st, j, req)
	j.sampled(req)
	j.started = r.now()
	r.mu.Lock()
	j.show()
	j.since, j.tokens = j.started, 0
	r.mu.Unlock()
	paths := pathsOf(j.turn.Inputs)
	r.emit(Event{Kind: TurnStarted, Agent: st.name, Turn: j.turn.ID, Attempt: req.Attempt, Inputs: paths})

	var rec *record.Record
	switch {
	case terr != nil:
		rec = turn.Refuse(req, refusalOf(terr))
	default:
		rec = r.attempt(st, j, req)
	}
	r.mu.Lock()
	r.freeModel(j)
	r.pump()
	r.mu.Unlock()
	r.at("generated")
	j.stream.close()
	j.sample(rec)
	j.req, j.rec = req, rec

	if _, ok := rec.Answer(); ok {
		j.format, j.ext, _ = agents.AnswerName(req)
		j.turn.Attempts = req.Attempt
		j.stage = stagePublish
		if a.Settings.History == 0 {
			// The next turn does not need this one's answer.
			r.mu.Lock()
			r.freeSlot(st, j)
			r.closing++
			j.closing = true
			r.pump()
			r.mu.Unlock()
		}
		return true
	}
	if j.interrupted(r, st) {
		return false // as if this attempt had not been; it is claimed and comes back
	}
	if rec.Outcome == nil {
		// Pending again when what it was refused on has changed.
		j.turn.State, j.turn.Fingerprint = ledger.Refused, fingerprint
		j.stage = stageEnd
		return true
	}
	return r.fail(st, j)
}

// interrupted reports whether an attempt ended because the runner or the agent
// was stopped, not by itself.
func (j *job) interrupted(r *Runner, st *agentState) bool {
	if j.ctx == nil || j.ctx.Err() == nil {
		return false
	}
	if j.rec.Outcome != nil && j.rec.Outcome.Status != record.Cancelled {
		return false
	}
	j.park = func() { r.comeBack(st, j) }
	return true
}

// comeBack is what becomes of a turn that was stopped before its end: it
// waits, claimed, until the agent is resumed or the next run. Called with mu
// held.
func (r *Runner) comeBack(st *agentState, j *job) {
	if st.removed {
		r.adopt(st, j)
	} else if r.ctx.Err() == nil {
		st.ready = append(st.ready, j)
	}
}

// name gives a request the names of the turn, its lineage and its reporting.
func (r *Runner) name(st *agentState, j *job, req *turn.Request) {
	lineage := j.turn.Lineage
	req.TurnID, req.TraceID, req.SessionID = j.turn.ID, j.turn.Trace, st.name
	req.RunID = record.NewID()
	req.Attempt = j.turn.Attempts + 1
	req.Lineage = &lineage
	req.Clock = r.cfg.Now
	req.Audit = func(e turn.Event) {
		if err := r.audit.Append(e); err != nil {
			r.auditProblem(err)
		}
	}
	r.equip(req)
	j.stream = r.newStream(st.current())
	req.Progress = func(p model.Progress) {
		j.stream.write(j.turn.ID, p)
		now := r.now()
		r.mu.Lock()
		j.tokens = p.Tokens
		due := now.Sub(j.progress) >= progressEvery
		if due {
			j.progress = now
		}
		r.mu.Unlock()
		if due {
			elapsed := now.Sub(j.started)
			r.emit(Event{Kind: TurnProgress, Agent: st.name, Turn: j.turn.ID, Attempt: req.Attempt, Tokens: p.Tokens,
				TokensPerSecond: perSecond(p.Tokens, elapsed), Elapsed: elapsed})
		}
	}
}

func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

func (r *Runner) attempt(st *agentState, j *job, req *turn.Request) *record.Record {
	ctx := st.context()
	j.ctx = ctx
	if n := st.settings().History; n > 0 {
		h, err := r.historyOf(st, n, j.turn)
		if err != nil {
			return turn.Refuse(req, &record.Error{Code: record.Internal, Message: "earlier turns cannot be read: " + err.Error(), Hint: "set history: 0, or repair the records in turns/"})
		}
		req.History = h
	}
	rec := r.generate(ctx, st, j, req)
	if rec == nil {
		rec = turn.Refuse(req, &record.Error{Code: record.Internal, Message: "the generator returned no record"})
	}
	return rec
}

// generate runs the turn on the agent's model or, where that cannot be had, on
// one that stands in for it.
func (r *Runner) generate(ctx context.Context, st *agentState, j *job, req *turn.Request) *record.Record {
	if r.cfg.Models == nil {
		return r.gen.Run(ctx, req)
	}
	settings := st.settings()
	var sources []turn.Source
	for i, name := range settings.ModelNames() {
		sources = append(sources, turn.Source{Name: name, Open: func(ctx context.Context) (model.Model, error) {
			m, err := r.cfg.Models.Model(ctx, name)
			if err == nil && i == 0 {
				r.mu.Lock()
				if s := j.onModel; s != nil && s.capacity == 0 {
					s.capacity = max(m.Capabilities().Parallel, 1)
					r.pump() // more may start beside this one
				}
				r.mu.Unlock()
			}
			return m, err
		}})
	}
	return turn.RunFirst(ctx, req, sources, r.gen.Run)
}

func refusalOf(err error) *record.Error {
	var e *agents.Error
	if errors.As(err, &e) {
		return e.Record()
	}
	return &record.Error{Code: record.Internal, Message: err.Error()}
}

// fail ends an attempt: with another one to come, or for good.
func (r *Runner) fail(st *agentState, j *job) (more bool) {
	j.turn.Attempts++
	e := j.rec.Error
	if e == nil || !e.Retry || j.turn.Attempts > st.settings().Retries {
		j.turn.State = ledger.Failed
		j.stage = stageEnd
		return true
	}
	pause := r.pause(j.turn.Attempts)
	j.turn.State, j.turn.NextAt = ledger.Waiting, r.now().Add(pause)
	j.turn.Code, j.turn.Message = string(e.Code), e.Message
	r.ledger.Set(j.turn)
	r.at("waiting")
	r.tellRetry(st, j, e, pause)
	j.park = func() { r.later(st, j, pause) }
	return false
}

// tellRetry says when a turn is tried again. A runner that is stopping leaves
// it for the next run.
func (r *Runner) tellRetry(st *agentState, j *job, e *record.Error, pause time.Duration) {
	ev := Event{Kind: TurnRetrying, Agent: st.name, Turn: j.turn.ID, Attempt: j.turn.Attempts, Inputs: pathsOf(j.turn.Inputs), Error: e, After: pause}
	r.mu.Lock()
	if r.stopping {
		ev.After, ev.Message = 0, "left for the next run"
	}
	r.mu.Unlock()
	r.emit(ev)
}

func (r *Runner) pause(attempts int) time.Duration {
	pause := r.cfg.RetryBase
	for range min(attempts-1, 20) {
		pause *= 2
	}
	return min(pause, maxRetryPause)
}

// giveUp ends a turn that cannot be attempted.
func (r *Runner) giveUp(st *agentState, j *job, e *record.Error) {
	j.req = &turn.Request{Agent: st.name, TurnID: j.turn.ID, Inputs: j.turn.Inputs, Lineage: &j.turn.Lineage, Clock: r.cfg.Now}
	j.rec = turn.Refuse(j.req, e)
	j.sample(j.rec)
	j.turn.State = ledger.Failed
	j.stage = stageEnd
}

// end closes a turn without an answer: record, ledger, event.
func (r *Runner) end(st *agentState, j *job) (more bool) {
	// The claim is on disk before a record says that there was one.
	_ = r.ledger.Flush(r.ctx)
	if !st.exists() {
		r.abandon(st, j)
		return false
	}
	if _, err := st.store.Write(j.turn.ID, j.rec); err != nil {
		r.problem(st.name, "the record of a turn cannot be written: "+cause(err), "free disk space, or let this user write to "+r.rel(st.current().TurnsDir))
		r.hold(st, j)
		return false
	}
	r.at("recorded")
	r.endStream(st, j, "")
	if e := j.rec.Error; e != nil {
		j.turn.Code, j.turn.Message = string(e.Code), e.Message
	}
	r.close(st, j)
	kind := TurnFailed
	// A change that came while the turn was under way found nothing to reopen.
	changed := j.turn.State == ledger.Refused && st.current().Fingerprint() != j.turn.Fingerprint
	r.mu.Lock()
	if changed {
		r.recheckRefused(st, true)
	}
	if j.turn.State == ledger.Refused {
		kind = TurnRefused
		r.stats.Refused++
	} else {
		r.stats.Failed++
	}
	r.mu.Unlock()
	r.emit(Event{Kind: kind, Agent: st.name, Turn: j.turn.ID, Attempt: j.turn.Attempts, Inputs: pathsOf(j.turn.Inputs),
		Error: j.rec.Error, Tokens: j.tokens, Elapsed: r.now().Sub(j.started)})
	return false
}

// close writes a turn's end to the ledger and frees what it held.
func (r *Runner) close(st *agentState, j *job) {
	r.mu.Lock()
	st.counts[j.turn.State]++
	r.mu.Unlock()
	key, out, sha := j.turn.Key, j.turn.Output, j.turn.OutputSHA
	// The identity stays taken until the row that takes it is on disk.
	r.ledger.SetThen(j.turn, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.openKeys, key)
		if p, ok := r.producers[out]; ok && p.sha == sha {
			delete(r.producers, out)
		}
	})
	r.dropSnapshots(j)
	r.at("closed")
}

// hold keeps a turn whose answer or record cannot be written now: it is tried
// again like an attempt, then at every rescan.
func (r *Runner) hold(st *agentState, j *job) {
	j.tries++
	if j.tries <= st.settings().Retries {
		pause := r.pause(j.tries)
		j.park = func() { r.later(st, j, pause) }
		return
	}
	j.park = func() {
		if st.removed {
			r.adopt(st, j)
			return
		}
		st.stuck = append(st.stuck, j)
	}
}

// abandon drops a turn whose agent's folder is gone, as if its input had never
// been seen: put back, the agent gets its turn.
func (r *Runner) abandon(st *agentState, j *job) {
	if j.pending != nil {
		_ = j.pending.Discard() // it went with the folder
		j.pending = nil
	}
	r.ledger.Drop(j.turn.ID)
	for _, in := range j.turn.Inputs {
		dir, name := path.Split(in.Path)
		r.ledger.Forget(st.name, strings.TrimSuffix(dir, "/"), []string{name})
	}
	r.dropSnapshots(j)
	j.park = func() {
		delete(r.openKeys, j.turn.Key)
		if now := r.agents[st.name]; now != nil {
			for _, in := range now.intakes {
				in.forgetAll(j.turn.Inputs)
			}
		}
	}
	r.emit(Event{Kind: TurnFailed, Agent: st.name, Turn: j.turn.ID, Inputs: pathsOf(j.turn.Inputs),
		Error: &record.Error{Code: record.PublishFailed, Message: "the agent's folder is gone", Hint: "put it back, and its inputs get their turns"}})
}

// adopt gives the turn of an agent that was removed to the agent that is there
// under its name now; if none is, the ledger keeps it until one comes. Called
// with mu held.
func (r *Runner) adopt(st *agentState, j *job) {
	now := r.agents[st.name]
	if now == nil || r.ctx.Err() != nil {
		delete(r.openKeys, j.turn.Key)
		return
	}
	now.ready = append(now.ready, j)
	r.activate(now)
}

// exists reports whether the agent's folder is there: nothing may make a
// deleted agent again.
func (st *agentState) exists() bool {
	info, err := os.Stat(st.current().Dir)
	return err == nil && info.IsDir()
}

func pathsOf(refs []record.FileRef) []string {
	paths := make([]string, len(refs))
	for i, f := range refs {
		paths[i] = f.Path
	}
	return paths
}

func (r *Runner) auditProblem(err error) {
	r.problem("", "the audit log cannot be written: "+cause(err), fmt.Sprintf("free disk space, or let this user write to %s", filepath.Join(r.root, "log")))
}
