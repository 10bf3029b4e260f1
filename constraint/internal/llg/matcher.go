//go:build cgo && !nonative

package llg

/*
#cgo noescape llg_matcher_compute_mask_into
#cgo nocallback llg_matcher_compute_mask_into
#cgo noescape llg_matcher_consume_tokens
#cgo nocallback llg_matcher_consume_tokens
#cgo noescape llg_matcher_compute_ff_tokens
#cgo nocallback llg_matcher_compute_ff_tokens
#cgo noescape llg_matcher_validate_tokens
#cgo nocallback llg_matcher_validate_tokens
#include "agentgraph_llg.h"
#include <stdlib.h>
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Matcher follows one answer.
type Matcher struct {
	p      *C.LlgMatcher
	tok    *Tokenizer
	cancel canceller
}

// NewMatcher compiles a grammar. The matcher holds the tokenizer.
func (t *Tokenizer) NewMatcher(kind string, data []byte, lim Limits) (*Matcher, error) {
	if err := t.hold(); err != nil {
		return nil, err
	}
	k := C.CString(kind)
	defer C.free(unsafe.Pointer(k))
	msg := make([]byte, messageLen)
	l := limits(lim)
	p := C.ag_llg_matcher_new(t.p, &l, k, bytesPtr(data), C.size_t(len(data)),
		(*C.char)(unsafe.Pointer(&msg[0])), C.size_t(len(msg)))
	if p == nil {
		t.release()
		return nil, message(goString(msg))
	}
	m := &Matcher{p: p, tok: t}
	if err := m.Err(); err != nil {
		m.Close()
		return nil, err
	}
	m.cancel.open(p)
	return m, nil
}

// Clone copies the matcher in its present state. The copy is cancelled by its
// own Cancel only.
func (m *Matcher) Clone() (*Matcher, error) {
	m.check()
	msg := make([]byte, 512)
	p := C.ag_llg_matcher_clone(m.p, (*C.char)(unsafe.Pointer(&msg[0])), C.size_t(len(msg)))
	runtime.KeepAlive(m)
	if p == nil {
		return nil, message(goString(msg))
	}
	m.tok.holdAgain()
	c := &Matcher{p: p, tok: m.tok}
	c.cancel.open(p)
	return c, nil
}

// MaskWords is the length that Mask needs.
func (m *Matcher) MaskWords() int {
	m.check()
	n := int(C.llg_matcher_get_mask_byte_size(m.p)) / 4
	runtime.KeepAlive(m)
	return n
}

// Mask writes one bit per token: whether it may come next.
func (m *Matcher) Mask(dst []uint32) error {
	m.check()
	rc := C.llg_matcher_compute_mask_into(m.p, (*C.uint32_t)(unsafe.SliceData(dst)), C.size_t(len(dst)*4))
	return m.result(rc)
}

// Forced writes the tokens that must follow into dst and returns how many; at
// most len(dst), so that a full dst may not be all of them.
func (m *Matcher) Forced(dst []uint32) (int, error) {
	m.check()
	if len(dst) == 0 {
		return 0, nil
	}
	n := C.llg_matcher_compute_ff_tokens(m.p, (*C.uint32_t)(unsafe.SliceData(dst)), C.size_t(len(dst)))
	if n < 0 {
		return 0, m.result(n)
	}
	runtime.KeepAlive(m)
	return int(n), nil
}

// Count returns how many of tokens could be consumed, without consuming them.
func (m *Matcher) Count(tokens []uint32) (int, error) {
	m.check()
	n := C.llg_matcher_validate_tokens(m.p, (*C.uint32_t)(unsafe.SliceData(tokens)), C.size_t(len(tokens)))
	if n < 0 {
		return 0, m.result(n)
	}
	runtime.KeepAlive(m)
	return int(n), nil
}

// Consume moves the matcher on by tokens.
func (m *Matcher) Consume(tokens []uint32) error {
	m.check()
	if len(tokens) == 0 {
		return m.Err()
	}
	rc := C.llg_matcher_consume_tokens(m.p, (*C.uint32_t)(unsafe.SliceData(tokens)), C.size_t(len(tokens)))
	return m.result(rc)
}

// Accepting says whether the answer may end here.
func (m *Matcher) Accepting() bool {
	m.check()
	ok := bool(C.llg_matcher_is_accepting(m.p))
	runtime.KeepAlive(m)
	return ok
}

// Stopped says that nothing can follow: finished, failed or cancelled.
func (m *Matcher) Stopped() bool {
	m.check()
	ok := bool(C.llg_matcher_is_stopped(m.p))
	runtime.KeepAlive(m)
	return ok
}

// Err is the matcher's error, once it has one for ever.
func (m *Matcher) Err() error {
	m.check()
	defer runtime.KeepAlive(m)
	if bool(C.llg_matcher_is_cancelled(m.p)) {
		return ErrCancelled
	}
	if s := C.llg_matcher_get_error(m.p); s != nil {
		return message(C.GoString(s))
	}
	return nil
}

func (m *Matcher) result(rc C.int32_t) error {
	if rc >= 0 {
		runtime.KeepAlive(m)
		return nil
	}
	if err := m.Err(); err != nil {
		return err
	}
	return &Error{Msg: "the call failed without a message"}
}

// Cancel stops a running call soon and fails all later ones. Any goroutine may
// call it at any time.
func (m *Matcher) Cancel() { m.cancel.cancel() }

// Close frees the matcher, and the tokenizer if it was closed and this was its
// last matcher.
func (m *Matcher) Close() {
	if m.p == nil {
		return
	}
	m.cancel.close()
	C.llg_free_matcher(m.p)
	m.p = nil
	m.tok.release()
}

func (m *Matcher) check() {
	if m.p == nil {
		panic("llg: a matcher is used after Close")
	}
}
