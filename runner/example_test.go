package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/model/script"
	"agentgraph/runner"
)

// only opens one model, whatever the settings call it.
type only struct{ m model.Model }

func (o only) Model(context.Context, string) (model.Model, error) { return o.m, nil }

// An agent, an input and a model: one answer.
func ExampleRunner_Once() {
	root, err := os.MkdirTemp("", "graph")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	for name, text := range map[string]string{
		"agents/greeter/system/role.md":               "You greet people.",
		"agents/greeter/system/.schema-greeting.json": `{"type": "object", "properties": {"name": {"const": "Ann"}}, "required": ["name"], "additionalProperties": false}`,
		"agents/greeter/input/ann.txt":                "Ann is here.",
		"agents/greeter/agent.yaml":                   "output: {enforce: validate}\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		os.MkdirAll(filepath.Dir(path), 0o777)
		os.WriteFile(path, []byte(text), 0o666)
	}
	m, err := script.New("answers.yaml", []byte("constraints: none\nreplies: [{match: Ann, text: '{\"name\": \"Ann\"}'}]"), script.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.New(runner.Config{
		Root: root, Load: agents.LoadOptions{Model: "script:answers.yaml"},
		Models: only{m},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	sum, err := r.Once(context.Background())
	fmt.Println(sum.Completed, err)
	answer, _ := os.ReadFile(filepath.Join(root, "agents", "greeter", "output", "greeting_0.json"))
	fmt.Println(string(answer))
	// Output:
	// 1 <nil>
	// {"name": "Ann"}
}
