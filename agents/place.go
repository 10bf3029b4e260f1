package agents

import "path/filepath"

// ModelPlace is where the settings name the file of the agent's model: a
// file, relative to the graph, with line and column. The file is empty where
// they do not, because the model comes from the command line or is the default.
func (g *Graph) ModelPlace(a *Agent) (file string, line, col int) {
	spec := a.Settings.ModelSpec
	key := "gguf"
	if spec.Script != "" {
		key = "script"
	}
	name := a.Settings.Model
	if g.Models[name].Name != "" {
		p := g.places["models."+name+"."+key]
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
