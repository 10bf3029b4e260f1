package local

// Layout is a way to store the same weights.
type Layout struct {
	Name  string
	ftype uint32 // llama.cpp's number for it
}

// Layouts are those that models tune tries: the ones llama.cpp has fast
// kernels for on some CPU. None of them holds more than the original did.
var Layouts = []Layout{
	{"Q4_0", 2}, {"Q4_1", 3}, {"Q8_0", 7}, {"Q4_K_M", 15}, {"IQ4_NL", 25}, {"F16", 1}, {"BF16", 32},
}
