package local

import "math"

// CheckFile reports what Open would refuse a model file for, from its header
// and its size alone, in the same words. It needs no native library.
func CheckFile(path string) error {
	head, err := readGGUF(path, tensorRow)
	if err != nil {
		return err
	}
	_, _, err = head.parts(tensorRow)
	return err
}

// tensorRow is the size of a row of n elements of a tensor type, or 0 where
// there is no such type or row. It is llama.cpp's own table (ggml_blck_size,
// ggml_type_size), with which a test compares it.
func tensorRow(kind uint32, n uint64) uint64 {
	if kind >= uint32(len(tensorTypes)) {
		return 0
	}
	t := tensorTypes[kind]
	if t.block == 0 || n%t.block != 0 {
		return 0
	}
	if n/t.block > math.MaxUint64/t.bytes {
		return math.MaxUint64
	}
	return n / t.block * t.bytes
}

// tensorTypes are the types of tensors by number: elements in a block, and
// its bytes.
var tensorTypes = [...]struct{ block, bytes uint64 }{
	0: {1, 4}, 1: {1, 2}, // float32, float16
	2: {32, 18}, 3: {32, 20}, 6: {32, 22}, 7: {32, 24}, 8: {32, 34}, 9: {32, 36}, // Q4_0 to Q8_1
	10: {256, 84}, 11: {256, 110}, 12: {256, 144}, 13: {256, 176}, 14: {256, 210}, 15: {256, 292}, // Q2_K to Q8_K
	16: {256, 66}, 17: {256, 74}, 18: {256, 98}, 19: {256, 50}, 20: {32, 18}, 21: {256, 110}, 22: {256, 82}, 23: {256, 136}, 29: {256, 56}, // IQ…
	24: {1, 1}, 25: {1, 2}, 26: {1, 4}, 27: {1, 8}, 28: {1, 8}, // int8 to int64, float64
	30: {1, 2},                   // bfloat16
	34: {256, 54}, 35: {256, 66}, // TQ1_0, TQ2_0
	39: {32, 17}, 40: {64, 36}, 41: {128, 18}, 42: {64, 18}, // MXFP4, NVFP4 and the one- and two-bit ones
}
