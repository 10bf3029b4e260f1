package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"agentgraph/record"
	"agentgraph/serve"
)

// Config of a connection.
type Config struct {
	// Service answers. It is not closed.
	Service *serve.Service
	// Agent is the mode that sessions begin in; empty is the graph's defaults.
	Agent string
	// Version is what the client is told of this program.
	Version string
	// ServersWait is how long session/new waits for the client's MCP servers; 0
	// is 20 s.
	ServersWait time.Duration
	// Warn is told of what a client sent that is not used, and of messages that
	// are none. Nil is allowed.
	Warn func(error)
}

// maxSessions bounds what one client can open on a connection.
const maxSessions = 4096

// server is one connection.
type server struct {
	cfg  Config
	conn *acp.Connection
	in   *lines

	mu        sync.Mutex
	sessions  map[acp.SessionId]*session
	announced bool // the client reads our metadata
	closed    bool
}

// grace is how long a client that does not read is waited for at the end. What
// it asked before is answered by then, a prompt as cancelled.
const grace = time.Second

// Serve answers one client until it closes in, or ctx ends. Turns that run then
// are cancelled.
func Serve(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	if cfg.Agent != "" && !cfg.Service.HasAgent(cfg.Agent) {
		return &serve.ArgumentError{Argument: "agent", Reason: "no agent is called " + cfg.Agent}
	}
	s := &server{cfg: cfg, sessions: map[acp.SessionId]*session{}}
	lines := &output{w: out}
	s.in = newLines(in, lines, s.warn)
	s.conn = acp.NewConnection(s.handle, lines, s.in)
	// What cannot be read is reported by lines, without its content.
	s.conn.SetLogger(slog.New(slog.DiscardHandler))
	s.in.begin()
	select {
	case <-s.conn.Done():
	case <-ctx.Done():
		s.in.stop()
	}
	s.mu.Lock()
	s.closed = true
	var servers []*clientServer
	for _, sess := range s.sessions {
		sess.cancel()
		servers = append(servers, sess.servers...)
	}
	s.mu.Unlock()
	closeServers(servers)   // each is killed when it does not end by itself
	s.in.open.Settle(grace) // or a write to the client hangs
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.in.failure()
}

func (s *server) warn(err error) {
	if s.cfg.Warn != nil {
		s.cfg.Warn(err)
	}
}

// handle answers one message. Requests come on goroutines of their own,
// notifications one after the other.
func (s *server) handle(ctx context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
	switch method {
	case acp.AgentMethodInitialize:
		defer s.in.known()
		return call(params, s.initialize)
	case acp.AgentMethodSessionNew:
		return call(params, func(p sessionParams) (acp.NewSessionResponse, error) { return s.newSession(ctx, p) })
	case acp.AgentMethodSessionLoad:
		return call(params, func(p sessionParams) (acp.LoadSessionResponse, error) { return s.loadSession(ctx, p) })
	case acp.AgentMethodSessionResume:
		return call(params, func(p sessionParams) (acp.ResumeSessionResponse, error) { return s.resumeSession(ctx, p) })
	case acp.AgentMethodSessionList:
		return call(params, s.listSessions)
	case acp.AgentMethodSessionClose:
		return call(params, s.closeSession)
	case acp.AgentMethodSessionSetMode:
		return call(params, s.setMode)
	case acp.AgentMethodSessionCancel:
		defer s.in.known()
		return call(params, func(p acp.CancelNotification) (any, error) {
			if sess := s.session(p.SessionId); sess != nil {
				sess.cancel()
			}
			return nil, nil
		})
	case acp.AgentMethodSessionPrompt:
		ctx, ended := s.register(ctx, params)
		defer ended()
		return call(params, func(p acp.PromptRequest) (acp.PromptResponse, error) { return s.prompt(ctx, p, params) })
	}
	return nil, acp.NewMethodNotFound(method)
}

// call reads the parameters of a method and makes its error one of the
// protocol.
func call[P, R any](params json.RawMessage, f func(P) (R, error)) (any, *acp.RequestError) {
	var p P
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, acp.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	if v, ok := any(&p).(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, acp.NewInvalidParams(map[string]any{"error": err.Error()})
		}
	}
	r, err := f(p)
	if err != nil {
		return nil, requestError(err)
	}
	return r, nil
}

// The error codes of the protocol that are used here.
const (
	invalidParams    = -32602
	internalError    = -32603
	resourceNotFound = -32002
)

// requestError says in an error's message what people are to read.
func requestError(err error) *acp.RequestError {
	var re *acp.RequestError
	var wrong *serve.ArgumentError
	var rec *record.Error
	switch {
	case errors.As(err, &re):
		return re
	case errors.As(err, &wrong):
		return &acp.RequestError{Code: invalidParams, Message: err.Error()}
	case errors.As(err, &rec):
		code := internalError
		switch rec.Code {
		case record.ArgumentsInvalid, record.SchemaRefused, record.InputNotText, record.InputTooLarge, record.ContextOverflow:
			code = invalidParams
		}
		return &acp.RequestError{Code: code, Message: rec.Error(), Data: rec}
	}
	return &acp.RequestError{Code: internalError, Message: err.Error()}
}

func (s *server) initialize(p acp.InitializeRequest) (acp.InitializeResponse, error) {
	s.mu.Lock()
	s.announced = announces(p.ClientCapabilities.Meta)
	s.mu.Unlock()
	s.in.initialized()
	return acp.InitializeResponse{
		ProtocolVersion: acp.ProtocolVersionNumber,
		AgentInfo:       &acp.Implementation{Name: "agentgraph", Title: acp.Ptr("agentgraph"), Version: s.cfg.Version},
		AgentCapabilities: acp.AgentCapabilities{
			Meta:        capabilities(),
			LoadSession: true,
			SessionCapabilities: acp.SessionCapabilities{
				List: &acp.SessionListCapabilities{}, Resume: &acp.SessionResumeCapabilities{}, Close: &acp.SessionCloseCapabilities{},
			},
			McpCapabilities:    acp.McpCapabilities{Http: true},
			PromptCapabilities: acp.PromptCapabilities{EmbeddedContext: true},
		},
		AuthMethods: []acp.AuthMethod{},
	}, nil
}
