//go:build cgo && !nonative

package local

import "time"

// fill puts the next tokens of every running sequence into the batch. It
// reports whether all of them wait for their next token, none for its prompt.
func (e *engine) fill() (all bool) {
	e.batch.clear()
	waiting := 0 // answers that wait for their next token
	for _, s := range e.running {
		s.row, s.batched, s.chooses = -1, 0, false
		s.draft, s.right = s.draft[:0], 0
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
	if waiting < len(e.running) {
		return false
	}
	began := time.Now()
	e.addDrafts()
	e.choosing += time.Since(began)
	return true
}

// addDrafts puts drafts behind the tokens of the batch, as long as pays.
func (e *engine) addDrafts() {
	if !e.drafts || e.running[0].solo {
		return
	}
	choices := 0
	e.lengths = e.lengths[:0]
	for _, s := range e.running {
		if !s.chooses {
			continue
		}
		choices++
		if s.logprobs == 0 {
			before := e.slots.all[s.slot].tokens
			e.seen = append(append(e.seen[:0], before[max(0, len(before)-draftReach):]...), s.pending...)
			if s.lookUp(e.seen, e.tokens); len(s.draft) > 0 {
				e.lengths = append(e.lengths, len(s.draft))
			}
		}
	}
	if len(e.lengths) == 0 {
		return
	}
	most := e.drafter.length(e.batch.len(), choices, e.lengths)
	for _, s := range e.running {
		s.draft = s.draft[:min(len(s.draft), most)]
		s.draftRow = e.batch.len()
		for i, id := range s.draft {
			e.batch.add(id, s.pos+s.batched+i, s.slot, true)
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
			s.row, s.chooses = e.batch.len(), true
		} else if last && s.logprobs > 0 && n >= ahead {
			s.row = e.batch.len()
		}
		e.batch.add(s.pending[i], s.pos+i, s.slot, s.row == e.batch.len())
	}
	s.batched = n
}
