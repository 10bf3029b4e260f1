package runner

import (
	"math/rand/v2"
	"slices"
	"strings"

	"agentgraph/record"
	"agentgraph/runner/internal/ledger"
	"agentgraph/turn"
)

// With samples: N an input has N turns. They are claimed together, all or
// none, generate at the same time in one slot of the agent, and publish one
// after the other. From then on each is a turn like any other.

// baseKey is the identity of the first answer to a turn's input.
func baseKey(t ledger.Turn) string {
	base, _, _ := strings.Cut(t.Key, "/")
	return base
}

// group is what the turns that have one slot have in common; empty for a turn
// that has its own.
func (j *job) group() string {
	if j.turn.Samples <= 1 {
		return ""
	}
	return baseKey(j.turn)
}

// takeSlot is called with mu held.
func (st *agentState) takeSlot(j *job) {
	if key := j.group(); key != "" {
		if st.together[key]++; st.together[key] > 1 {
			return
		}
	}
	st.running++
}

// giveSlot is called with mu held.
func (st *agentState) giveSlot(j *job) {
	if key := j.group(); key != "" {
		if st.together[key]--; st.together[key] > 0 {
			return
		}
		delete(st.together, key)
	}
	st.running--
}

// full reports whether all slots are taken. Called with mu held.
func (st *agentState) full() bool { return st.running >= st.current().Settings.Concurrency }

// nextReady is which of the ready turns is next, or less than 0: the first
// or, when all slots are taken, one that shares a slot. Called with mu held.
func (st *agentState) nextReady() int {
	if !st.full() {
		return min(len(st.ready), 1) - 1
	}
	return slices.IndexFunc(st.ready, func(j *job) bool { return st.together[j.group()] > 0 })
}

// missing are the numbers of the answers that an input still has to get, and
// how many there are in all: as many as were asked for when it was claimed
// first, or else n. trace is that of the first claim.
func (r *Runner) missing(agent, key string, n int) (list []int, of int, trace string, err error) {
	turns, err := r.ledger.BySamples(agent, key)
	if err != nil {
		return nil, 0, "", err
	}
	had := map[int]bool{}
	for i, t := range turns {
		if i == 0 {
			n, trace = max(t.Samples, 1), t.Trace
		}
		had[t.Sample] = true
	}
	for i := range n {
		if !had[i] {
			list = append(list, i)
		}
	}
	return list, n, trace, nil
}

// spread claims the turns of an input: the first is the job's, each other has
// one of its own, with a place right after the one before. It reports whether
// there is any: key, which the claim holds, is that of the first answer, and
// each of the others may be claimed already.
func (r *Runner) spread(st *agentState, j *job, key string, turns []ledger.Turn, data [][]byte, files []ledger.File) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if turns[0].Key != key {
		delete(r.openKeys, key)
	}
	turns = slices.DeleteFunc(turns, func(t ledger.Turn) bool { return t.Key != key && r.openKeys[t.Key] })
	for _, t := range turns {
		r.openKeys[t.Key] = true
	}
	if len(turns) == 0 {
		return false
	}
	r.ledger.ClaimAll(turns, data, files)
	st.running-- // the slot changes hands
	j.turn = turns[0]
	st.takeSlot(j)
	j.show()
	if len(turns) == 1 {
		return true
	}
	after := j.place
	at := slices.IndexFunc(st.ready, func(x *job) bool { return x.place == nil || x.turn.Seq > j.turn.Seq })
	if at < 0 {
		at = len(st.ready)
	}
	for _, t := range turns[1:] {
		k := &job{stage: stageRun, turn: t, data: j.data, sizes: j.sizes, files: slices.Clone(j.files)}
		for _, sha := range k.files {
			r.snapshots[sha]++
		}
		if st.removed {
			r.adopt(st, k)
			continue
		}
		if !r.stopping && !st.paused && st.current().Err == nil {
			k.place = st.order.takeAfter(after)
			after = k.place
		}
		st.ready = slices.Insert(st.ready, at, k)
		at++
	}
	r.activate(st)
	r.pump()
	return true
}

// sampled gives the request of one of several answers its seed: that of the
// settings and one more for each answer, or one that is drawn.
func (j *job) sampled(req *turn.Request) {
	if j.turn.Samples <= 1 {
		return
	}
	seed := uint64(rand.Uint32())
	if s := req.Sampling.Seed; s != nil {
		seed = *s + uint64(j.turn.Sample)
	}
	req.Sampling.Seed = &seed
}

// sample says in a record which of several answers it is about.
func (j *job) sample(rec *record.Record) {
	if j.turn.Samples > 1 {
		rec.Sample = &record.Sample{Index: j.turn.Sample, Of: j.turn.Samples}
	}
}
