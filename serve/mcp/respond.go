package mcp

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/constraint"
	"agentgraph/serve"
)

// constructs is the short form of the table of docs/mcp.md.
//
//go:embed constructs.txt
var constructs string

func (s *Server) respondTool() tool {
	return tool{
		name: "respond", title: "Ask a model once",
		description: "Asks a model once. With schema, regex, lark or llg the answer is held to it token by token while it is generated, validated, and returned as data: " +
			"structuredContent.output is the parsed value, structuredContent.task the record of the turn. " +
			"A promise that cannot be held is refused before a token; the error names the construct and its path.\n" + constructs,
		in: respondIn, out: respondOut,
		run: s.respond,
	}
}

// promise are the arguments that shape an answer.
type promise struct {
	Schema  json.RawMessage `json:"schema"`
	Regex   *string         `json:"regex"`
	Lark    *string         `json:"lark"`
	LLG     json.RawMessage `json:"llg"`
	Enforce string          `json:"enforce"`
}

// spec is the one promise that is given, in the bytes that came; nil is none.
func (p promise) spec() (*constraint.Spec, error) {
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
		case o.raw == nil || string(o.raw) == "null":
		case o.raw[0] != '{':
			return nil, fmt.Errorf("%s: give a JSON object", o.name)
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
			return nil, fmt.Errorf("%s: it is empty; an empty answer is no answer", o.name)
		default:
			add(o.name, o.kind, *o.text)
		}
	}
	if len(given) > 1 {
		return nil, fmt.Errorf("%s are given together; an answer is held to one of schema, regex, lark and llg", strings.Join(given, " and "))
	}
	return spec, nil
}

type respondArgs struct {
	promise
	Prompt          string `json:"prompt"`
	System          string `json:"system"`
	Model           string `json:"model"`
	Repair          *bool  `json:"repair"`
	MaxOutputTokens *int   `json:"max_output_tokens"`
	Thread          string `json:"thread"`
	NoTools         bool   `json:"no_tools"`
}

func (s *Server) respond(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var args respondArgs
	if err := arguments(req, &args); err != nil {
		return argumentsRefused(err)
	}
	spec, err := args.spec()
	if err != nil {
		return argumentsRefused(err)
	}
	progress := s.progress(ctx, req, args.MaxOutputTokens)
	defer progress.end()
	rec, err := s.svc.Respond(ctx, serve.Call{
		Prompt: args.Prompt, System: args.System, Model: args.Model, Confined: true, Spec: spec, Enforce: args.Enforce,
		Repair: args.Repair, MaxOutputTokens: args.MaxOutputTokens, Thread: args.Thread, NoTools: args.NoTools,
		Approver: s.svc.Desk(), Progress: progress.step,
	})
	var wrong *serve.ArgumentError
	switch {
	case errors.As(err, &wrong):
		return argumentsRefused(err)
	case err != nil:
		return nil, err
	}
	return turnResult(rec)
}
