package acp

import (
	"encoding/json"
	"fmt"
	"strings"

	"agentgraph/record"
	"agentgraph/serve"
)

// MetaKey is our member of _meta.
const MetaKey = "agentgraph/v1"

// announces reports whether a client's capabilities name us.
func announces(meta map[string]any) bool {
	v, ok := meta[MetaKey]
	return ok && v != nil && v != false
}

// capabilities is what the metadata can carry.
func capabilities() map[string]any {
	return map[string]any{MetaKey: map[string]any{
		"task":   map[string]any{"schema_version": record.SchemaVersion},
		"prompt": promptMembers,
	}}
}

// promptMembers are the members that a prompt's metadata may have.
var promptMembers = []string{"schema", "regex", "lark", "llg", "enforce", "formats", "system", "model", "repair", "max_output_tokens", "no_tools"}

// promptMeta shapes one prompt. The names are those of the MCP tool respond.
type promptMeta struct {
	serve.Promise
	System          string `json:"system"`
	Model           string `json:"model"`
	Repair          *bool  `json:"repair"`
	MaxOutputTokens *int   `json:"max_output_tokens"`
	NoTools         bool   `json:"no_tools"`
}

// promptCall reads our metadata of a prompt out of its parameters, as they
// came: the order of a schema's members is meaning.
func promptCall(params json.RawMessage) (serve.Call, error) {
	var c serve.Call
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return c, err
	}
	raw := p.Meta[MetaKey]
	if raw == nil || string(raw) == "null" {
		return c, nil
	}
	var m promptMeta
	if err := serve.Decode(raw, &m); err != nil {
		return c, &serve.ArgumentError{Argument: "_meta", Reason: fmt.Sprintf("%s: %v; it takes %s", MetaKey, err, strings.Join(promptMembers, ", "))}
	}
	spec, err := m.Spec()
	if err != nil {
		return c, err
	}
	c = serve.Call{
		Spec: spec, Enforce: m.Enforce, Formats: m.Formats, System: m.System, Model: m.Model, Confined: true,
		Repair: m.Repair, MaxOutputTokens: m.MaxOutputTokens, NoTools: m.NoTools,
	}
	return c, nil
}

// taskMeta is the record as a response carries it.
func taskMeta(rec *record.Record) (map[string]any, error) {
	b, err := record.Marshal(rec)
	if err != nil {
		return nil, err
	}
	return map[string]any{MetaKey: map[string]any{"task": json.RawMessage(b)}}, nil
}
