package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"agentgraph/output"
	"agentgraph/record"
	"agentgraph/runner/internal/ledger"
	"agentgraph/turn"
)

// publish makes an answer a file, once. In this order, so that every gap can
// be told after a crash:
//
//	temporary file, synced     nothing is published; the turn is redone
//	intent in the ledger       the temporary file is there: publish again;
//	                           it is gone: it was renamed
//	create-exclusive rename    the answer is found by its inode
//	record, ledger             the record is written again, with that name
func (r *Runner) publish(st *agentState, j *job) (more bool) {
	if !st.exists() {
		r.abandon(st, j)
		return false
	}
	answer := published(j.rec)
	pattern := output.Default
	if j.ext != "" {
		var err error
		if pattern, err = output.NewPattern(j.format, j.ext); err != nil {
			r.publishFailed(st, j, err)
			return false
		}
	}
	if j.pending == nil {
		pending, err := st.folder.Prepare(context.Background(), j.turn.ID, answer)
		if err != nil {
			_ = r.keepAnswer(j) // without it the model is asked again after a restart
			r.publishFailed(st, j, err)
			return false
		}
		r.at("prepared")
		if err := r.intend(j, pending); err != nil {
			r.publishFailed(st, j, errors.Join(err, pending.Discard()))
			return false
		}
		j.pending = pending
		r.at("intended")
	}
	if err := j.place.wait(r.ctx); err != nil {
		r.withdraw(j) // stopped at once, before its turn came
		return false
	}

	started := r.now()
	if t := j.rec.Timing; t != nil && !t.Started.IsZero() {
		started = t.Started
	}
	path, err := r.commit(st, j, pattern, started, hashOf(answer))
	if err != nil && path == "" {
		if errors.Is(err, output.ErrMoved) {
			r.withdraw(j) // the next try prepares it in the folder that is there now
		}
		if j.pending == nil && j.tries == 0 {
			j.tries++
			return true
		}
		r.publishFailed(st, j, err)
		return false
	}
	if err != nil {
		r.problem(st.name, err.Error(), "")
	}
	j.pending = nil
	j.output = path
	j.stage = stageRecord
	r.mu.Lock()
	st.order.give(j.place)
	r.fileAppeared(path)
	r.pump()
	r.mu.Unlock()
	return true
}

// intend writes down that the temporary file is about to become an answer.
func (r *Runner) intend(j *job, pending *output.Pending) error {
	data, err := json.Marshal(j.rec)
	if err != nil {
		return err
	}
	in := ledger.Intent{Boot: r.boot, Format: j.format, Ext: j.ext, Record: data}
	if info, err := os.Stat(pending.Temp()); err == nil {
		in.Inode = fileIdentity(info)
	}
	return r.ledger.Intend(j.turn.ID, j.turn.Attempts, in).Wait(context.Background())
}

// withdrawn stands in an intent for a temporary file that was removed without
// a publish.
const withdrawn = "withdrawn"

// withdraw takes an intent back; the answer stays in the ledger. The ledger
// comes first: a temporary file that is gone otherwise means a publish.
func (r *Runner) withdraw(j *job) {
	if j.pending != nil && r.keepAnswer(j) == nil {
		_ = j.pending.Discard() // the sweep at the next start takes what is left
		j.pending = nil
	}
}

// keepAnswer writes an answer that is not published to the ledger.
func (r *Runner) keepAnswer(j *job) error {
	data, err := json.Marshal(j.rec)
	if err != nil {
		return err
	}
	in := ledger.Intent{Boot: r.boot, Format: j.format, Ext: j.ext, Record: data, Inode: withdrawn}
	return r.ledger.Intend(j.turn.ID, j.turn.Attempts, in).Wait(context.Background())
}

// commit renames the temporary file to the next free name and notes who
// produced it, before anybody can ask.
func (r *Runner) commit(st *agentState, j *job, pattern output.Pattern, started time.Time, sha string) (string, error) {
	defer r.publishing(r.rel(st.folder.Path()))()
	for {
		name, err := j.pending.NextName(pattern, started)
		if err != nil {
			return "", err
		}
		r.at("named")
		path, err := j.pending.Commit(name)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if path == "" {
			return "", err
		}
		r.at("committed")
		r.mu.Lock()
		r.producers[r.rel(path)] = producer{sha: sha, trace: j.turn.Trace, lineage: j.turn.Lineage}
		r.mu.Unlock()
		return path, err
	}
}

// publishing locks the publishes into one folder, relative to the graph; it
// returns the function that unlocks.
func (r *Runner) publishing(dir string) (unlock func()) {
	m, _ := r.publishLocks.LoadOrStore(filepath.ToSlash(dir), &sync.Mutex{})
	m.(*sync.Mutex).Lock()
	return m.(*sync.Mutex).Unlock
}

// publishFailed keeps an answer that cannot be published now: the model is not
// asked again.
func (r *Runner) publishFailed(st *agentState, j *job, err error) {
	if !st.exists() {
		r.abandon(st, j)
		return
	}
	e := &record.Error{Code: record.PublishFailed, Message: err.Error(), File: r.rel(st.folder.Path()), Retry: true}
	var oe *output.Error
	if errors.As(err, &oe) {
		e.Message, e.Hint = fmt.Sprintf("%s: %v", oe.Doing, oe.Err), oe.Hint
	}
	r.hold(st, j)
	// The same reason is told once: what changes is that it is given up, for
	// now.
	news := j.told != e.Message
	j.told = e.Message
	switch limit := st.settings().Retries; {
	case j.tries <= limit:
		if news {
			r.tellRetry(st, j, e, r.pause(j.tries))
		}
	case j.tries == limit+1:
		rec := *j.rec
		rec.Error = e
		out := *rec.Outcome
		out.Status, out.Code = record.Failed, record.PublishFailed
		rec.Outcome = &out
		if _, err := st.store.Write(j.turn.ID, &rec); err != nil {
			r.problem(st.name, "the record of a turn cannot be written: "+cause(err), "")
		}
		r.emit(Event{Kind: TurnFailed, Agent: st.name, Turn: j.turn.ID, Attempt: j.turn.Attempts, Inputs: pathsOf(j.turn.Inputs), Error: e,
			Message: "the answer is kept and published when that is possible"})
	case news:
		r.problem(st.name, e.File+": "+e.Message, e.Hint)
	}
}

// record writes the record of a published answer, and the turn's end.
func (r *Runner) record(st *agentState, j *job) (more bool) {
	answer := published(j.rec)
	out := record.FileRef{Path: r.rel(j.output), SHA256: hashOf(answer), Bytes: int64(len(answer))}
	j.rec.Outputs = []record.FileRef{out}
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
	r.endStream(st, j, j.output)
	j.turn.State, j.turn.Output, j.turn.OutputSHA = ledger.Done, out.Path, out.SHA256
	j.turn.Code, j.turn.Message = "", ""
	r.close(st, j)
	if j.req != nil {
		if err := r.audit.Append(turn.PublishEvent(j.req, out)); err != nil {
			r.auditProblem(err)
		}
	}
	tokens := j.tokens
	if u := j.rec.Outcome.Usage; u != nil && u.OutputTokens != nil {
		tokens = int(*u.OutputTokens)
	}
	elapsed := r.now().Sub(j.started)
	if j.started.IsZero() {
		elapsed = 0
	}
	r.mu.Lock()
	r.stats.Completed++
	st.rate.add(r.now(), tokens)
	st.history.add(j.turn, j.rec)
	r.mu.Unlock()
	model := ""
	if q := j.rec.Request; q != nil && len(q.PassedOver) > 0 {
		model = q.Model.String()
	}
	r.emit(Event{Kind: TurnFinished, Agent: st.name, Turn: j.turn.ID, Attempt: j.turn.Attempts, Inputs: pathsOf(j.turn.Inputs),
		Output: out.Path, Model: model, Tokens: tokens, TokensPerSecond: perSecond(tokens, elapsed), Elapsed: elapsed})
	return false
}
