package constraint

// VocabularyConfig describes a model's tokens.
type VocabularyConfig struct {
	// Tokens are the bytes of each token; special tokens start with 0xFF.
	Tokens [][]byte
	// EOS are all tokens that end an answer, the model's preferred one first.
	EOS []uint32
	// TokenizeFn is the address of a C function with llguidance's
	// LlgTokenizeFn signature that is safe to call from any thread, and
	// TokenizeData its first argument. Both live as long as the vocabulary.
	TokenizeFn, TokenizeData uintptr
	// Greedy tokenizes by longest match instead; for tests and for vocabularies
	// of single bytes.
	Greedy bool
}

// Vocabulary is a model's tokens, prepared once for all constraints.
type Vocabulary struct{}

// NewVocabulary prepares a vocabulary; for 50,000 tokens it takes about 0.2 s.
func NewVocabulary(cfg VocabularyConfig) (*Vocabulary, error) { return nil, ErrNotBuilt }

// ByteVocabulary returns the shared vocabulary of 256 one-byte tokens and one
// end token (256).
func ByteVocabulary() (*Vocabulary, error) { return nil, ErrNotBuilt }

// Close frees the vocabulary once its last matcher is closed; it is idempotent.
func (v *Vocabulary) Close() {}

// Size is the number of tokens.
func (v *Vocabulary) Size() int { return 0 }

// MaskWords is the length of a mask in 32-bit words.
func (v *Vocabulary) MaskWords() int { return 0 }
