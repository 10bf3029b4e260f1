package record

import (
	"bytes"
	"encoding/json"

	"agentgraph/constraint"
	"agentgraph/internal/plainjson"
	"agentgraph/model"
)

// Marshal encodes r as one line of JSON without a line feed. Empty lists are
// [], <, > and & stand as they are, and U+2028 and U+2029 are escaped, so that
// the line is also safe inside a script.
func Marshal(r *Record) ([]byte, error) { return plainjson.Marshal(Normal(r)) }

// MarshalIndent is Marshal for people: indented by two spaces.
func MarshalIndent(r *Record) ([]byte, error) {
	line, err := Marshal(r)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, line, "", "  ")
	return b.Bytes(), err
}

// Normal returns a copy of r in which no list is null; r is not changed.
func Normal(r *Record) *Record {
	c := *r
	if c.SchemaVersion == "" {
		c.SchemaVersion = SchemaVersion
	}
	if c.OutputValidation.Status == "" {
		c.OutputValidation.Status = NotRequested
	}
	c.OutputValidation.Diagnostics = list(c.OutputValidation.Diagnostics)
	c.Inputs = list(c.Inputs)
	c.Outputs = list(c.Outputs)
	c.ToolCalls = list(c.ToolCalls)
	if c.Repair != nil {
		rep := *c.Repair
		rep.RejectedDiagnostics = list(rep.RejectedDiagnostics)
		c.Repair = &rep
	}
	if c.Request != nil {
		req := *c.Request
		req.Messages = list(req.Messages)
		req.Tools = list(req.Tools)
		c.Request = &req
	}
	if c.Lineage != nil {
		lin := *c.Lineage
		lin.Roots = list(lin.Roots)
		c.Lineage = &lin
	}
	return &c
}

func list[T FileRef | ToolCall | constraint.Diagnostic | model.Message | model.Tool](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
