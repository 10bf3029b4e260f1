package agents

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Mermaid is the graph as a Mermaid flowchart. Folders that no agent writes
// are drawn as inputs.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	ids := g.nodeIDs()
	for _, a := range g.Agents {
		fmt.Fprintf(&b, "  %s[\"%s\"]\n", ids[a.Name], mermaidText(a.Name))
	}
	for _, s := range g.sources() {
		fmt.Fprintf(&b, "  %s[/\"%s\"/] --> %s\n", ids["/"+s.folder], mermaidText(s.folder), ids[s.agent])
	}
	for _, e := range g.Edges() {
		fmt.Fprintf(&b, "  %s --> %s\n", ids[e.From], ids[e.To])
	}
	return b.String()
}

// DOT is the graph in Graphviz' language.
func (g *Graph) DOT() string {
	var b strings.Builder
	b.WriteString("digraph agentgraph {\n  rankdir=LR;\n")
	for _, a := range g.Agents {
		fmt.Fprintf(&b, "  %s [shape=box];\n", dotText(a.Name))
	}
	for _, s := range g.sources() {
		fmt.Fprintf(&b, "  %s [shape=folder];\n  %s -> %s;\n", dotText(s.folder), dotText(s.folder), dotText(s.agent))
	}
	for _, e := range g.Edges() {
		fmt.Fprintf(&b, "  %s -> %s;\n", dotText(e.From), dotText(e.To))
	}
	b.WriteString("}\n")
	return b.String()
}

// JSON is the graph as one JSON object.
func (g *Graph) JSON() ([]byte, error) {
	type agentJSON struct {
		Name    string   `json:"name"`
		Inputs  []string `json:"inputs"`
		Output  string   `json:"output"`
		Join    string   `json:"join"`
		MaxHops int      `json:"max_hops"`
		Model   string   `json:"model"`
		Error   string   `json:"error,omitempty"`
	}
	out := struct {
		Agents []agentJSON `json:"agents"`
		Edges  []Edge      `json:"edges"`
	}{Agents: []agentJSON{}, Edges: g.Edges()}
	if out.Edges == nil {
		out.Edges = []Edge{}
	}
	for _, a := range g.Agents {
		j := agentJSON{
			Name: a.Name, Inputs: []string{}, Output: g.Rel(a.OutputDir), Join: a.Settings.Join,
			MaxHops: a.Settings.MaxHops, Model: a.Settings.Model,
		}
		for _, in := range a.Inputs {
			j.Inputs = append(j.Inputs, g.Rel(in))
		}
		if a.Err != nil {
			j.Error = a.Err.Error()
		}
		out.Agents = append(out.Agents, j)
	}
	return json.MarshalIndent(out, "", "  ")
}

type source struct{ folder, agent string }

// sources are the input folders that no agent writes.
func (g *Graph) sources() []source {
	written := map[string]bool{}
	for _, a := range g.Agents {
		written[a.OutputDir] = true
	}
	var list []source
	for _, a := range g.Agents {
		for _, in := range a.Inputs {
			if !written[in] {
				list = append(list, source{g.Rel(in), a.Name})
			}
		}
	}
	return list
}

// nodeIDs gives every agent and every source folder a plain word, because an
// agent may be called "end".
func (g *Graph) nodeIDs() map[string]string {
	ids := map[string]string{}
	for i, a := range g.Agents {
		ids[a.Name] = fmt.Sprintf("a%d", i)
	}
	for _, s := range g.sources() {
		if ids["/"+s.folder] == "" {
			ids["/"+s.folder] = fmt.Sprintf("f%d", len(ids))
		}
	}
	return ids
}

func mermaidText(s string) string {
	return strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(Printable(s))
}

func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(Printable(s)) + `"`
}
