//go:build cgo && !nonative

package local

/*
#include <stdlib.h>
#include "agentgraph_llama.h"
*/
import "C"

import (
	"fmt"
	"path/filepath"
	"unsafe"
)

// Requantize writes the model at from to to, its weights in another layout.
// It goes from the weights as they are, so what they have lost stays lost.
func Requantize(from, to string, layout Layout, threads int) error {
	if threads <= 0 {
		threads = physicalCores()
	}
	cfrom, cto := C.CString(from), C.CString(to)
	defer C.free(unsafe.Pointer(cfrom))
	defer C.free(unsafe.Pointer(cto))
	var msg [1024]C.char
	if C.ag_model_quantize(cfrom, cto, C.uint32_t(layout.ftype), C.int32_t(threads), &msg[0], C.size_t(len(msg))) != 0 {
		return fmt.Errorf("writing %s as %s: %s", filepath.Base(from), layout.Name, C.GoString(&msg[0]))
	}
	return nil
}
