package agents

import (
	"fmt"
	"testing"
)

func TestModelPlace(t *testing.T) {
	dir := graphOf(t, `
-- agentgraph.yaml --
models:
  small:
    context: 512
    gguf: small.gguf
  said: {script: said.yaml}
defaults: {model: default.gguf}
-- agents/a/agent.yaml --
model: small
-- agents/b/agent.yaml --
history: 0
model: own.gguf
-- agents/c/agent.yaml --
model: said
-- agents/d/system/ --
`)
	for _, tt := range []struct {
		opt  LoadOptions
		want []string
	}{
		{LoadOptions{}, []string{"agentgraph.yaml:4:5", "agents/b/agent.yaml:2:1", "agentgraph.yaml:5:10", "agentgraph.yaml:6:12"}},
		{LoadOptions{Model: "small"}, []string{"agentgraph.yaml:4:5", "agentgraph.yaml:4:5", "agentgraph.yaml:4:5", "agentgraph.yaml:4:5"}},
		{LoadOptions{Model: "/given.gguf"}, []string{":0:0", ":0:0", ":0:0", ":0:0"}},
	} {
		g, err := LoadWith(dir, tt.opt)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range g.Agents {
			file, line, col := g.ModelPlace(a)
			if got := fmt.Sprintf("%s:%d:%d", file, line, col); got != tt.want[i] {
				t.Errorf("%+v: %s: %s, want %s", tt.opt, a.Name, got, tt.want[i])
			}
		}
	}
}
