//go:build cgo && !nonative

package local

import (
	"time"

	"agentgraph/model"
)

// inCache takes note of n pending tokens that are decoded.
func (e *engine) inCache(s *sequence, n int) {
	e.slots.decoded(s.slot, s.pending[:n])
	s.pos += n
	s.pending = s.pending[:copy(s.pending, s.pending[n:])]
}

// chooseAll picks the next token of a sequence, and goes on while what comes
// of it are the tokens of its draft, which are decoded already.
func (e *engine) chooseAll(s *sequence) {
	drafted := len(s.draft)
	right, goesOn := 0, true
	for {
		if goesOn = e.choose(s); !goesOn {
			break // s is its caller's again
		}
		n := common(s.pending, s.draft[right:])
		if n == 0 {
			break
		}
		e.inCache(s, n)
		right += n
		s.right = right
		s.stats.DraftedTokens++
		if len(s.pending) > 0 {
			break
		}
		s.row = s.draftRow + right - 1
	}
	if drafted > 0 {
		e.drafter.judged(drafted, right)
	}
	if goesOn {
		e.undraft(s)
	}
}

// undraft takes back what is left of a draft.
func (e *engine) undraft(s *sequence) {
	if s.right < len(s.draft) {
		began := time.Now()
		e.cells.remove(s.slot, s.pos)
		e.undoing += time.Since(began)
	}
	s.draft, s.right = s.draft[:0], 0
}

// mostGuesses is how many tokens may follow each other without a mask: with
// each mask the matcher has its bounds on the work of a step anew.
const mostGuesses = 256

// guess takes the likeliest token of all for the next one where the matcher
// allows it: for a greedy answer that is the token a mask would have led to,
// and asking about one token costs a fraction of a mask.
func (e *engine) guess(s *sequence) {
	if e.cfg.Without.Guess || s.thinking != noThought || !s.sampler.greedy() || s.guesses == mostGuesses {
		return
	}
	if e.onChoice != nil {
		return // who watches choices wants to know what else was allowed
	}
	began := time.Now()
	id, err := e.cells.sample(s.row, nil, &s.sampler)
	s.stats.Sample += time.Since(began)
	// Tokens that are more than their text are left to the mask.
	if err != nil || e.tokens.special[id] || e.tokens.isEnd(id) || e.barred != nil && e.barred[id/32]>>(id%32)&1 == 1 {
		return
	}
	began = time.Now()
	if s.guessed, s.guess = s.matcher.Allows(uint32(id)), id; s.guessed {
		s.guesses++
	}
	s.stats.Mask += time.Since(began)
}

// choose picks the next token of a sequence from the step's logits; false when
// that ends it.
func (e *engine) choose(s *sequence) bool {
	if !s.guessed && s.needsMask() {
		e.guess(s) // behind a draft; before, finishMasks has done it
	}
	if s.guessed {
		s.guessed = false
		return e.chosen(s, s.guess)
	}
	s.allowed()
	if s.maskErr != nil {
		if s.ctx.Err() != nil {
			s.maskErr = errCancelled
		}
		e.end(s, s.maskErr)
		return false
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
		return false
	}
	if e.onChoice != nil {
		e.onChoice(s, id, e.cells.margin(s.row, mask, id))
	}
	return e.chosen(s, id)
}

// chosen goes on with the next token of a sequence; false when it has ended.
func (e *engine) chosen(s *sequence, id int32) bool {
	if !s.answered {
		s.answered = true
		s.stats.FirstToken = time.Since(s.start)
	}
	if e.tokens.isEnd(id) {
		s.finish = model.Stop
		s.report()
		e.end(s, nil)
		return false
	}
	over := s.accept(e.tokens, id)
	e.note(s, id)
	s.report()
	if over && !s.drains() {
		e.end(s, s.err)
		return false
	}
	return true
}
