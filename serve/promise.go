package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentgraph/constraint"
)

// Promise is what an answer is held to, as a JSON object of a protocol says it.
// At most one member beside enforce and formats is given.
type Promise struct {
	Schema  json.RawMessage `json:"schema"`
	Regex   *string         `json:"regex"`
	Lark    *string         `json:"lark"`
	LLG     json.RawMessage `json:"llg"`
	Enforce string          `json:"enforce"`
	Formats string          `json:"formats"`
}

// Spec is the promise that is given, in the bytes that came, since the order of
// a schema's members is meaning; nil is none. The error is an *ArgumentError.
func (p Promise) Spec() (*constraint.Spec, error) {
	var spec *constraint.Spec
	var given []string
	add := func(name string, kind constraint.Kind, source string) {
		given = append(given, name)
		spec = &constraint.Spec{Kind: kind, Source: []byte(source)}
	}
	for _, o := range []struct {
		name string
		kind constraint.Kind
		raw  json.RawMessage
	}{{"schema", constraint.JSON, p.Schema}, {"llg", constraint.LLG, p.LLG}} {
		switch {
		case len(o.raw) == 0 || string(o.raw) == "null":
		case o.raw[0] != '{':
			return nil, argument(o.name, "give a JSON object")
		default:
			add(o.name, o.kind, string(o.raw))
		}
	}
	for _, o := range []struct {
		name string
		kind constraint.Kind
		text *string
	}{{"regex", constraint.Regex, p.Regex}, {"lark", constraint.Lark, p.Lark}} {
		switch {
		case o.text == nil:
		case *o.text == "":
			return nil, argument(o.name, "it is empty; an empty answer is no answer")
		default:
			add(o.name, o.kind, *o.text)
		}
	}
	if len(given) > 1 {
		return nil, argument(strings.Join(given, ", "), "they are given together; an answer is held to one of schema, regex, lark and llg")
	}
	return spec, nil
}

// Decode reads the JSON object of a call's arguments; a member that into does
// not have is an error. The error is for the caller to read: it names members
// and no types of ours.
func Decode(raw json.RawMessage, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field == "":
		return fmt.Errorf("a JSON %s stands where an object belongs", wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Errorf("%s: a JSON %s stands where another type belongs", strings.TrimPrefix(wrong.Field, "Promise."), wrong.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
