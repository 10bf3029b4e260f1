package cli

import (
	"agentgraph/agents"
	"agentgraph/model"
)

func openGGUF(spec agents.ModelSpec) (model.Model, error) { panic("wait for local") }
