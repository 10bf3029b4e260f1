//go:build cgo && !nonative

package local

/*
#include "agentgraph_llama.h"
*/
import "C"

import (
	"errors"
	"unsafe"
)

// renderTemplate renders a Jinja template over a JSON context. usedClock says
// that it asked for the time.
func renderTemplate(source string, context []byte) (text string, usedClock bool, err error) {
	var out C.ag_chat_result
	rc := C.ag_chat_render((*C.char)(unsafe.Pointer(unsafe.StringData(source))), C.size_t(len(source)),
		(*C.char)(unsafe.Pointer(unsafe.SliceData(context))), C.size_t(len(context)), &out)
	text = C.GoStringN(out.text, C.int(out.len))
	C.ag_chat_free(&out)
	if rc != 0 {
		return "", out.used_clock != 0, errors.New(text)
	}
	return text, out.used_clock != 0, nil
}
