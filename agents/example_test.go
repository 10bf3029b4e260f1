package agents_test

import (
	"fmt"
	"os"
	"path/filepath"

	"agentgraph/agents"
)

// A folder is an agent. What is wrong with a graph is a list with places, and
// stops only the agent that has it.
func ExampleLoad() {
	root, err := os.MkdirTemp("", "graph")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	for name, text := range map[string]string{
		"agents/writer/system/role.md": "You write.",
		"agents/editor/system/role.md": "You edit.",
		"agents/editor/agent.yaml":     "inputs: [../writer/output]\ntemperatur: 1\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		os.MkdirAll(filepath.Dir(path), 0o777)
		os.WriteFile(path, []byte(text), 0o666)
	}
	g, err := agents.LoadWith(root, agents.LoadOptions{DefaultModel: "script:answers.yaml"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range g.Agents {
		fmt.Println(a.Name, a.Err == nil)
	}
	for _, f := range g.Findings {
		fmt.Printf("%s:%d:%d: %s\n", f.File, f.Line, f.Col, f.Msg)
	}
	// Output:
	// editor false
	// writer true
	// agents/editor/agent.yaml:2:1: unknown key "temperatur"
}
