//go:build cgo && !nonative

package local

/*
#cgo noescape ag_decode
#cgo nocallback ag_decode
#cgo noescape ag_sample
#cgo nocallback ag_sample
#include "agentgraph_llama.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"agentgraph/model"
)

// cells is a llama.cpp context: the cache of keys and values, and the
// arithmetic over it. One goroutine uses it; only abort is for others.
type cells struct {
	ptr     *C.ag_context
	mem     C.llama_memory_t
	unified bool
	msg     [512]C.char // of the last failed decode
}

type cellOptions struct {
	total, batch, chunk, seqs, outputs int
	threads                            int
	flash, unified                     bool
	kernels                            bool
	poll                               int // -1: threads are made anew for every step
}

func newCells(w *weights, opt cellOptions) (*cells, error) {
	p := C.ag_context_params{
		n_ctx: C.uint32_t(opt.total), n_batch: C.uint32_t(opt.batch), n_ubatch: C.uint32_t(opt.chunk),
		n_seq_max: C.uint32_t(opt.seqs), n_outputs_max: C.uint32_t(opt.outputs),
		n_threads: C.int32_t(opt.threads), n_threads_batch: C.int32_t(opt.threads),
		poll: C.int32_t(opt.poll),
	}
	if opt.flash {
		p.flash_attn = -1
	}
	if opt.kernels {
		p.own_kernels = 1
	}
	if opt.unified {
		p.kv_unified = 1
	}
	var msg [1024]C.char
	ptr := C.ag_context_new(w.ptr, &p, &msg[0], C.size_t(len(msg)))
	if ptr == nil {
		return nil, fmt.Errorf("llama.cpp cannot make a context of %d tokens: %s", opt.total, C.GoString(&msg[0]))
	}
	return &cells{ptr: ptr, mem: C.llama_get_memory(C.ag_context_llama(ptr)), unified: opt.unified}, nil
}

func (c *cells) free() {
	if c != nil && c.ptr != nil {
		C.ag_context_free(c.ptr)
		c.ptr = nil
	}
}

// total is how many positions there are over all sequences.
func (c *cells) total() int { return int(C.llama_n_ctx(C.ag_context_llama(c.ptr))) }

// abort makes a running decode end early, or allows the next one again.
func (c *cells) abort(on bool) {
	v := C.int32_t(0)
	if on {
		v = 1
	}
	C.ag_context_abort(c.ptr, v)
}

func (c *cells) threads(n int) {
	C.llama_set_n_threads(C.ag_context_llama(c.ptr), C.int32_t(n), C.int32_t(n))
}

// batch is the tokens of one step.
type batch struct {
	token, pos, seq []int32
	logits          []int8
}

func (b *batch) clear() {
	b.token, b.pos, b.seq, b.logits = b.token[:0], b.pos[:0], b.seq[:0], b.logits[:0]
}

func (b *batch) add(token int32, pos, seq int, logits bool) {
	b.token = append(b.token, token)
	b.pos = append(b.pos, int32(pos))
	b.seq = append(b.seq, int32(seq))
	want := int8(0)
	if logits {
		want = 1
	}
	b.logits = append(b.logits, want)
}

func (b *batch) len() int { return len(b.token) }

var (
	errNoRoom  = errors.New("the context is full")
	errAborted = errors.New("the step was aborted")
)

func (c *cells) decode(b *batch) error {
	rc := C.ag_decode(c.ptr, C.int32_t(b.len()),
		(*C.llama_token)(unsafe.Pointer(unsafe.SliceData(b.token))), (*C.llama_pos)(unsafe.Pointer(unsafe.SliceData(b.pos))),
		(*C.llama_seq_id)(unsafe.Pointer(unsafe.SliceData(b.seq))), (*C.int8_t)(unsafe.Pointer(unsafe.SliceData(b.logits))),
		&c.msg[0], C.size_t(len(c.msg)))
	switch {
	case rc == 0:
		return nil
	case rc == 1:
		return errNoRoom
	case rc == 2:
		return errAborted
	default:
		return fmt.Errorf("llama.cpp cannot decode a step (%d): %s", rc, C.GoString(&c.msg[0]))
	}
}

// remove forgets positions from on of a sequence. It reports false where the
// model can only forget whole sequences.
func (c *cells) remove(seq, from int) bool {
	return bool(C.llama_memory_seq_rm(c.mem, C.llama_seq_id(seq), C.llama_pos(from), -1))
}

// share makes the first n positions of one sequence those of another too.
func (c *cells) share(from, to, n int) {
	if c.unified {
		C.llama_memory_seq_cp(c.mem, C.llama_seq_id(from), C.llama_seq_id(to), 0, C.llama_pos(n))
		return
	}
	// Apart, a sequence is copied whole or not at all.
	C.llama_memory_seq_cp(c.mem, C.llama_seq_id(from), C.llama_seq_id(to), -1, -1)
	c.remove(to, n)
}

func (c *cells) clear() { C.llama_memory_clear(c.mem, false) }

// sampler holds the settings and random state of one answer's token choice.
type sampler struct{ s C.ag_sampling }

func newSampler(s model.Sampling, seed uint64) sampler {
	return sampler{C.ag_sampling{
		temperature: C.float(s.Temperature), top_p: C.float(s.TopP), min_p: C.float(s.MinP),
		top_k: C.int32_t(s.TopK), rng: C.uint64_t(seed),
	}}
}

// greedy reports that the likeliest allowed token is always chosen.
func (s *sampler) greedy() bool { return s.s.temperature == 0 }

// sample chooses among the tokens of mask (nil: all) by the logits of the
// batch entry at row.
func (c *cells) sample(row int, mask []uint32, s *sampler) (int32, error) {
	token := C.ag_sample(c.ptr, C.int32_t(row), (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(mask))), C.size_t(len(mask)), &s.s)
	switch token {
	case C.AG_SAMPLE_NONE:
		return 0, errors.New("the grammar allows no token of this model's vocabulary here")
	case C.AG_SAMPLE_NAN:
		return 0, errors.New("the model computed no numbers (NaN or infinite logits); the file may be damaged")
	case C.AG_SAMPLE_NO_LOGITS:
		return 0, errors.New("llama.cpp kept no logits for the step")
	}
	return int32(token), nil
}

// logprobs returns the natural logarithms of the model's own probabilities by
// the logits of the batch entry at row: of token, and of the n likeliest.
func (c *cells) logprobs(row int, token int32, n int) (own float32, ids []int32, probs []float32) {
	ids, probs = make([]int32, n), make([]float32, n)
	var p C.float
	got := C.ag_logprobs(c.ptr, C.int32_t(row), C.llama_token(token), C.int32_t(n), &p,
		(*C.llama_token)(unsafe.Pointer(unsafe.SliceData(ids))), (*C.float)(unsafe.Pointer(unsafe.SliceData(probs))))
	got = max(got, 0)
	return float32(p), ids[:got], probs[:got]
}

// margin is how much more likely a token was than the best other allowed one,
// in logits.
func (c *cells) margin(row int, mask []uint32, token int32) float32 {
	return float32(C.ag_margin(c.ptr, C.int32_t(row), (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(mask))), C.size_t(len(mask)), C.llama_token(token)))
}

// plainLoop decodes n tokens of sequence 0 greedily without leaving the native
// side, for comparison, and returns how many it did.
func (c *cells) plainLoop(token int32, pos, n int) int {
	return int(C.ag_plain_loop(c.ptr, C.llama_token(token), C.llama_pos(pos), C.int32_t(n)))
}
