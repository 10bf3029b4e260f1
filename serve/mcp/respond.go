package mcp

import (
	"context"
	_ "embed"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/record"
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

type respondArgs struct {
	serve.Promise
	Prompt          string `json:"prompt"`
	System          string `json:"system"`
	Model           string `json:"model"`
	Repair          *bool  `json:"repair"`
	MaxOutputTokens *int   `json:"max_output_tokens"`
	Thread          string `json:"thread"`
	NoTools         bool   `json:"no_tools"`
}

func (s *Server) respond(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if req.Params.RequestState != "" {
		return s.nextRound(ctx, req)
	}
	var args respondArgs
	if err := arguments(req, &args); err != nil {
		return argumentsRefused(err)
	}
	spec, err := args.Spec()
	if err != nil {
		return argumentsRefused(err)
	}
	call := serve.Call{
		Prompt: args.Prompt, System: args.System, Model: args.Model, Confined: true, Spec: spec, Enforce: args.Enforce, Formats: args.Formats,
		Repair: args.Repair, MaxOutputTokens: args.MaxOutputTokens, Thread: args.Thread, NoTools: args.NoTools,
	}
	if s.byRounds(req.Session) {
		return s.respondInRounds(ctx, req, call)
	}
	progress := s.progress(ctx, req, args.MaxOutputTokens)
	defer progress.end()
	call.Approver, call.Progress = s.approver(req.Session), progress.step
	return respondResult(s.svc.Respond(ctx, call))
}

func respondResult(rec *record.Record, err error) (*sdk.CallToolResult, error) {
	var wrong *serve.ArgumentError
	switch {
	case errors.As(err, &wrong):
		return argumentsRefused(err)
	case err != nil:
		return nil, err
	}
	return turnResult(rec)
}
