//go:build !cgo || nonative

package local

import (
	"agentgraph/constraint"
	"agentgraph/model"
)

// Open returns constraint.ErrNotBuilt: this program has no native library.
func Open(cfg Config) (model.Model, error) {
	return nil, &model.Error{Kind: model.Unavailable, Delivery: model.NotSent, Err: constraint.ErrNotBuilt}
}

// System describes the native library; here there is none.
func System() string { return "" }

// Requantize returns constraint.ErrNotBuilt.
func Requantize(from, to string, layout Layout, threads int) error { return constraint.ErrNotBuilt }
