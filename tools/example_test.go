package tools_test

import (
	"context"
	"encoding/json"
	"fmt"

	"agentgraph/tools"
)

// A call whose policy is to ask waits at the desk until somebody decides.
func ExampleDesk() {
	asked := make(chan tools.Question, 1)
	desk := &tools.Desk{Tell: func(q tools.Question) { asked <- q }}
	go func() {
		q := <-asked
		fmt.Println(q.Tool, string(q.Arguments))
		desk.Decide(q.ID, false)
	}()
	allowed, err := desk.Approve(context.Background(), tools.Question{Tool: "write_file", Arguments: json.RawMessage(`{"path":"a.txt"}`)})
	fmt.Println(allowed, err)
	// Output:
	// write_file {"path":"a.txt"}
	// false <nil>
}
