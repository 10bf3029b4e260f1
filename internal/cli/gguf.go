package cli

import (
	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/model/local"
)

// openGGUF loads a GGUF file into this process.
func openGGUF(spec agents.ModelSpec) (model.Model, error) {
	return withIdleUnload(spec, func() (model.Model, error) { return loadGGUF(spec) })
}

func loadGGUF(spec agents.ModelSpec) (model.Model, error) {
	m, err := local.Open(local.Config{
		Path: spec.GGUF, Context: spec.Context, Parallel: spec.Parallel,
		Threads: spec.Threads, GPULayers: spec.GPULayers,
	})
	if err != nil {
		return nil, err // never a typed nil in an interface
	}
	return m, nil
}
