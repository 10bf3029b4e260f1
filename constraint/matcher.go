package constraint

// Matcher holds one answer to its promise, token by token. It belongs to one
// goroutine; only Cancel may be called from another.
type Matcher struct{}

// NewMatcher returns a matcher at the start of an answer. The grammar is
// compiled once per vocabulary and cloned afterwards. The matcher must be
// closed before the vocabulary.
func (c *Constraint) NewMatcher(v *Vocabulary) (*Matcher, error) { return nil, ErrNotBuilt }

// Mask fills dst (Vocabulary.MaskWords words): bit i%32 of word i/32 says that
// token i may come next. The bits of end tokens are set exactly when the
// answer may end here.
func (m *Matcher) Mask(dst []uint32) error { return ErrNotBuilt }

// Forced appends to buf[:0] the tokens that the grammar leaves no choice
// about, possibly none. It does not consume them.
func (m *Matcher) Forced(buf []uint32) ([]uint32, error) { return nil, ErrNotBuilt }

// Accept consumes tokens; a token the mask does not allow is an error, and
// the matcher is of no use afterwards.
func (m *Matcher) Accept(tokens ...uint32) error { return ErrNotBuilt }

// Stopped reports that nothing more can follow: the answer is complete, or
// the matcher failed or was cancelled.
func (m *Matcher) Stopped() bool { return true }

// Accepting reports that the answer may end here.
func (m *Matcher) Accepting() bool { return false }

// Cancel makes a running Mask return soon, and every later call fail. It may
// be called from any goroutine, also after Close.
func (m *Matcher) Cancel() {}

// Clone returns an independent matcher in the same state.
func (m *Matcher) Clone() *Matcher { return &Matcher{} }

// Close frees the matcher; it is idempotent.
func (m *Matcher) Close() {}
