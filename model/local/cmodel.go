//go:build cgo && !nonative

package local

/*
#cgo CFLAGS: -I${SRCDIR}/../../native/include
#cgo LDFLAGS: ${SRCDIR}/../../native/lib/libagentgraph_native.a -lstdc++ -lm -lpthread -ldl
#cgo noescape llama_tokenize
#cgo nocallback llama_tokenize
#cgo noescape ag_vocab_pieces
#cgo nocallback ag_vocab_pieces
#include <stdlib.h>
#include "agentgraph_llama.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// weights is a loaded model file, or only its vocabulary.
type weights struct {
	ptr   *C.struct_llama_model
	vocab *C.struct_llama_vocab
}

type loadOptions struct {
	gpuLayers int
	repack    bool
	kernels   bool // ours, for few rows
	vocabOnly bool
}

func loadWeights(path string, opt loadOptions) (*weights, error) {
	cpath := C.CString(path)
	defer C.free(unsafe.Pointer(cpath))
	params := C.ag_model_params{n_gpu_layers: C.int32_t(opt.gpuLayers), use_mmap: 1}
	if opt.repack {
		params.use_extra_bufts = 1
	}
	if opt.kernels {
		params.own_kernels = 1
	}
	if opt.vocabOnly {
		params.vocab_only = 1
	}
	var msg [1024]C.char
	ptr := C.ag_model_load(cpath, &params, &msg[0], C.size_t(len(msg)))
	if ptr == nil {
		return nil, fmt.Errorf("llama.cpp cannot load %s: %s", path, C.GoString(&msg[0]))
	}
	return &weights{ptr: ptr, vocab: C.llama_model_get_vocab(ptr)}, nil
}

func (w *weights) free() {
	if w != nil && w.ptr != nil {
		C.llama_model_free(w.ptr)
		w.ptr, w.vocab = nil, nil
	}
}

// usable says why this kind of model cannot write answers, if it cannot.
func (w *weights) usable() error {
	switch {
	case bool(C.llama_model_has_encoder(w.ptr)):
		return errors.New("the model reads its prompt with an encoder; only decoder models are supported")
	case !bool(C.llama_model_has_decoder(w.ptr)):
		return errors.New("the model computes embeddings and cannot write text")
	case bool(C.llama_model_is_diffusion(w.ptr)):
		return errors.New("the model is a diffusion model; only those that write one token after the other are supported")
	}
	return nil
}

// stateful models keep a running state instead of every position: their
// prompts cannot be shared or taken back in part.
func (w *weights) stateful() bool {
	return bool(C.llama_model_is_recurrent(w.ptr)) || bool(C.llama_model_is_hybrid(w.ptr))
}

func (w *weights) trainedContext() int { return int(C.llama_model_n_ctx_train(w.ptr)) }

func gpuSupported() bool { return bool(C.llama_supports_gpu_offload()) }

// systemInfo names the instruction sets llama.cpp was built for.
func systemInfo() string { return C.GoString(C.llama_print_system_info()) }

// chatTemplate is the template in the file, "" where there is none.
func (w *weights) chatTemplate() string {
	p := C.llama_model_chat_template(w.ptr, nil)
	if p == nil {
		return ""
	}
	return C.GoString(p)
}

// tokens describes a vocabulary.
type tokens struct {
	pieces  [][]byte // text of each token; of special ones 0xFF and their name
	special []bool
	ends    []uint32 // tokens that end an answer, the model's own first
	bos     int32    // -1: none
	addBOS  bool
	bosText string
	eosText string
	// suppress are tokens the file says are never to be generated.
	suppress []uint32
}

// isEnd reports whether a token ends an answer.
func (t *tokens) isEnd(id int32) bool {
	return slices.Contains(t.ends, uint32(id))
}

func (w *weights) tokens() *tokens {
	n := int(C.llama_vocab_n_tokens(w.vocab))
	ends := make([]uint32, n)
	kinds := make([]uint8, n)
	buf := make([]byte, 16*n)
	for {
		need := int(C.ag_vocab_pieces(w.vocab, (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(buf))), C.size_t(len(buf)),
			(*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(ends))), (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(kinds)))))
		if need <= len(buf) {
			break
		}
		buf = make([]byte, need)
	}
	t := &tokens{pieces: make([][]byte, n), special: make([]bool, n), bos: int32(C.llama_vocab_bos(w.vocab))}
	eos := int(C.llama_vocab_eos(w.vocab))
	from := uint32(0)
	for i := range n {
		piece := buf[from:ends[i]:ends[i]]
		from = ends[i]
		if kinds[i]&C.AG_TOKEN_SPECIAL != 0 {
			t.special[i] = true
			piece = append([]byte{0xFF}, piece...)
		}
		if kinds[i]&C.AG_TOKEN_END != 0 {
			if i == eos {
				t.ends = append([]uint32{uint32(i)}, t.ends...)
			} else {
				t.ends = append(t.ends, uint32(i))
			}
		}
		t.pieces[i] = piece
	}
	if t.bos >= 0 {
		t.bosText = C.GoString(C.llama_vocab_get_text(w.vocab, C.llama_token(t.bos)))
		t.addBOS = bool(C.llama_vocab_get_add_bos(w.vocab))
	}
	if eos >= 0 {
		t.eosText = C.GoString(C.llama_vocab_get_text(w.vocab, C.llama_token(eos)))
	}
	var count C.int32_t
	if list := C.llama_vocab_get_suppress_tokens(w.vocab, &count); list != nil {
		for _, id := range unsafe.Slice(list, int(count)) {
			if id >= 0 && int(id) < n {
				t.suppress = append(t.suppress, uint32(id))
			}
		}
	}
	return t
}

// tokenize turns a rendered prompt into tokens; names of special tokens in it
// become those tokens.
func (w *weights) tokenize(text string, special bool) ([]int32, error) {
	if len(text) == 0 {
		return nil, nil
	}
	if len(text) > math.MaxInt32/2 {
		return nil, fmt.Errorf("a prompt of %d bytes is too long to tokenize", len(text))
	}
	ctext := (*C.char)(unsafe.Pointer(unsafe.StringData(text)))
	out := make([]int32, len(text)/3+16)
	for {
		n := C.llama_tokenize(w.vocab, ctext, C.int32_t(len(text)), (*C.llama_token)(unsafe.Pointer(unsafe.SliceData(out))),
			C.int32_t(len(out)), false, C.bool(special))
		switch {
		case n >= 0:
			return out[:n], nil
		case n == math.MinInt32 || int(-n) <= len(out):
			return nil, errors.New("llama.cpp cannot tokenize the prompt")
		}
		out = make([]int32, -n)
	}
}

// tokenizer is the C side's tokenize function and its data, for llguidance.
type tokenizer struct{ ptr *C.ag_tokenizer }

func (w *weights) newTokenizer() (*tokenizer, error) {
	ptr := C.ag_tokenizer_new(w.vocab)
	if ptr == nil {
		return nil, errors.New("the native library cannot make a tokenizer")
	}
	return &tokenizer{ptr}, nil
}

func (t *tokenizer) free() {
	if t != nil && t.ptr != nil {
		C.ag_tokenizer_free(t.ptr)
		t.ptr = nil
	}
}

func (t *tokenizer) fn() uintptr   { return uintptr(unsafe.Pointer(C.ag_tokenize)) }
func (t *tokenizer) data() uintptr { return uintptr(unsafe.Pointer(t.ptr)) }

// rowSize is the size of a row of n elements of a tensor type, 0 if unknown.
func rowSize(kind uint32, n uint64) uint64 {
	return uint64(C.ag_type_row_size(C.uint32_t(kind), C.uint64_t(n)))
}
