package constraint_test

import (
	"context"
	"errors"
	"fmt"

	"agentgraph/constraint"
)

// Answers are validated with exact numbers; what is wrong is told by place,
// never by value.
func ExampleConstraint_Validate() {
	spec := constraint.Spec{Kind: constraint.JSON, Source: []byte(`{
		"type": "object",
		"properties": {"rating": {"type": "integer", "minimum": 1, "maximum": 5}},
		"required": ["rating"],
		"additionalProperties": false
	}`)}
	c, err := constraint.Compile(spec, constraint.Options{Enforce: constraint.EnforceValidate})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, answer := range []string{`{"rating": 4}`, `{"rating": 4.000000000000000001}`, `{"rating": 3`} {
		v := c.Validate(context.Background(), answer)
		fmt.Println(v.Valid, v.Diagnostics)
	}
	// Output:
	// true []
	// false [{schema_violation /rating /properties/rating/type}]
	// false [{malformed_json  }]
}

// A schema that cannot be held is refused before anything is asked of a model.
func ExampleCompile() {
	spec := constraint.Spec{Kind: constraint.JSON, File: "order.json", Source: []byte(`{
  "type": "object",
  "properties": {"id": {"$ref": "https://example.com/id.json"}}
}`)}
	_, err := constraint.Compile(spec, constraint.Options{})
	var refusal *constraint.Refusal
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Line, refusal.Construct, refusal.Path)
	}
	// Output: 3 $ref /properties/id/$ref
}
