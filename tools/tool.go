package tools

import (
	"context"
	"encoding/json"

	"agentgraph/model"
)

// Tool is something a model may call. It is safe for use by many goroutines.
type Tool interface {
	// Spec is the name, the description and the JSON Schema of the arguments.
	Spec() model.Tool
	// Call runs the tool. An error is for the model to read: one sentence
	// that says what is wrong. When ctx ends, Call returns soon.
	Call(ctx context.Context, c Call) (Output, error)
}

// Guide is a Tool with a text for the system message.
type Guide interface {
	Guidance() string
}

// Call is one call of a tool.
type Call struct {
	ID        string
	Arguments json.RawMessage // a JSON object
	From      Caller
	// Keep is how many bytes of the result are of use to the caller.
	Keep int
}

// Caller is the turn that calls.
type Caller struct {
	Agent, TurnID string
	// Hops are the edges that the turn's input has passed.
	Hops int
}

// Output is what a tool answers.
type Output struct {
	Text string
	// Bytes and SHA256 are of the whole where Text is only its beginning;
	// an empty SHA256 means that Text is the whole.
	Bytes  int64
	SHA256 string
	// ExitStatus of a program.
	ExitStatus *int
}

// Result is a call as the model and the record see it.
type Result struct {
	// Text is what the model reads; of a failure, why.
	Text string
	// Bytes and SHA256 are of the whole result; nil and empty when there was
	// none.
	Bytes  *int64
	SHA256 string
	// Failed holds the reason of a failure, in more detail than Text.
	Failed     string
	ExitStatus *int
}
