//go:build cgo && !nonative

package local

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// engine owns the llama.cpp context. Its goroutine takes sequences from the
// queue and runs all it has room for, one step after the other.
type engine struct {
	cells  *cells
	slots  *slots
	tokens *tokens
	cfg    Config
	reuse  bool

	mu      sync.Mutex
	queue   []*sequence
	closing bool
	wake    chan struct{}
	stopped chan struct{} // closed when the goroutine has ended
	started bool

	running []*sequence
	batch   batch
	barred  []uint32 // mask of tokens never to be generated, nil: none
	free    []uint32 // mask of free text where some are barred
	noEnd   []uint32 // mask of reasoning before a constrained answer
	pace    *pace
	drafter *drafter
	drafts  bool    // the model and the settings allow them
	seen    []int32 // buffers of what drafts come from, and of their lengths
	lengths []int
	undoing time.Duration // what the step's drafts cost behind it
	threads int           // what the context runs with
	// The second worker on masks: todo is the work, next the first that
	// nobody has taken.
	masks, masked chan struct{}
	todo          []*sequence
	next          atomic.Int64
	masksMade     atomic.Int64
	maskCost      time.Duration // of one mask, a moving average
	choosing      time.Duration // between steps: masks that were left, the choice of tokens, drafts

	// inStep are the sequences of the running step; when the contexts of all
	// of them have ended, the step is aborted.
	stepMu sync.Mutex
	inStep []*sequence

	// onChoice sees every choice in tests: the sequence, the token, and how
	// near the next best was.
	onChoice func(s *sequence, id int32, margin float32)
	// endless lets free text go on to its limit, in benchmarks.
	endless bool
}

// Sizes of a step, in tokens: what is decoded at once, and how much of that
// may be prompts while other answers wait for their next token.
const (
	stepTokens    = 512
	prefillTokens = 192
)

// idlePoll is how long the threads of a context look for the next step before
// they sleep, as ggml counts: some milliseconds. Masks and choices between two
// steps take less; waking a thread takes longer than both.
const idlePoll = 1

func poolPoll(cfg Config) int {
	if cfg.Without.ThreadPool {
		return -1
	}
	return idlePoll
}

func newEngine(w *weights, cfg Config) (*engine, error) {
	e := &engine{
		cfg: cfg, wake: make(chan struct{}, 1), stopped: make(chan struct{}),
		masks: make(chan struct{}), masked: make(chan struct{}),
		reuse: !cfg.Without.PrefixReuse && !w.stateful(),
	}
	seqs := cfg.Parallel
	if e.reuse {
		seqs += max(4, min(cfg.Parallel, 8))
	}
	total := cfg.Context * cfg.Parallel
	if cfg.Without.UnifiedCache {
		// llama.cpp divides the context evenly.
		total = cfg.Context * seqs
	}
	c, err := newCells(w, cellOptions{
		total: total, batch: stepTokens, chunk: stepTokens, seqs: seqs, outputs: max(seqs, cfg.Parallel) + draftStep,
		threads: cfg.Threads, flash: !cfg.Without.FlashAttention, unified: !cfg.Without.UnifiedCache,
		kernels: !cfg.Without.Kernels, poll: poolPoll(cfg),
	})
	if err != nil {
		return nil, err
	}
	e.cells = c
	e.threads, e.pace = cfg.Threads, newPace(cfg.Threads)
	if cfg.Without.Pace || cfg.GPULayers > 0 {
		e.pace.choices = e.pace.choices[:1]
	}
	e.drafter, e.drafts = newDrafter(), !cfg.Without.Drafts && !w.stateful()
	e.slots = newSlots(seqs, c.total())
	return e, nil
}

func (e *engine) start(t *tokens) {
	e.tokens = t
	words := (len(t.pieces) + 31) / 32
	e.noEnd = make([]uint32, words)
	for i := range e.noEnd {
		e.noEnd[i] = ^uint32(0)
	}
	for _, id := range append(append([]uint32(nil), t.ends...), t.suppress...) {
		e.noEnd[id/32] &^= 1 << (id % 32)
	}
	if len(t.suppress) > 0 {
		e.barred, e.free = make([]uint32, words), make([]uint32, words)
		for i := range e.free {
			e.free[i] = ^uint32(0)
		}
		for _, id := range t.suppress {
			e.barred[id/32] |= 1 << (id % 32)
		}
		for i := range e.free {
			e.free[i] &^= e.barred[i]
		}
	}
	e.started = true
	go e.maskLoop()
	go e.loop()
}

// stop ends the engine: running and waiting sequences fail with errClosed.
func (e *engine) stop() {
	if e == nil {
		return
	}
	if e.started {
		e.mu.Lock()
		e.closing = true
		e.mu.Unlock()
		e.cells.abort(true)
		e.nudge()
		<-e.stopped
	}
	e.cells.free()
}

func (e *engine) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// submit hands a sequence over; false after stop.
func (e *engine) submit(s *sequence) bool {
	s.submitted = time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return false
	}
	e.queue = append(e.queue, s)
	e.nudge()
	return true
}

func (e *engine) loop() {
	defer close(e.stopped)
	defer close(e.masks)
	for {
		if e.admit() {
			for _, s := range e.running {
				e.end(s, errClosed)
			}
			return
		}
		if len(e.running) == 0 {
			<-e.wake
			continue
		}
		e.step()
		e.sweep()
	}
}

// admit starts waiting sequences while there is room; true when closing.
func (e *engine) admit() (closing bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	keep := e.queue[:0]
	for _, s := range e.queue {
		switch {
		case e.closing:
			e.refuse(s, errClosed)
		case s.ctx.Err() != nil:
			e.refuse(s, errCancelled)
		case len(keep) > 0 && (s.solo || keep[0].solo), !e.roomFor(s):
			// In order: nothing overtakes a sequence that wants to be alone.
			keep = append(keep, s)
		default:
			e.begin(s)
		}
	}
	clear(e.queue[len(keep):])
	e.queue = keep
	return e.closing
}

// roomFor reports whether a sequence may start now.
func (e *engine) roomFor(s *sequence) bool {
	if len(e.running) == 0 {
		return true
	}
	if s.solo || e.running[0].solo || len(e.running) >= e.cfg.Parallel {
		return false
	}
	if !e.reuse {
		return true
	}
	// A prompt that is being decoded right now and begins alike is worth
	// waiting for: after its last chunk the common part is shared.
	for _, r := range e.running {
		if r.prefilling() && common(r.prompt, s.prompt)-common(e.slots.all[r.slot].tokens, s.prompt) >= sharedAtLeast {
			return false
		}
	}
	return true
}

// sharedAtLeast is the common part of two prompts, in tokens, for which one
// waits a step for the other.
const sharedAtLeast = 24

func (e *engine) refuse(s *sequence, err error) {
	s.err = err
	s.stats.Queued = time.Since(s.submitted)
	s.release()
	close(s.done)
}

// begin gives a sequence its slot and its first tokens.
func (e *engine) begin(s *sequence) {
	s.admitted = time.Now()
	s.stats.Queued = s.admitted.Sub(s.submitted)
	if s.solo {
		// The same cells in the same order every time.
		e.slots.clear()
		e.cells.clear()
	}
	s.slot, s.pos = e.slots.take(e.cells, s.prompt, e.reuse && !s.solo)
	s.stats.ReusedTokens = s.pos
	s.pending = append(s.pending, s.prompt[s.pos:]...)
	if s.matcher != nil {
		s.mask = make([]uint32, (len(e.tokens.pieces)+31)/32)
	}
	m := s.matcher
	s.unwatch = context.AfterFunc(s.ctx, func() {
		if m != nil {
			m.Cancel()
		}
		e.abortIfAlone()
	})
	e.running = append(e.running, s)
	if s.matcher != nil && s.thinking == noThought && s.force(e.tokens) && !s.drains() {
		e.end(s, s.err)
		e.running = e.running[:len(e.running)-1]
	}
}

// end closes a sequence; err nil is a finished answer.
func (e *engine) end(s *sequence, err error) {
	s.unwatch()
	s.err = err
	e.undraft(s)
	e.slots.give(e.cells, s.slot, e.reuse && !s.solo)
	s.release()
	close(s.done)
}

// sweep takes ended sequences out of the running ones.
func (e *engine) sweep() {
	keep := e.running[:0]
	for _, s := range e.running {
		select {
		case <-s.done:
		default:
			keep = append(keep, s)
		}
	}
	clear(e.running[len(keep):])
	e.running = keep
}

// abortIfAlone ends the running step early when nobody waits for it.
func (e *engine) abortIfAlone() {
	e.stepMu.Lock()
	defer e.stepMu.Unlock()
	if len(e.inStep) > 0 && allEnded(e.inStep) {
		e.cells.abort(true)
	}
}

func allEnded(list []*sequence) bool {
	for _, s := range list {
		if s.ctx.Err() == nil {
			return false
		}
	}
	return true
}

// enterStep tells watchers what runs; false when nothing should. A context
// that ends before is seen here, one that ends after aborts the step.
func (e *engine) enterStep() bool {
	e.stepMu.Lock()
	e.cells.abort(false)
	e.inStep = append(e.inStep[:0], e.running...)
	wanted := !allEnded(e.inStep)
	e.stepMu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	return wanted && !e.closing
}

func (e *engine) leaveStep() {
	e.stepMu.Lock()
	clear(e.inStep)
	e.inStep = e.inStep[:0]
	e.stepMu.Unlock()
}

func (e *engine) step() {
	for _, s := range e.running {
		if s.ctx.Err() != nil {
			e.end(s, errCancelled)
		}
	}
	e.sweep()
	if len(e.running) == 0 {
		return
	}
	choosing := e.fill()
	e.slots.room(e.cells, e.batch.len())
	if !e.enterStep() {
		e.leaveStep()
		return
	}
	e.setThreads()
	began := time.Now()
	overlap := e.startMasks()
	err := e.cells.decode(&e.batch)
	took := time.Since(began)
	if overlap {
		<-e.masked
	}
	e.leaveStep()
	if err != nil {
		e.failed(err)
		return
	}
	if !e.running[0].solo {
		e.pace.done(e.batch.len(), took)
	}
	e.undoing = 0
	began = time.Now()
	e.finishMasks()
	for _, s := range e.running {
		e.decoded(s, took)
	}
	if choosing {
		e.drafter.took(e.batch.len(), took+e.undoing)
	}
	e.choosing += time.Since(began)
}

// failed ends what ran in a step that failed.
func (e *engine) failed(err error) {
	if errors.Is(err, errAborted) {
		e.forget()
		return
	}
	for _, s := range e.running {
		e.end(s, err)
	}
	e.slots.clear()
	e.cells.clear()
}

// decoded takes note of the tokens of a sequence that the step has decoded,
// and chooses its next.
func (e *engine) decoded(s *sequence, took time.Duration) {
	if s.prefilling() {
		s.stats.Prefill += took
	} else {
		s.stats.Decode += took
	}
	e.inCache(s, s.batched)
	switch {
	case s.row < 0:
		return
	case s.chooses:
		e.chooseAll(s)
		return
	}
	e.note(s, s.pending[0])
	if s.draining && len(s.pending) <= 1 {
		e.end(s, s.err)
	}
}

// setThreads gives the step as many threads as are fastest now; alone it is
// always the same number.
func (e *engine) setThreads() {
	n := e.cfg.Threads
	if !e.running[0].solo {
		n = e.pace.threads(e.batch.len())
	}
	if n != e.threads {
		e.cells.threads(n)
		e.threads = n
	}
}

// forget takes back what an aborted step may have left in the cache.
func (e *engine) forget() {
	for _, s := range e.running {
		if s.batched > 0 && !e.cells.remove(s.slot, s.pos) {
			e.end(s, fmt.Errorf("the step was aborted and this model cannot take it back"))
			e.slots.drop(e.cells, s.slot)
		}
	}
}
