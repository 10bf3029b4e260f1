package constraint

import (
	"errors"
	"fmt"
	"sync"

	"agentgraph/constraint/internal/llg"
)

// VocabularyConfig describes a model's tokens.
type VocabularyConfig struct {
	// Tokens are the bytes of each token. Those of special tokens start with
	// 0xFF, so that no text of a grammar can call for them; end tokens are
	// marked here if the caller did not. The slice is kept, not copied.
	Tokens [][]byte
	// EOS are all tokens that end an answer, the model's preferred one first.
	EOS []uint32
	// TokenizeFn is the address of a C function with llguidance's
	// LlgTokenizeFn signature that is safe to call from any thread, and
	// TokenizeData its first argument. Both live as long as the vocabulary.
	TokenizeFn, TokenizeData uintptr
	// Greedy tokenizes by longest match instead. It forces no tokens.
	Greedy bool

	singleBytes bool
}

// Vocabulary is a model's tokens, prepared once for all constraints.
type Vocabulary struct {
	tok    *llg.Tokenizer
	words  int
	tokens [][]byte
	isEOS  map[uint32]bool
	digits []digitToken
	maxRun int      // the most digits of one token
	carry  []uint32 // mask of the tokens that only carry a number on

	named   sync.Once
	special map[string]uint32 // by name, made when it is asked for

	mu     sync.Mutex
	protos *cache[grammarKey, *prototype]
	closed bool
}

// keptPrototypes bounds the compiled grammars a vocabulary keeps.
const keptPrototypes = 64

// NewVocabulary prepares a vocabulary; for 50,000 tokens it takes about 0.2 s.
func NewVocabulary(cfg VocabularyConfig) (*Vocabulary, error) {
	if !llg.Built {
		return nil, ErrNotBuilt
	}
	if !cfg.Greedy && !cfg.singleBytes && cfg.TokenizeFn == 0 {
		return nil, errors.New("a vocabulary needs TokenizeFn, or Greedy")
	}
	v := &Vocabulary{tokens: cfg.Tokens, isEOS: map[uint32]bool{}, words: (len(cfg.Tokens) + 31) / 32}
	marked := false
	for _, id := range cfg.EOS {
		if int(id) >= len(cfg.Tokens) {
			return nil, fmt.Errorf("end token %d is outside the vocabulary of %d tokens", id, len(cfg.Tokens))
		}
		v.isEOS[id] = true
		if b := cfg.Tokens[id]; len(b) < 2 || b[0] != 0xFF {
			if !marked {
				v.tokens, marked = append([][]byte(nil), cfg.Tokens...), true
			}
			v.tokens[id] = append([]byte("\xff"), fmt.Appendf(nil, "<end %d>%s", id, b)...)
		}
	}
	tok, err := llg.NewTokenizer(llg.TokenizerConfig{
		Tokens: v.tokens, EOS: cfg.EOS, Tokenize: cfg.TokenizeFn, TokenizeData: cfg.TokenizeData,
		Greedy: cfg.Greedy, SingleBytes: cfg.singleBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the vocabulary: %w", err)
	}
	v.tok = tok
	v.protos = newCache[grammarKey, *prototype](keptPrototypes, func(p *prototype) { p.drop() })
	v.digits, v.carry = digitTokens(v.tokens, v.words)
	for _, t := range v.digits {
		v.maxRun = max(v.maxRun, t.n)
	}
	return v, nil
}

var byteVocabulary = sync.OnceValues(func() (*Vocabulary, error) {
	cfg := VocabularyConfig{EOS: []uint32{256}, singleBytes: true}
	for i := range 256 {
		cfg.Tokens = append(cfg.Tokens, []byte{byte(i)})
	}
	cfg.Tokens = append(cfg.Tokens, []byte("\xff<end>"))
	return NewVocabulary(cfg)
})

// ByteVocabulary returns the shared vocabulary of 256 one-byte tokens and one
// end token (256). Its Close does nothing.
func ByteVocabulary() (*Vocabulary, error) { return byteVocabulary() }

// Close frees the vocabulary once its last matcher is closed; it is idempotent.
func (v *Vocabulary) Close() {
	if shared, err := byteVocabulary(); err == nil && shared == v {
		return
	}
	v.mu.Lock()
	closed := v.closed
	v.closed = true
	v.mu.Unlock()
	if !closed {
		v.protos.clear()
		v.tok.Close()
	}
}

// specials are the special tokens of these names that do not end an answer.
func (v *Vocabulary) specials(names []string) map[string]uint32 {
	v.named.Do(func() {
		v.special = map[string]uint32{}
		for id, b := range v.tokens {
			if len(b) > 1 && b[0] == 0xFF && !v.isEOS[uint32(id)] {
				v.special[string(b[1:])] = uint32(id)
			}
		}
	})
	found := map[string]uint32{}
	for _, n := range names {
		if id, ok := v.special[n]; ok {
			found[n] = id
		}
	}
	return found
}

// Size is the number of tokens.
func (v *Vocabulary) Size() int { return len(v.tokens) }

// MaskWords is the length of a mask in 32-bit words.
func (v *Vocabulary) MaskWords() int { return v.words }

// grammarKey names a grammar as the engine reads it.
type grammarKey struct{ kind, text string }

// prototype is a grammar compiled for one vocabulary, at its start.
type prototype struct {
	mu      sync.Mutex
	m       *llg.Matcher
	err     error
	done    bool
	dropped bool
}

func (p *prototype) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropped = true
	if p.m != nil {
		p.m.Close()
		p.m = nil
	}
}

// matcher returns a fresh copy of the compiled grammar, compiling it first if
// nobody did.
func (v *Vocabulary) matcher(key grammarKey, lim llg.Limits) (*llg.Matcher, error) {
	for {
		p := v.protos.get(key, func() *prototype { return new(prototype) })
		p.mu.Lock()
		if p.dropped { // pushed out between the two lines above
			p.mu.Unlock()
			v.mu.Lock()
			closed := v.closed
			v.mu.Unlock()
			if closed {
				return nil, errors.New("the vocabulary is closed")
			}
			continue
		}
		m, err := p.clone(v.tok, key, lim)
		p.mu.Unlock()
		return m, err
	}
}

func (p *prototype) clone(tok *llg.Tokenizer, key grammarKey, lim llg.Limits) (*llg.Matcher, error) {
	if !p.done {
		p.m, p.err = tok.NewMatcher(key.kind, []byte(key.text), lim)
		p.done = true
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.m.Clone()
}
