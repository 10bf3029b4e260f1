package runner

import (
	"cmp"
	"slices"

	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/runner/internal/ledger"
	"agentgraph/turn"
)

// history keeps the last exchanges of one agent in memory. Guarded by
// Runner.mu.
type history struct {
	loaded bool
	most   int
	list   []exchange // by seq
}

type exchange struct {
	seq int64
	key string // of the turn
	turn.Exchange
}

// add notes a completed turn; of several answers to one input, the first.
func (h *history) add(t ledger.Turn, rec *record.Record) {
	if !h.loaded || t.Sample > 0 {
		return
	}
	e, ok := exchangeOf(rec)
	if !ok {
		return
	}
	h.list = append(h.list, exchange{t.Seq, t.Key, e})
	slices.SortFunc(h.list, func(a, b exchange) int { return cmp.Compare(a.seq, b.seq) })
	if n := len(h.list); n > 2*(h.most+1) {
		h.list = slices.Clone(h.list[n-h.most-1:])
	}
}

// exchangeOf is the user's text and the answer of a turn.
func exchangeOf(rec *record.Record) (turn.Exchange, bool) {
	if rec.Request == nil || rec.Outcome == nil || rec.Outcome.Output == nil {
		return turn.Exchange{}, false
	}
	// The turn's own user message is the last one; a repair asks after it.
	answer := *rec.Outcome.Output
	for i := len(rec.Request.Messages) - 1; i >= 0; i-- {
		m := rec.Request.Messages[i]
		if rec.Repair != nil && rec.Repair.Feedback != nil && m.Content == *rec.Repair.Feedback {
			continue
		}
		if m.Role == model.User {
			return turn.Exchange{User: m.Content, Answer: answer}, true
		}
	}
	return turn.Exchange{}, false
}

// historyOf returns the last n exchanges of an agent that were claimed before
// a turn, oldest first; of several answers to one input none sees another.
func (r *Runner) historyOf(st *agentState, n int, t ledger.Turn) ([]turn.Exchange, error) {
	r.mu.Lock()
	loaded := st.history.loaded && st.history.most >= n
	r.mu.Unlock()
	if !loaded {
		if err := r.loadHistory(st, n); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []turn.Exchange
	for _, e := range st.history.list {
		if e.seq < t.Seq && (t.Samples <= 1 || e.key != baseKey(t)) {
			list = append(list, e.Exchange)
		}
	}
	return list[max(len(list)-n, 0):], nil
}

func (r *Runner) loadHistory(st *agentState, n int) error {
	if err := r.ledger.Flush(r.ctx); err != nil {
		return err
	}
	turns, err := r.ledger.LastDone(st.name, n+1, r.nextSeq.Load()+1)
	if err != nil {
		return err
	}
	h := history{loaded: true, most: n}
	for _, t := range turns {
		rec, err := st.store.Read(t.ID)
		if err != nil {
			return err
		}
		if e, ok := exchangeOf(rec); ok {
			h.list = append(h.list, exchange{t.Seq, t.Key, e})
		}
	}
	r.mu.Lock()
	st.history = h
	r.mu.Unlock()
	return nil
}
