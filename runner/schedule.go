package runner

import (
	"context"
	"slices"
	"time"

	"agentgraph/output"
	"agentgraph/record"
	"agentgraph/runner/internal/ledger"
	"agentgraph/turn"
)

// candidate is a file, or a set of files, that waits for its claim.
type candidate struct {
	in      *intake
	name    string
	print   int64
	modTime time.Time
	// set has the parts of a join: all turn; in, name and print are unused.
	set []*part
}

// stage says how far a turn has come.
type stage int

const (
	stageClaim   stage = iota // its input is not fixed yet
	stageRun                  // an answer is to be generated
	stagePublish              // the answer is there, the file is not
	stageRecord               // the file is there, the record is not
	stageEnd                  // there will be no file; the record is not there
)

// job is a turn that the runner has work on.
type job struct {
	stage stage
	cand  *candidate // with stageClaim
	turn  ledger.Turn
	data  [][]byte // the inputs' bytes; nil: in the ledger
	sizes []int64  // of inputs whose bytes were too many to keep
	files []string // snapshot files in use, by hash

	reserve int // answers to one input, with stageClaim; Seq and those after it are theirs
	place   *place
	slot    bool        // holds a slot of its agent
	onModel *modelState // holds a slot of this model
	closing bool        // counts in Runner.closing
	refused bool        // it was refused before

	req     *turn.Request
	rec     *record.Record
	format  string // of the answer's name; empty ext: no schema file
	ext     string
	pending *output.Pending // with an intent in the ledger
	output  string          // path of the published answer, absolute
	tries   int             // of the publish or the record
	told    string          // why the last publish failed, as people were told
	park    func()          // what becomes of it when the worker has left; with mu held
	started time.Time
	stream  *stream
	ctx     context.Context // of the attempt

	// What others may see, with mu held.
	view     TurnStatus
	since    time.Time
	tokens   int
	progress time.Time // of the last progress event
}

// show lets others see a turn. Called with mu held.
func (j *job) show() {
	j.view = TurnStatus{Turn: j.turn.ID, Inputs: pathsOf(j.turn.Inputs), Attempt: j.turn.Attempts + 1}
}

// maxClosing bounds the turns past their publish whose records are still being
// written.
const maxClosing = 64

// activate notes that an agent has work. Called with mu held.
func (r *Runner) activate(st *agentState) {
	if !st.active {
		st.active = true
		r.active = append(r.active, st)
	}
}

// pump starts what can be started, one turn per agent and round, so that a
// flood in one agent does not hold up another: an agent that has started a turn
// goes to the end of the line, one that cannot start keeps its place. Called
// with mu held.
func (r *Runner) pump() {
	for i := 0; i < len(r.active) && !r.stopping && r.running < r.cfg.MaxRunning; {
		st := r.active[i]
		if r.closing >= maxClosing && len(st.ready) == 0 {
			i++
			continue
		}
		started := r.startOne(st)
		more := len(st.queue)+len(st.ready) > 0
		if !started && more {
			i++
			continue
		}
		r.active = slices.Delete(r.active, i, i+1)
		st.active = false
		if more {
			r.activate(st)
		}
		if started {
			i = 0 // what it waited for may be there for those before it
		}
	}
	r.checkIdle()
}

// startOne starts one turn of an agent if it may. Called with mu held.
func (r *Runner) startOne(st *agentState) bool {
	if st.removed || st.paused || st.current().Err != nil {
		return false
	}
	// What needs no model needs no slot either.
	for i, j := range st.ready {
		if j.stage > stageRun {
			st.ready = slices.Delete(st.ready, i, i+1)
			r.launch(st, j)
			return true
		}
	}
	next := st.nextReady()
	// One that has its place goes on in any case: others wait for it.
	if r.closing >= maxClosing && (next < 0 || st.ready[next].place == nil) {
		return false
	}
	if next < 0 && (len(st.queue) == 0 || st.full()) {
		return false
	}
	m := r.modelState(st)
	if m.running >= m.room(st) {
		return false
	}
	var j *job
	if next >= 0 {
		j = st.ready[next]
		st.ready = slices.Delete(st.ready, next, next+1)
	} else {
		j = &job{stage: stageClaim, cand: st.queue[0], reserve: max(st.current().Settings.Samples, 1)}
		st.queue[0] = nil
		st.queue = st.queue[1:]
		j.turn.Seq = r.nextSeq.Add(int64(j.reserve)) - int64(j.reserve) + 1
	}
	j.slot, j.onModel = true, m
	m.running++
	st.takeSlot(j)
	r.running++
	r.launch(st, j)
	return true
}

func (r *Runner) launch(st *agentState, j *job) {
	if j.place == nil {
		j.place = st.order.take()
	}
	if j.turn.ID != "" {
		j.show()
	}
	st.jobs[j] = true
	r.jobs++
	r.claims++
	r.wg.Add(1)
	go r.work(st, j)
}

// modelState is called with mu held.
func (r *Runner) modelState(st *agentState) *modelState {
	spec := st.current().Settings.ModelSpec
	m := r.models[spec.Name]
	if m == nil {
		m = &modelState{}
		if r.cfg.Models == nil {
			m.capacity = r.cfg.MaxRunning
		}
		r.models[spec.Name] = m
	}
	return m
}

// room is how many turns run at once on an agent's model: what the settings
// say, what the model says, or one until it has said so. Called with mu held.
func (m *modelState) room(st *agentState) int {
	if n := st.current().Settings.ModelSpec.Parallel; n > 0 {
		return n
	}
	return max(m.capacity, 1)
}

// freeModel gives back the model's slot once the answer is there, so that the
// next turn generates while this one is published. Called with mu held.
func (r *Runner) freeModel(j *job) {
	if j.onModel == nil {
		return
	}
	j.onModel.running--
	j.onModel = nil
}

// freeSlot gives back the slots of the agent and the model. Called with mu
// held.
func (r *Runner) freeSlot(st *agentState, j *job) {
	r.freeModel(j)
	if j.slot {
		j.slot = false
		st.giveSlot(j)
		r.running--
	}
}

// leave ends a job's work for now: its slot and its place are free.
func (r *Runner) leave(st *agentState, j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaveLocked(st, j)
}

func (r *Runner) leaveLocked(st *agentState, j *job) {
	r.freeSlot(st, j)
	if j.closing {
		j.closing = false
		r.closing--
	}
	st.order.give(j.place)
	j.place = nil
	if st.jobs[j] {
		delete(st.jobs, j)
		r.jobs--
	}
	if park := j.park; park != nil {
		j.park = nil
		park()
	}
	r.activate(st)
	r.pump()
}

// later brings a job back after a pause. Called with mu held.
func (r *Runner) later(st *agentState, j *job, pause time.Duration) {
	if st.removed {
		r.adopt(st, j)
		return
	}
	r.waitingTurns++
	st.waiting[j] = time.AfterFunc(pause, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, ok := st.waiting[j]; !ok {
			return
		}
		r.wakeJob(st, j)
		r.pump()
	})
}

// wakeJob ends a job's pause. Called with mu held.
func (r *Runner) wakeJob(st *agentState, j *job) {
	if t, ok := st.waiting[j]; ok {
		t.Stop()
		delete(st.waiting, j)
		r.waitingTurns--
	}
	if st.removed {
		return
	}
	st.ready = append(st.ready, j)
	r.activate(st)
}

// checkIdle tells who waits for it that nothing is under way. Called with mu
// held.
func (r *Runner) checkIdle() {
	if r.untold && r.looking == 0 && !r.stopping {
		r.untold = false
		r.wg.Add(1)
		go func() { // the lock is held, and who is told may take their time
			defer r.wg.Done()
			r.emit(Event{Kind: Ready})
		}()
	}
	if !r.busy() {
		select {
		case r.idle <- struct{}{}:
		default:
		}
	}
}

// busy reports whether anything is under way or will be by itself. Called with
// mu held.
func (r *Runner) busy() bool {
	if r.looking > 0 || r.rechecking > 0 || r.reloading || r.jobs > 0 {
		return true
	}
	if r.stopping {
		return false
	}
	if r.waitingFiles > 0 || r.waitingTurns > 0 {
		return true
	}
	for _, st := range r.active {
		if !st.paused && !st.removed && st.current().Err == nil && len(st.queue)+len(st.ready) > 0 {
			return true
		}
	}
	return false
}
