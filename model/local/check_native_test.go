//go:build cgo && !nonative

package local

import (
	"math"
	"testing"
)

// The table agrees with llama.cpp's for every type, also those it lacks.
func TestTensorTypes(t *testing.T) {
	for kind := range uint32(128) {
		for _, n := range []uint64{1, 16, 32, 64, 96, 128, 256, 512, 576, 1024, math.MaxUint64 / 256 * 256} {
			if got, want := tensorRow(kind, n), rowSize(kind, n); got != want {
				t.Errorf("type %d, %d elements: %d bytes, llama.cpp has %d", kind, n, got, want)
			}
		}
	}
}
