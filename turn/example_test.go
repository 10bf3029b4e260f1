package turn_test

import (
	"context"
	"fmt"

	"agentgraph/constraint"
	"agentgraph/model/script"
	"agentgraph/turn"
)

// One turn, with a scripted model that declares no constraint: validation
// decides.
func ExampleRun() {
	m, err := script.New("answers.yaml", []byte(`
constraints: none
replies:
  - match: kettle
    text: '{"rating": 2}'
`), script.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	rec := turn.Run(context.Background(), &turn.Request{
		System: []string{"You rate reviews."},
		User:   "The kettle leaks.",
		Spec: &constraint.Spec{Kind: constraint.JSON, Source: []byte(
			`{"type": "object", "properties": {"rating": {"type": "integer"}}, "required": ["rating"], "additionalProperties": false}`)},
		ConstraintOptions: constraint.Options{Enforce: constraint.EnforceValidate},
		SchemaInPrompt:    true,
		Model:             m,
	})
	answer, ok := rec.Answer()
	fmt.Println(answer, ok)
	fmt.Println(rec.OutputValidation.Status, *rec.OutputValidation.EnforcedBy)
	// Output:
	// {"rating": 2} true
	// valid validation
}
