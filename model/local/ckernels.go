//go:build cgo && !nonative

package local

/*
#include "agentgraph_llama.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// attentionShape is one attention: rows of heads, which share key_heads, over
// so many keys; size numbers a head.
type attentionShape struct {
	rows, heads, keyHeads, keys, size int
	threads                           int
	own                               bool // our kernel
	scale                             float32
}

// kernelRuns are how often our kernels ran so far; -1: not made for this CPU.
func kernelRuns() (attention, fewRows int64) {
	return int64(C.ag_attention_runs()), int64(C.ag_few_rows_runs())
}

// attention computes one attention, for tests of the kernels. Queries are
// [heads][rows][size], keys and values [keyHeads][keys][size], the mask
// [rows][keys], the result [rows][heads][size].
func (s attentionShape) attention(q, k, v, mask []float32) ([]float32, error) {
	shape := C.ag_attention_shape{
		rows: C.int32_t(s.rows), heads: C.int32_t(s.heads), key_heads: C.int32_t(s.keyHeads),
		keys: C.int32_t(s.keys), size: C.int32_t(s.size), threads: C.int32_t(s.threads), scale: C.float(s.scale),
	}
	if s.own {
		shape.own_kernels = 1
	}
	out := make([]float32, len(q))
	floats := func(x []float32) *C.float { return (*C.float)(unsafe.Pointer(unsafe.SliceData(x))) }
	if rc := C.ag_attention_check(&shape, floats(q), floats(k), floats(v), floats(mask), floats(out)); rc != 0 {
		return nil, fmt.Errorf("the attention was not computed (%d)", rc)
	}
	return out, nil
}
