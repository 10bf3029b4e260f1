package local

import (
	"time"
)

// Config says which file to run and how.
type Config struct {
	// Path of the GGUF file; of a split model, its first part.
	Path string
	// Context is the most tokens of prompt and answer together, per answer.
	// 0: what the model was trained for, at most DefaultContext.
	Context int
	// Parallel is how many answers are generated at once; 0 means 1. Memory
	// for keys and values grows with Context × Parallel.
	Parallel int
	// Threads for the arithmetic; 0: the physical cores this process may use.
	// More threads than free cores is much slower, not faster.
	Threads int
	// GPULayers is how many layers to put on a GPU, where llama.cpp was built
	// for one; asking for one elsewhere is an error.
	GPULayers int
	// Template replaces the chat template of the file.
	Template string
	// Clock is what a template's strftime_now sees; nil: the time of day.
	Clock func() time.Time
	// Without switches single optimisations off.
	Without Without
}

// Without switches optimisations off, for measurements and tests. The zero
// value has all of them on.
type Without struct {
	ForcedBatch    bool // forced tokens one step at a time
	PrefixReuse    bool // every prompt is decoded whole
	Repack         bool // weights stay as the file has them
	FlashAttention bool
	Pace           bool // always Threads threads, however busy the machine is
	UnifiedCache   bool // each sequence has its own part of the cache
	MaskOverlap    bool // masks are computed after the step, by the engine alone
	ThreadPool     bool // threads are made anew for every step
	Guess          bool // greedy answers have a mask for every token
	Drafts         bool // no token is decoded before it is chosen
	Kernels        bool // llama.cpp's kernels alone; no step runs beside one of a model with ours
}

// DefaultContext bounds Context where the caller leaves it open; memory for
// keys and values is taken at once.
const DefaultContext = 4096

// MaxParallel is the most answers at once.
const MaxParallel = 64

// MaxLogprobs is the most likely tokens told for each token of an answer.
const MaxLogprobs = 20
