//go:build !cgo || nonative

package llg

// Built says whether the native library is linked in.
const Built = false

// Version is llguidance's own name and version; "" without it.
func Version() string { return "" }

// Tokenizer cannot be made without the native library.
type Tokenizer struct{}

// NewTokenizer returns ErrNotBuilt.
func NewTokenizer(TokenizerConfig) (*Tokenizer, error) { return nil, ErrNotBuilt }

func (*Tokenizer) Size() int { return 0 }
func (*Tokenizer) Close()    {}

func (*Tokenizer) Check(string, []byte, Limits) (string, error)        { return "", ErrNotBuilt }
func (*Tokenizer) NewMatcher(string, []byte, Limits) (*Matcher, error) { return nil, ErrNotBuilt }

// Matcher cannot be made without the native library.
type Matcher struct{}

func (*Matcher) Clone() (*Matcher, error)     { return nil, ErrNotBuilt }
func (*Matcher) MaskWords() int               { return 0 }
func (*Matcher) Mask([]uint32) error          { return ErrNotBuilt }
func (*Matcher) Forced([]uint32) (int, error) { return 0, ErrNotBuilt }
func (*Matcher) Count([]uint32) (int, error)  { return 0, ErrNotBuilt }
func (*Matcher) Consume([]uint32) error       { return ErrNotBuilt }
func (*Matcher) Accepting() bool              { return false }
func (*Matcher) Stopped() bool                { return true }
func (*Matcher) Err() error                   { return ErrNotBuilt }
func (*Matcher) Cancel()                      {}
func (*Matcher) Close()                       {}
