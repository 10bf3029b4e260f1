package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/record"
	"agentgraph/serve"
	"agentgraph/turn"
)

// Config of a Server.
type Config struct {
	Service *serve.Service
	// Version is the program's.
	Version string
	// Check carries out the tool check; without it there is none.
	Check func(context.Context, CheckRequest) (*CheckReport, error)
	// Warn is told of lines on stdin that are no messages. Nil is allowed.
	Warn func(error)
	// Log is told of requests at level Debug; nil logs nothing.
	Log *slog.Logger
}

// CheckRequest is what the tool check looks at: a promise, an agent, or with
// neither the whole graph.
type CheckRequest struct {
	Spec    *constraint.Spec
	Enforce string
	Formats string
	Agent   string
}

// CheckReport is what it found.
type CheckReport struct {
	Findings []agents.Finding
	// Models says of a promise what would hold it, by model.
	Models []ModelSupport
}

// ModelSupport is what would hold answers of one model.
type ModelSupport struct {
	Model      string                `json:"model"`
	Engine     string                `json:"engine"`
	EnforcedBy constraint.EnforcedBy `json:"enforced_by,omitempty"`
	Refused    string                `json:"refused,omitempty"`
}

// Server speaks MCP to any number of clients.
type Server struct {
	cfg Config
	svc *serve.Service
	sdk *sdk.Server
	resources
	rounds rounds
}

// maxMessage bounds one message of a client: a prompt and a schema of the
// sizes that are allowed, with every byte escaped.
const maxMessage = 16 << 20

// New makes a server; it speaks to nobody yet.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, svc: cfg.Service, resources: resources{
		folders: map[string]*folderState{}, subs: map[string]map[*sdk.ServerSession]bool{}, marks: map[string]string{},
	}}
	s.sdk = sdk.NewServer(
		&sdk.Implementation{Name: "agentgraph", Title: "agentgraph", Version: cfg.Version},
		&sdk.ServerOptions{
			Instructions:       s.instructions(),
			Logger:             cfg.Log,
			Capabilities:       &sdk.ServerCapabilities{},
			SubscribeHandler:   s.subscribe,
			UnsubscribeHandler: s.unsubscribe,
		})
	s.addTools()
	if s.svc.Root() != "" {
		s.addResources()
		s.sdk.AddReceivingMiddleware(s.refreshed)
	}
	return s
}

func (s *Server) instructions() string {
	text := "respond asks a local model once; with a schema the answer is valid JSON of that shape, held while it is generated."
	if s.svc.Root() != "" {
		text += " Agents are folders: list_agents names them, send drops an input and can wait for the answer, answers lists what was published."
	}
	return text
}

// ServeStdio speaks to one client until it ends the conversation or ctx ends.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	stop := s.watch(ctx)
	defer stop()
	s.sdk.AddReceivingMiddleware(endWith(ctx))
	err := s.sdk.Run(ctx, &stdio{in: in, out: out, warn: s.cfg.Warn})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("reading messages of the protocol: %w", err)
	}
	return nil
}

// tool is one tool with its schemas as JSON.
type tool struct {
	name, title, description string
	in, out                  string
	readOnly, destructive    bool
	run                      func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)
}

func (s *Server) addTools() {
	list := []tool{s.respondTool(), s.approveTool()}
	if s.svc.Root() != "" {
		list = append(list, s.listAgentsTool(), s.sendTool(), s.answersTool())
	}
	if s.cfg.Check != nil {
		list = append(list, s.checkTool())
	}
	for _, t := range list {
		no := false
		s.sdk.AddTool(&sdk.Tool{
			Name: t.name, Title: t.title, Description: t.description,
			InputSchema: json.RawMessage(t.in), OutputSchema: json.RawMessage(t.out),
			Annotations: &sdk.ToolAnnotations{
				Title: t.title, ReadOnlyHint: t.readOnly, DestructiveHint: &t.destructive, OpenWorldHint: &no,
			},
		}, t.run)
	}
}

// arguments decodes a call's arguments. What is wrong with them is for the
// caller to read.
func arguments(req *sdk.CallToolRequest, into any) error {
	raw := req.Params.Arguments
	if len(raw) == 0 || string(raw) == "null" {
		raw = []byte("{}")
	}
	if err := serve.Decode(raw, into); err != nil {
		return fmt.Errorf("%w; the tool's input schema says what it takes", err)
	}
	return nil
}

// structured is a result with a value and the same as text.
func structured(v any) (*sdk.CallToolResult, error) {
	b, err := encode(v)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: string(b)}},
		StructuredContent: json.RawMessage(b),
	}, nil
}

// toolError is a result that says what went wrong.
func toolError(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{
		Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}},
		IsError: true,
	}
}

// task is the structured part of a result about a turn. Output is the parsed
// answer, in the bytes of the answer.
type task struct {
	Output json.RawMessage `json:"output"`
	Task   json.RawMessage `json:"task"`
}

// turnResult is a turn as a result: its answer, or what went wrong.
func turnResult(rec *record.Record) (*sdk.CallToolResult, error) {
	b, err := record.Marshal(rec)
	if err != nil {
		return nil, err
	}
	res := &sdk.CallToolResult{StructuredContent: task{Output: serve.Structured(rec), Task: b}}
	text, ok := rec.Answer()
	if !ok {
		text, res.IsError = failure(rec), true
		if rec.Outcome == nil {
			res.StructuredContent = map[string]json.RawMessage{"task": b}
		}
	}
	res.Content = []sdk.Content{&sdk.TextContent{Text: text}}
	return res, nil
}

// failure says what became of a turn without an answer.
func failure(rec *record.Record) string {
	if e := rec.Error; e != nil {
		return string(e.Code) + ": " + e.Error()
	}
	return "the turn ended without an answer"
}

// argumentsRefused is the result of a call whose arguments make no turn.
func argumentsRefused(err error) (*sdk.CallToolResult, error) {
	return turnResult(turn.Refuse(&turn.Request{}, &record.Error{Code: record.ArgumentsInvalid, Message: err.Error()}))
}

func encode(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
