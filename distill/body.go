package distill

import (
	"encoding/json"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/model/openai"
)

// Servers are the formats of Body.
func Servers() []string { return openai.Dialects() }

// Body is what a server of a kind would be sent for the request: the path
// below its address, and the JSON. weak says what the server takes and does
// not hold.
func (b *Rebuilt) Body(server string) (path string, body json.RawMessage, weak, err error) {
	req := &model.Request{Messages: b.Messages, Tools: b.Tools, Sampling: b.Sampling, Solo: b.Determinism == "solo"}
	if c := b.Constraint; c != nil {
		con, err := constraint.Compile(
			constraint.Spec{Kind: c.Kind, Source: []byte(c.Source), File: c.File},
			constraint.Options{Enforce: constraint.EnforceValidate, Formats: c.Formats})
		if err != nil {
			return "", nil, nil, err
		}
		req.Constraint = con
	}
	name := ""
	if b.Model != nil {
		name = b.Model.Name
	}
	path, body, weak, err = openai.Body(server, name, false, req)
	return path, body, weak, err
}
