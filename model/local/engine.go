//go:build cgo && !nonative

package local

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentgraph/model"
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
	threads int // what the context runs with
	// The second worker on masks: todo is the work, next the first that
	// nobody has taken.
	masks, masked chan struct{}
	todo          []*sequence
	next          atomic.Int64
	masksMade     atomic.Int64
	maskCost      time.Duration // of one mask, a moving average
	choosing      time.Duration // between steps: masks that were left and the choice of tokens

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
		total: total, batch: stepTokens, chunk: stepTokens, seqs: seqs, outputs: max(seqs, cfg.Parallel),
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

// fill puts the next tokens of every running sequence into the batch.
func (e *engine) fill() {
	e.batch.clear()
	waiting := 0 // answers that wait for their next token
	for _, s := range e.running {
		s.row, s.batched, s.choosing = -1, 0, false
		if !s.prefilling() {
			e.put(s, stepTokens-e.batch.len())
			waiting++
		}
	}
	room := stepTokens - e.batch.len()
	if waiting > 0 {
		room = min(room, prefillTokens)
	}
	for _, s := range e.running {
		if s.prefilling() && room > 0 {
			e.put(s, room)
			room -= s.batched
		}
	}
}

// put adds at most room pending tokens of a sequence. Logits are asked for
// only where the next token is chosen, or where somebody wants to know them.
func (e *engine) put(s *sequence, room int) {
	n := min(len(s.pending), room)
	ahead := len(s.prompt) - s.pos // of the prompt, still to decode
	if e.cfg.Without.ForcedBatch || s.logprobs > 0 {
		n = min(n, max(1, ahead))
	}
	for i := range n {
		last := i == n-1
		if last && n == len(s.pending) && !s.draining {
			s.row, s.choosing = e.batch.len(), true
		} else if last && s.logprobs > 0 && n >= ahead {
			s.row = e.batch.len()
		}
		e.batch.add(s.pending[i], s.pos+i, s.slot, s.row == e.batch.len())
	}
	s.batched = n
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
	e.fill()
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
	began = time.Now()
	e.finishMasks()
	for _, s := range e.running {
		e.decoded(s, took)
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
	e.slots.decoded(s.slot, s.pending[:s.batched])
	s.pos += s.batched
	s.pending = s.pending[:copy(s.pending, s.pending[s.batched:])]
	switch {
	case s.row < 0:
		return
	case s.choosing:
		e.choose(s)
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

// guess takes the likeliest token of all for the next one where the matcher
// allows it: for a greedy answer that is the token a mask would have led to,
// and asking about one token costs a fraction of a mask.
func (e *engine) guess(s *sequence) {
	if e.cfg.Without.Guess || s.thinking != noThought || !s.sampler.greedy() {
		return
	}
	began := time.Now()
	id, err := e.cells.sample(s.row, nil, &s.sampler)
	s.stats.Sample += time.Since(began)
	// Tokens that are more than their text are left to the mask.
	if err != nil || e.tokens.special[id] || e.ends(id) || e.barred != nil && e.barred[id/32]>>(id%32)&1 == 1 {
		return
	}
	began = time.Now()
	s.guessed, s.guess = s.matcher.Allows(uint32(id)), id
	s.stats.Mask += time.Since(began)
}

// choose picks the next token of a sequence from the step's logits.
func (e *engine) choose(s *sequence) {
	if s.guessed {
		s.guessed = false
		e.chosen(s, s.guess)
		return
	}
	s.allowed()
	if s.maskErr != nil {
		if s.ctx.Err() != nil {
			s.maskErr = errCancelled
		}
		e.end(s, s.maskErr)
		return
	}
	mask := s.mask
	if s.thinking == inThought {
		if mask = e.free; s.matcher != nil {
			mask = e.noEnd
		}
	} else if e.endless && mask == nil {
		mask = e.noEnd
	} else if e.barred != nil {
		if mask == nil {
			mask = e.free
		} else {
			for i, w := range e.barred {
				mask[i] &^= w
			}
		}
	}
	began := time.Now()
	id, err := e.cells.sample(s.row, mask, &s.sampler)
	s.stats.Sample += time.Since(began)
	if err != nil {
		e.end(s, err)
		return
	}
	if e.onChoice != nil {
		e.onChoice(s, id, e.cells.margin(s.row, mask, id))
	}
	e.chosen(s, id)
}

// chosen goes on with the next token of a sequence.
func (e *engine) chosen(s *sequence, id int32) {
	if !s.answered {
		s.answered = true
		s.stats.FirstToken = time.Since(s.start)
	}
	if e.ends(id) {
		s.finish = model.Stop
		s.report()
		e.end(s, nil)
		return
	}
	over := s.accept(e.tokens, id)
	e.note(s, id)
	s.report()
	if over && !s.drains() {
		e.end(s, s.err)
	}
}

// ends reports whether a token ends an answer.
func (e *engine) ends(id int32) bool {
	for _, t := range e.tokens.ends {
		if int32(t) == id {
			return true
		}
	}
	return false
}

// startMasks lets the masks of this step's choices be computed while it
// decodes: they depend on earlier tokens only. It takes a core that the
// decoding does not use; with none to spare it would hold the step up.
func (e *engine) startMasks() bool {
	if e.cfg.Without.MaskOverlap || e.threads >= runtime.GOMAXPROCS(0) || !e.listMasks() {
		return false
	}
	e.masks <- struct{}{}
	return true
}

// shareMasks is the work on masks, estimated, from which on a second core is
// asked for help: waking it, and its looking for more to do when the next step
// has begun, cost the step more than a few masks do.
const shareMasks = time.Millisecond

// finishMasks computes the masks that are still to do and that no guess saves,
// on two cores where they take long.
func (e *engine) finishMasks() {
	if !e.listMasks() {
		return
	}
	if e.onChoice == nil { // who watches choices wants to know what else was allowed
		for _, s := range e.todo {
			e.guess(s)
		}
		e.todo = slices.DeleteFunc(e.todo, func(s *sequence) bool { return s.guessed })
		if len(e.todo) == 0 {
			return
		}
	}
	n := len(e.todo)
	share := n > 1 && time.Duration(n)*e.maskCost >= shareMasks && !e.cfg.Without.MaskOverlap
	began := time.Now()
	if share {
		e.masks <- struct{}{}
	}
	e.workMasks()
	cost := time.Since(began) / time.Duration(n)
	if share {
		<-e.masked
		cost = 2 * time.Since(began) / time.Duration(n)
	}
	e.maskCost += (cost - e.maskCost) / 8
}

// listMasks lists the sequences whose mask is needed and not there.
func (e *engine) listMasks() bool {
	clear(e.todo)
	e.todo = e.todo[:0]
	e.next.Store(0)
	for _, s := range e.running {
		if s.choosing && s.needsMask() {
			e.todo = append(e.todo, s)
		}
	}
	return len(e.todo) > 0
}

// workMasks takes one sequence of the list after the other.
func (e *engine) workMasks() {
	for {
		i := int(e.next.Add(1)) - 1
		if i >= len(e.todo) {
			return
		}
		e.todo[i].allowed()
		e.masksMade.Add(1)
	}
}

func (e *engine) maskLoop() {
	for range e.masks {
		e.workMasks()
		e.masked <- struct{}{}
	}
}
