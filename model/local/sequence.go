//go:build cgo && !nonative

package local

import (
	"context"
	"errors"
	"strings"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

var errCancelled = errors.New("cancelled")

// sequence is one answer on its way. Until submit it belongs to the caller,
// then to the engine, and after done is closed to the caller again.
type sequence struct {
	ctx      context.Context
	start    time.Time // of the call
	prompt   []int32
	matcher  *constraint.Matcher // nil: free text
	sampler  sampler
	seed     *uint64
	limit    int // most answer tokens
	solo     bool
	logprobs int // most tokens to tell the probabilities of, 0: none at all
	progress func(model.Progress)
	done     chan struct{}

	submitted, admitted time.Time

	slot     int     // its sequence in the cache
	pos      int     // positions decoded
	pending  []int32 // tokens to decode next
	batched  int     // how many of pending the running step decodes
	row      int     // batch entry with its logits, -1: none
	chooses  bool    // the logits at row decide about the next token
	draft    []int32 // tokens that the running step decodes behind pending
	draftRow int     // batch entry of the first of them
	right    int     // how many of them were chosen
	mask     []uint32
	masked   bool // mask is that of the next token
	maskErr  error
	guess    int32 // the next token where guessed is true
	guessed  bool
	guesses  int      // since the last mask
	forced   []uint32 // buffer of forced tokens and of drafts
	// marks are the special tokens that are parts of a call, and of its text.
	marks map[int32]bool

	reasoning
	text   answerText
	tokens int
	told
	answered bool // has its first token
	stats    model.Stats
	finish   model.FinishReason
	err      error
	unwatch  func() bool // stops watching ctx
}

// release frees what the sequence holds in the engine of masks.
func (s *sequence) release() {
	if s.matcher != nil {
		s.matcher.Close()
		s.matcher = nil
	}
}

// prefilling is true until the prompt is decoded.
func (s *sequence) prefilling() bool { return !s.answered }

// needsMask reports whether the next choice waits for a mask.
func (s *sequence) needsMask() bool {
	return s.matcher != nil && !s.masked && s.thinking != inThought
}

// allowed computes the mask of the next token, once.
func (s *sequence) allowed() {
	if !s.needsMask() {
		return
	}
	began := time.Now()
	s.maskErr = s.matcher.Mask(s.mask)
	s.masked, s.guesses = true, 0
	s.mayThink()
	s.stats.Mask += time.Since(began)
}

// take appends a chosen or forced token to the answer.
func (s *sequence) take(t *tokens, id int32) {
	s.add(id)
	s.tell(true)
	switch {
	case !t.special[id]:
		s.text.add(s.trimStart(t.pieces[id]))
	case s.marks[id]:
		s.text.add(s.trimStart(t.pieces[id][1:]))
	}
}

// lookUp drafts what may follow the tokens seen, as far as the answer may be
// that long and, outside a thought, the grammar would take it.
func (s *sequence) lookUp(seen []int32, t *tokens) {
	s.draft = lookBack(s.draft[:0], seen, s.limit-s.tokens-1) // one more is chosen behind it
	for i, id := range s.draft {
		if t.isEnd(id) {
			s.draft = s.draft[:i]
			break
		}
	}
	if s.matcher == nil || s.thinking != noThought || len(s.draft) == 0 {
		return
	}
	began := time.Now()
	s.forced = s.forced[:0]
	for _, id := range s.draft {
		s.forced = append(s.forced, uint32(id))
	}
	s.draft = s.draft[:s.matcher.Allowed(s.forced)]
	s.stats.Mask += time.Since(began)
}

// accept tells the matcher about a chosen token and adds what it forces.
// It reports whether the answer is over.
func (s *sequence) accept(t *tokens, id int32) bool {
	s.masked = false
	if s.thinking != noThought {
		if thought, over := s.think(t, id); thought {
			return over
		}
	}
	s.take(t, id)
	if s.matcher == nil {
		return s.atLimit()
	}
	if s.err = s.matcher.Accept(uint32(id)); s.err != nil {
		return true
	}
	return s.complete() || s.atLimit() || s.force(t)
}

// force adds the tokens that the grammar leaves no choice about.
func (s *sequence) force(t *tokens) bool {
	began := time.Now()
	defer func() { s.stats.Mask += time.Since(began) }()
	next, err := s.matcher.Forced(s.forced)
	if err != nil {
		s.err = err
		return true
	}
	s.forced = next
	if len(next) > s.limit-s.tokens {
		next = next[:s.limit-s.tokens]
	}
	if len(next) == 0 {
		return false
	}
	if s.err = s.matcher.Accept(next...); s.err != nil {
		return true
	}
	for _, id := range next {
		s.take(t, int32(id))
	}
	s.stats.ForcedTokens += len(next)
	return s.complete() || s.atLimit()
}

// complete reports that the grammar has reached its end.
func (s *sequence) complete() bool {
	if !s.matcher.Stopped() {
		return false
	}
	s.finish = model.Stop
	return true
}

func (s *sequence) atLimit() bool {
	if s.tokens < s.limit {
		return false
	}
	s.finish = model.Length
	return true
}

// report hands new text to the caller.
func (s *sequence) report() {
	if s.progress == nil {
		return
	}
	s.progress(model.Progress{Text: s.text.next(), Reasoning: s.thought.next(), Tokens: s.tokens})
}

func (s *sequence) response() *model.Response {
	in, out, reused := int64(len(s.prompt)), int64(s.tokens), int64(s.stats.ReusedTokens)
	r := &model.Response{
		Text: s.text.all(), Reasoning: strings.TrimSpace(s.thought.all()), Finish: s.finish, Seed: s.seed, Stats: s.stats,
		Logprobs: s.probs,
		Usage:    model.Usage{InputTokens: &in, OutputTokens: &out, CacheReadTokens: &reused},
	}
	if s.mask != nil {
		r.EnforcedBy = constraint.ByMask
	}
	return r
}
