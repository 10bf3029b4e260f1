package constraint

import (
	"errors"

	"agentgraph/constraint/internal/llg"
)

// ErrCancelled is the error of a Matcher after Cancel.
var ErrCancelled = llg.ErrCancelled

// ErrTooCostly marks the error of a Matcher whose grammar is right and costs
// more than its bounds allow at this place of the answer.
var ErrTooCostly = errors.New("the grammar is too costly for its bounds here")

// Matcher holds one answer to its promise, token by token. It belongs to one
// goroutine; only Cancel may be called from another. Use after Close panics.
type Matcher struct {
	m   *llg.Matcher
	v   *Vocabulary
	num *numberState // nil where no JSON can come
}

// NewMatcher returns a matcher at the start of an answer. The grammar is
// compiled once per vocabulary and cloned afterwards. A grammar that compiled
// on bytes and does not on v is a *Refusal.
func (c *Constraint) NewMatcher(v *Vocabulary) (*Matcher, error) {
	if !llg.Built {
		return nil, c.refuse(&Refusal{Reason: ErrNotBuilt.Error(), NotNative: true})
	}
	grammar := c.grammar
	if c.onVocabulary != nil {
		grammar = c.onVocabulary(v)
	}
	m, err := v.matcher(grammar, c.engineLimits())
	if err != nil {
		return nil, c.engineRefusal(err)
	}
	out := &Matcher{m: m, v: v}
	if c.spec.Kind == JSON || c.callGate != "" {
		out.num = &numberState{caps: c.caps, gate: c.callGate}
	}
	return out, nil
}

// Mask fills dst (Vocabulary.MaskWords words): bit i%32 of word i/32 says that
// token i may come next. The bits of end tokens are set exactly when the
// answer may end here.
func (m *Matcher) Mask(dst []uint32) error {
	if err := m.m.Mask(dst); err != nil {
		return matcherError(err)
	}
	m.holdEnd(dst)
	if m.num != nil && m.num.inNumber {
		m.num.capDigits(m.v, dst)
	}
	return nil
}

// Allows reports that the mask would have the bit of token, for a fraction of
// what a mask costs. Where it returns false, or for end tokens, only the mask
// knows: digits of a number are left to it, and whatever cannot be computed.
func (m *Matcher) Allows(token uint32) bool {
	if m.v.isEOS[token] || m.num != nil && m.num.inNumber {
		return false
	}
	return m.Allowed([]uint32{token}) == 1
}

// Allowed is how many of the tokens, in order, the grammar would take. It is an
// estimate: the mask decides about end tokens and the digits of numbers.
func (m *Matcher) Allowed(tokens []uint32) int {
	n, err := m.m.Count(tokens)
	if err != nil {
		return 0
	}
	return n
}

// holdEnd takes the end tokens out of a mask at a place where the answer may
// not end: for a complement ("start: ~\"\"") llguidance 1.9.1 allows them there.
// A mask of nothing but end tokens is left as it is; validation decides.
func (m *Matcher) holdEnd(dst []uint32) {
	ends := false
	for id := range m.v.isEOS {
		ends = ends || dst[id/32]&(1<<(id%32)) != 0
	}
	if !ends || m.m.Accepting() {
		return
	}
	rest := uint32(0)
	for i, w := range dst {
		for id := range m.v.isEOS {
			if int(id/32) == i {
				w &^= 1 << (id % 32)
			}
		}
		rest |= w
		if rest != 0 {
			break
		}
	}
	if rest == 0 {
		return
	}
	for id := range m.v.isEOS {
		dst[id/32] &^= 1 << (id % 32)
	}
}

// forcedAtOnce bounds the tokens one call of Forced returns.
const forcedAtOnce = 256

// Forced appends to buf[:0] the tokens that the grammar leaves no choice
// about, possibly none. It does not consume them.
func (m *Matcher) Forced(buf []uint32) ([]uint32, error) {
	if cap(buf) < forcedAtOnce {
		buf = make([]uint32, forcedAtOnce)
	}
	buf = buf[:cap(buf)]
	n, err := m.m.Forced(buf)
	if err != nil {
		return nil, matcherError(err)
	}
	return buf[:n], nil
}

// Accept consumes tokens; a token the mask does not allow is an error, and
// the matcher is of no use afterwards.
func (m *Matcher) Accept(tokens ...uint32) error {
	if err := m.m.Consume(tokens); err != nil {
		return matcherError(err)
	}
	if m.num != nil {
		for _, t := range tokens {
			if int(t) < len(m.v.tokens) && !m.v.isEOS[t] {
				b := m.v.tokens[t]
				if len(b) > 1 && b[0] == 0xFF {
					b = b[1:] // the name of a special token stands for it
				}
				m.num.feed(b)
			}
		}
	}
	return nil
}

// Stopped reports that nothing more can follow: the answer is complete, or
// the matcher failed or was cancelled.
func (m *Matcher) Stopped() bool { return m.m.Stopped() }

// Accepting reports that the answer may end here.
func (m *Matcher) Accepting() bool { return m.m.Accepting() }

// Cancel makes a running Mask return soon with ErrCancelled, and every later
// call fail. It may be called from any goroutine, also after Close.
func (m *Matcher) Cancel() { m.m.Cancel() }

// Clone returns an independent matcher in the same state, or nil when memory
// ran out in the engine.
func (m *Matcher) Clone() *Matcher {
	c, err := m.m.Clone()
	if err != nil {
		return nil
	}
	out := &Matcher{m: c, v: m.v}
	if m.num != nil {
		n := *m.num
		out.num = &n
	}
	return out
}

// Close frees the matcher; it is idempotent.
func (m *Matcher) Close() { m.m.Close() }

// matcherError marks errors that are about cost.
func matcherError(err error) error {
	var e *llg.Error
	if errors.As(err, &e) && e.Limit {
		return errors.Join(ErrTooCostly, err)
	}
	return err
}
