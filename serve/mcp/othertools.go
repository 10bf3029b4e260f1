package mcp

import (
	"context"
	"errors"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/agents"
	"agentgraph/serve"
	"agentgraph/tools"
)

func (s *Server) checkTool() tool {
	return tool{
		name: "check", title: "Check a schema, an agent or the graph", readOnly: true,
		description: "Says what is wrong before anything runs: with schema, regex, lark or llg whether answers can be held to it and by which models, otherwise the faults of an agent or of the whole graph.",
		in:          checkIn, out: checkOut,
		run: s.check,
	}
}

func (s *Server) check(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var args struct {
		serve.Promise
		Agent string `json:"agent"`
	}
	if err := arguments(req, &args); err != nil {
		return toolError(err), nil
	}
	spec, err := args.Spec()
	switch {
	case err != nil:
	case spec != nil && args.Agent != "":
		err = errors.New("agent: it and a promise exclude each other")
	case args.Enforce != "" && args.Enforce != "mask" && args.Enforce != "validate":
		err = errors.New("enforce: it is mask or validate")
	case args.Formats != "" && args.Formats != "mask" && args.Formats != "assert" && args.Formats != "ignore":
		err = errors.New("formats: it is mask, assert or ignore")
	}
	if err != nil {
		return toolError(err), nil
	}
	report, err := s.cfg.Check(ctx, CheckRequest{Spec: spec, Enforce: args.Enforce, Formats: args.Formats, Agent: args.Agent})
	if err != nil {
		return toolError(err), nil
	}
	out := struct {
		Findings []agents.Finding `json:"findings"`
		Models   []ModelSupport   `json:"models,omitempty"`
	}{report.Findings, report.Models}
	if out.Findings == nil {
		out.Findings = []agents.Finding{}
	}
	return structured(out)
}

func (s *Server) approveTool() tool {
	return tool{
		name: "approve", title: "Decide about a tool call that waits", destructive: true,
		description: "Tools with policy: ask wait for a person's decision. Without an id the waiting calls are listed; with one the call runs, or with deny does not. Ask the person first.",
		in:          approveIn, out: approveOut,
		run: s.approve,
	}
}

func (s *Server) approve(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var args struct {
		ID   string `json:"id"`
		Deny bool   `json:"deny"`
	}
	if err := arguments(req, &args); err != nil {
		return toolError(err), nil
	}
	out := struct {
		Waiting []tools.Question `json:"waiting"`
		Decided string           `json:"decided,omitempty"`
	}{}
	switch {
	case args.ID != "":
		if err := s.svc.Decide(args.ID, !args.Deny); err != nil {
			return toolError(err), nil
		}
		if out.Decided = "approved"; args.Deny {
			out.Decided = "denied"
		}
	case args.Deny:
		return toolError(errors.New("deny: name the call's id; approve without an id lists those that wait")), nil
	}
	var err error
	if out.Waiting, err = s.svc.Waiting(); err != nil {
		return toolError(err), nil
	}
	if out.Waiting == nil {
		out.Waiting = []tools.Question{}
	}
	return structured(out)
}

// cut is the beginning of a text, at most n bytes and whole characters.
func cut(s string, n int) string { return strings.ToValidUTF8(s[:min(n, len(s))], "") }
