package agents

import (
	"fmt"
	"path/filepath"
)

// ModelPlace is where the settings name the file of the agent's model: a
// file, relative to the graph, with line and column. The file is empty where
// they do not, because the model comes from the command line or is the default.
func (g *Graph) ModelPlace(a *Agent) (file string, line, col int) {
	spec := a.Settings.ModelSpec
	name := a.Settings.Model
	if g.Models[name].Name != "" {
		p := g.places["models."+name+"."+spec.kind()]
		return GraphFile, p.line, p.col
	}
	// A path where a name could stand.
	if p, ok := a.places["model"]; ok && a.modelText == name {
		return rel(a.root, filepath.Join(a.Dir, AgentFile)), p.line, p.col
	}
	if p, ok := g.places["defaults.model"]; ok && a.modelText == name {
		return GraphFile, p.line, p.col
	}
	return "", 0, 0
}

// FallbackPlace is where the settings name the model that stands in for the
// agent's own as the i-th.
func (g *Graph) FallbackPlace(a *Agent, i int) (file string, line, col int) {
	spec := a.Settings.Fallback[i]
	if g.Models[spec.Name].Name != "" {
		p := g.places["models."+spec.Name+"."+spec.kind()]
		return GraphFile, p.line, p.col
	}
	if p, ok := a.places["fallback"]; ok {
		return rel(a.root, filepath.Join(a.Dir, AgentFile)), p.line, p.col
	}
	p := g.places["defaults.fallback"]
	return GraphFile, p.line, p.col
}

// ToolPlace is where the i-th entry of the agent's tools stands; with i < 0,
// the list.
func (g *Graph) ToolPlace(a *Agent, i int) (file string, line, col int) {
	key := "tools"
	if i >= 0 {
		key = fmt.Sprintf("tools[%d]", i)
	}
	if p, ok := a.places[key]; ok {
		return rel(a.root, filepath.Join(a.Dir, AgentFile)), p.line, p.col
	}
	p := g.places["defaults."+key]
	return GraphFile, p.line, p.col
}

// kind is the key that says what runs the model.
func (s ModelSpec) kind() string {
	switch {
	case s.Script != "":
		return "script"
	case s.Server != "":
		return "server"
	case s.Plugin != nil:
		return "plugin"
	}
	return "gguf"
}
