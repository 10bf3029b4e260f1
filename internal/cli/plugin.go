package cli

import (
	"context"
	"path/filepath"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/model/plugin"
)

// openPlugin asks the plug-in what it is.
func openPlugin(ctx context.Context, spec agents.ModelSpec) (model.Model, error) {
	m, err := plugin.Open(ctx, pluginConfig(spec))
	if err != nil {
		return nil, err
	}
	return m, nil
}

func pluginConfig(spec agents.ModelSpec) plugin.Config {
	p := spec.Plugin
	cfg := plugin.Config{
		Command: p.Command, Env: p.Env, Model: spec.Model, Context: spec.Context, Parallel: spec.Parallel,
		Constraints: kindsOf(spec.Constraints),
	}
	if p.Name != nil {
		cfg.Name = *p.Name
	} else {
		cfg.Name = filepath.Base(p.Command[0])
	}
	if spec.Name != "" {
		cfg.Where = "under models: " + spec.Name
	}
	return cfg
}

// kindsOf are the declared kinds; nil where nothing is declared.
func kindsOf(words []string) []constraint.Kind {
	if words == nil {
		return nil
	}
	kinds := []constraint.Kind{}
	for _, w := range words {
		kinds = append(kinds, constraint.Kind(w))
	}
	return kinds
}

// pluginEngine is what the plug-in is declared to hold.
func pluginEngine(ctx context.Context, spec agents.ModelSpec) constraint.Engine {
	m, err := openPlugin(ctx, spec)
	if err != nil {
		return constraint.Engine{Name: modelName(spec), Declared: constraint.DeclaredPlugin, Where: "under models: " + spec.Name}
	}
	defer m.Close()
	return m.Capabilities().Engine
}
