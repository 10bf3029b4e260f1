//go:build cgo && !nonative

package local

import (
	"slices"

	"agentgraph/constraint"
)

// marks are the special tokens that stand for parts of a call, or nil.
func (t *tokens) marks(f constraint.CallFormat) map[int32]bool {
	var found map[int32]bool
	for id, special := range t.special {
		if special && slices.Contains(f.Marks(), string(t.pieces[id][1:])) && !slices.Contains(t.ends, uint32(id)) {
			if found == nil {
				found = map[int32]bool{}
			}
			found[int32(id)] = true
		}
	}
	return found
}
