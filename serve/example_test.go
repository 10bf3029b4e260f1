package serve_test

import (
	"context"
	"fmt"
	"os"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/model/script"
	"agentgraph/serve"
)

// only opens one model, whatever it is called.
type only struct{ m model.Model }

func (o only) Model(context.Context, string) (model.Model, error) { return o.m, nil }

// Two calls of one thread. The schema holds for the first alone.
func ExampleService_Respond() {
	state, err := os.MkdirTemp("", "state") // threads and the log
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(state)
	m, err := script.New("answers.yaml", []byte(`
constraints: none
replies:
  - {match: capital, text: '{"city": "Paris"}'}
default: {text: You asked before.}
`), script.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	svc, err := serve.New(serve.Config{Models: only{m}, StateDir: state, Load: agents.LoadOptions{DefaultModel: "script:answers.yaml"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer svc.Close()
	schema := &constraint.Spec{Kind: constraint.JSON, Source: []byte(`{"type": "object", "properties": {"city": {"type": "string"}}}`)}
	for _, c := range []serve.Call{
		{Prompt: "What is the capital of France?", Spec: schema, Enforce: "validate", Thread: "trip"},
		{Prompt: "And again?", Thread: "trip"},
	} {
		rec, err := svc.Respond(context.Background(), c)
		if err != nil {
			fmt.Println(err)
			return
		}
		answer, _ := rec.Answer()
		fmt.Println(rec.OutputValidation.Status, len(rec.Request.Messages), answer)
	}
	// Output:
	// valid 2 {"city": "Paris"}
	// not_requested 3 You asked before.
}
