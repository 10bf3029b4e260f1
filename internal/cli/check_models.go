package cli

import (
	"fmt"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model/script"
)

// checkTools finds an agent that lists tools and whose model declares none:
// each of its turns would be refused.
func checkTools(g *agents.Graph, ag *agents.Agent) []agents.Finding {
	spec := ag.Settings.ModelSpec
	if len(ag.Settings.Tools) == 0 || callsTools(spec) {
		return nil
	}
	f := agents.Finding{Severity: agents.SeverityError, Agent: ag.Name,
		Msg:  fmt.Sprintf("tools: lists some, and the model %s declares that it calls none", modelName(spec)),
		Hint: "use a model that calls tools, or remove tools:"}
	f.File, f.Line, f.Col = g.ToolsPlace(ag)
	return []agents.Finding{f}
}

// callsTools reports whether the model may call tools, as far as it says so
// without being loaded. A script or plug-in that cannot be opened is found
// elsewhere.
func callsTools(spec agents.ModelSpec) bool {
	switch {
	case spec.Script != "":
		if m, err := script.Open(spec.Script); err == nil {
			defer m.Close()
			return m.Capabilities().Tools
		}
	case spec.Plugin != nil:
		if m, err := openPlugin(spec); err == nil {
			defer m.Close()
			return m.Capabilities().Tools
		}
	}
	return true
}

// checkFallback finds what would keep the models that stand in for an agent's
// own from doing so. seen are the models that are checked already.
func checkFallback(g *agents.Graph, ag *agents.Agent, seen map[modelKey]bool) []agents.Finding {
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
			found = append(found, checkModel(g, spec, at)...)
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
				if _, err := c.Admit(engineOf(spec)); err != nil {
					unfit(refusalFinding(err, "").Msg)
				}
			}
		}
		if len(ag.Settings.Tools) > 0 && !callsTools(spec) {
			unfit("it calls no tools")
		}
	}
	return found
}
