//go:build cgo && !nonative

package local

/*
#include "agentgraph_llama.h"
*/
import "C"

// structSizes are the sizes of our own structs as the header and as the
// library have them; a test compares the two.
func structSizes() (header, library map[string]int) {
	names := []string{"ag_model_params", "ag_context_params", "ag_sampling"}
	header = map[string]int{
		names[0]: int(C.sizeof_ag_model_params), names[1]: int(C.sizeof_ag_context_params), names[2]: int(C.sizeof_ag_sampling),
	}
	var sizes [3]C.size_t
	C.ag_llama_struct_sizes(&sizes[0], C.size_t(len(sizes)))
	library = map[string]int{}
	for i, n := range names {
		library[n] = int(sizes[i])
	}
	return header, library
}
