package agents

import "testing"

// A local model has room for the answers of one input, wherever it is named,
// unless its entry says how many it generates at once.
func TestSamplesRoom(t *testing.T) {
	g := load(t, `-- agentgraph.yaml --
models: {own: {gguf: own.gguf}, fixed: {gguf: fixed.gguf, parallel: 2}, remote: {server: vllm, url: "http://127.0.0.1:1/v1", model: m}}
defaults: {sampling: {temperature: 1}}
-- agents/a/agent.yaml --
model: own
samples: 3
-- agents/b/agent.yaml --
model: own
samples: 5
-- agents/c/agent.yaml --
model: fixed
samples: 5
-- agents/d/agent.yaml --
model: plain.gguf
samples: 100
-- agents/e/agent.yaml --
model: remote
samples: 5
-- agents/f/agent.yaml --
model: other.gguf
`)
	for name, want := range map[string]int{"a": 5, "b": 5, "c": 2, "d": sampledParallel, "e": 0, "f": 0} {
		a := g.Agent(name)
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		spec, err := g.ModelSpec(a.Settings.ModelSpec.Name)
		if err != nil || spec.Parallel != want || a.Settings.ModelSpec.Parallel != want {
			t.Errorf("%s: parallel %d and %d, want %d (%v)", name, a.Settings.ModelSpec.Parallel, spec.Parallel, want, err)
		}
	}
}
