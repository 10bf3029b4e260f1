package runner

import (
	"cmp"
	"slices"

	"agentgraph/model"
	"agentgraph/record"
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
	turn.Exchange
}

// add notes a completed turn.
func (h *history) add(seq int64, rec *record.Record) {
	if !h.loaded {
		return
	}
	e, ok := exchangeOf(rec)
	if !ok {
		return
	}
	h.list = append(h.list, exchange{seq, e})
	slices.SortFunc(h.list, func(a, b exchange) int { return cmp.Compare(a.seq, b.seq) })
	if n := len(h.list); n > 2*h.most {
		h.list = slices.Clone(h.list[n-h.most:])
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
// seq, oldest first.
func (r *Runner) historyOf(st *agentState, n int, seq int64) ([]turn.Exchange, error) {
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
		if e.seq < seq {
			list = append(list, e.Exchange)
		}
	}
	return list[max(len(list)-n, 0):], nil
}

func (r *Runner) loadHistory(st *agentState, n int) error {
	if err := r.ledger.Flush(r.ctx); err != nil {
		return err
	}
	turns, err := r.ledger.LastDone(st.name, n, r.nextSeq.Load()+1)
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
			h.list = append(h.list, exchange{t.Seq, e})
		}
	}
	r.mu.Lock()
	st.history = h
	r.mu.Unlock()
	return nil
}
