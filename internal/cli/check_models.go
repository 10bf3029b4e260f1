package cli

import (
	"context"
	"fmt"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model/script"
)

// checkTools finds tools that are not there, and an agent that lists tools and
// whose model declares none: each of its turns would fail or be refused.
func checkTools(ctx context.Context, g *agents.Graph, ag *agents.Agent) []agents.Finding {
	var found []agents.Finding
	add := func(i int, msg, hint string) {
		f := agents.Finding{Severity: agents.SeverityError, Agent: ag.Name, Msg: msg, Hint: hint}
		f.File, f.Line, f.Col = g.ToolPlace(ag, i)
		found = append(found, f)
	}
	for i, c := range ag.Settings.Tools {
		if err := c.Missing(); err != nil {
			add(i, fmt.Sprintf("tools[%d]: %v", i, err), "install it, put it on PATH, or correct tools:")
		}
	}
	spec := ag.Settings.ModelSpec
	if len(ag.Settings.Tools) > 0 && !callsTools(ctx, spec) {
		add(-1, fmt.Sprintf("tools: lists some, and the model %s declares that it calls none", modelName(spec)),
			"use a model that calls tools, or remove tools:")
	}
	return found
}

// callsTools reports whether the model may call tools, as far as it says so
// without being loaded. A script or plug-in that cannot be opened is found
// elsewhere.
func callsTools(ctx context.Context, spec agents.ModelSpec) bool {
	switch {
	case spec.Script != "":
		if m, err := script.Open(spec.Script); err == nil {
			defer m.Close()
			return m.Capabilities().Tools
		}
	case spec.Plugin != nil:
		if m, err := openPlugin(ctx, spec); err == nil {
			defer m.Close()
			return m.Capabilities().Tools
		}
	}
	return true
}

// checkFallback finds what would keep the models that stand in for an agent's
// own from doing so. seen are the models that are checked already.
func checkFallback(ctx context.Context, g *agents.Graph, ag *agents.Agent, seen map[modelKey]bool) []agents.Finding {
	var found []agents.Finding
	req, err := ag.Turn([]agents.Input{{Path: "check", Data: []byte("check")}})
	if err != nil {
		return nil // found already
	}
	for i, spec := range ag.Settings.Fallback {
		at := agents.Finding{Agent: ag.Name}
		at.File, at.Line, at.Col = g.FallbackPlace(ag, i)
		if key := keyOf(spec); !seen[key] {
			seen[key] = true
			found = append(found, checkModel(ctx, g, spec, at)...)
		}
		unfit := func(why string) {
			f := at
			f.Severity = agents.SeverityWarning
			f.Msg = fmt.Sprintf("the model %s cannot stand in for that of %s: %s", modelName(spec), ag.Name, why)
			f.Hint = "take it out of fallback:, or take another one"
			found = append(found, f)
		}
		if req.Spec != nil {
			if c, err := constraint.Compile(*req.Spec, req.ConstraintOptions); err == nil {
				if _, err := c.Admit(engineOf(ctx, spec)); err != nil {
					unfit(refusalFinding(err, "").Msg)
				}
			}
		}
		if len(ag.Settings.Tools) > 0 && !callsTools(ctx, spec) {
			unfit("it calls no tools")
		}
	}
	return found
}
