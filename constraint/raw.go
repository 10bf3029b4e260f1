package constraint

import (
	"agentgraph/constraint/internal/llg"
)

// NewRawMatcher compiles a JSON Schema by the engine alone: nothing is
// admitted, relaxed or made compact. It is what other users of the engine
// get, for comparison.
func NewRawMatcher(v *Vocabulary, schema []byte) (*RawMatcher, error) {
	if !llg.Built {
		return nil, ErrNotBuilt
	}
	m, err := v.tok.NewMatcher(llg.JSONSchema, schema, llg.Limits{})
	if err != nil {
		return nil, err
	}
	return &Matcher{m: m, v: v}, nil
}

// RawMatcher is a Matcher of NewRawMatcher.
type RawMatcher = Matcher
