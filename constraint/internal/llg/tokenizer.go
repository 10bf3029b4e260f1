//go:build cgo && !nonative

package llg

/*
#cgo CFLAGS: -I${SRCDIR}/../../../native/include
#cgo LDFLAGS: ${SRCDIR}/../../../native/lib/libagentgraph_native.a -lstdc++ -lm -lpthread -ldl
#include "agentgraph_llg.h"
#include <stdlib.h>

static LlgTokenizeFn as_tokenize_fn(uintptr_t p) { return (LlgTokenizeFn)p; }
static const void *as_data(uintptr_t p) { return (const void *)p; }
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// Built says whether the native library is linked in.
const Built = true

// Version is llguidance's own name and version, "llguidance 1.9.1".
func Version() string {
	v, _, _ := strings.Cut(C.GoString(C.llg_get_version()), " ")
	return strings.Replace(v, "@", " ", 1)
}

// ABI returns the size of the limits' struct on the C and on the Rust side.
func ABI() (header, library uintptr) {
	return unsafe.Sizeof(C.AgLlgLimits{}), uintptr(C.ag_llg_abi())
}

// Tokenizer is a vocabulary made ready for grammars.
type Tokenizer struct {
	mu     sync.Mutex
	p      *C.LlgTokenizer
	refs   int // the owner's and one per matcher
	closed bool
	size   int
}

// messageLen holds the longest message that is worth showing.
const messageLen = 8192

// NewTokenizer builds the token trie; for 50,000 tokens it takes about 0.2 s.
func NewTokenizer(cfg TokenizerConfig) (*Tokenizer, error) {
	if len(cfg.Tokens) == 0 || len(cfg.EOS) == 0 {
		return nil, errors.New("a vocabulary needs tokens and at least one end token")
	}
	n := 0
	for _, t := range cfg.Tokens {
		n += len(t)
	}
	lens := make([]uint32, len(cfg.Tokens))
	bytes := make([]byte, 0, n+1)
	for i, t := range cfg.Tokens {
		lens[i] = uint32(len(t))
		bytes = append(bytes, t...)
	}
	bytes = append(bytes, 0) // so that its address can be taken
	for _, id := range cfg.EOS {
		if int(id) >= len(cfg.Tokens) {
			return nil, fmt.Errorf("end token %d is outside the vocabulary of %d tokens", id, len(cfg.Tokens))
		}
	}
	fn, data := C.as_tokenize_fn(C.uintptr_t(cfg.Tokenize)), C.as_data(C.uintptr_t(cfg.TokenizeData))
	if cfg.SingleBytes {
		fn = C.LlgTokenizeFn(C.ag_llg_tokenize_single_bytes)
	}
	msg := make([]byte, messageLen)
	p := C.ag_llg_tokenizer_new(C.uint32_t(len(lens)), (*C.uint32_t)(&lens[0]), (*C.uint8_t)(&bytes[0]),
		(*C.uint32_t)(&cfg.EOS[0]), C.uint32_t(len(cfg.EOS)), fn, data, C.bool(cfg.Greedy),
		(*C.char)(unsafe.Pointer(&msg[0])), C.size_t(len(msg)))
	if p == nil {
		return nil, message(goString(msg))
	}
	return &Tokenizer{p: p, refs: 1, size: len(lens)}, nil
}

// Size is the number of tokens.
func (t *Tokenizer) Size() int { return t.size }

// Close drops the owner's hold; the memory goes with the last matcher.
func (t *Tokenizer) Close() {
	t.mu.Lock()
	closed := t.closed
	t.closed = true
	t.mu.Unlock()
	if !closed {
		t.release()
	}
}

// hold takes a reference for a matcher.
func (t *Tokenizer) hold() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errors.New("the vocabulary is closed")
	}
	t.refs++
	return nil
}

func (t *Tokenizer) holdAgain() { t.mu.Lock(); t.refs++; t.mu.Unlock() }

func (t *Tokenizer) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refs--; t.refs == 0 {
		C.llg_free_tokenizer(t.p)
		t.p = nil
	}
}

// Check compiles a grammar and throws the result away. Warning is set for a
// grammar that is good but suspicious.
func (t *Tokenizer) Check(kind string, data []byte, lim Limits) (warning string, err error) {
	if err := t.hold(); err != nil {
		return "", err
	}
	defer t.release()
	k := C.CString(kind)
	defer C.free(unsafe.Pointer(k))
	msg := make([]byte, messageLen)
	l := limits(lim)
	switch C.ag_llg_validate_grammar(t.p, &l, k, bytesPtr(data), C.size_t(len(data)),
		(*C.char)(unsafe.Pointer(&msg[0])), C.size_t(len(msg))) {
	case 0:
		return "", nil
	case 1:
		return goString(msg), nil
	}
	return "", message(goString(msg))
}

func limits(l Limits) C.AgLlgLimits {
	return C.AgLlgLimits{
		initial_lexer_fuel: C.uint64_t(l.InitialLexerFuel), step_lexer_fuel: C.uint64_t(l.StepLexerFuel),
		step_max_items: C.uint64_t(l.StepMaxItems), max_items_in_row: C.uint64_t(l.MaxItemsInRow),
		max_lexer_states: C.uint64_t(l.MaxLexerStates), max_grammar_size: C.uint64_t(l.MaxGrammarSize),
	}
}

func bytesPtr(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(b)) }

// goString reads a NUL-terminated buffer.
func goString(buf []byte) string {
	s, _, _ := strings.Cut(string(buf), "\x00")
	return s
}
