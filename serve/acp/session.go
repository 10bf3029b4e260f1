package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	acp "github.com/coder/acp-go-sdk"
	"github.com/google/uuid"

	"agentgraph/record/store"
	"agentgraph/serve"
)

// noAgent is the mode that asks with the graph's defaults. No folder has this
// name.
const noAgent acp.SessionModeId = "/"

// session is a conversation on this connection.
type session struct {
	id acp.SessionId

	mu      sync.Mutex
	mode    acp.SessionModeId
	cwd     string
	kept    store.Session // as it stands beside the thread
	prompts map[*prompt]bool
	always  map[string]bool // tools that the client allowed for the session
	calls   int             // tool calls so far, for their ids

	servers []*clientServer // that the client brought; guarded by server.mu
}

// prompt is one request that can be cancelled.
type prompt struct {
	session   *session
	cancel    context.CancelFunc
	cancelled bool // by the client; guarded by session.mu
}

// cancel ends what was asked so far.
func (s *session) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.prompts {
		p.cancelled = true
		p.cancel()
	}
}

func (s *session) currentMode() acp.SessionModeId {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// nextCall is an id for a tool's call.
func (s *session) nextCall() acp.ToolCallId {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return acp.ToolCallId(fmt.Sprintf("call_%d", s.calls))
}

func (s *server) session(id acp.SessionId) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// open returns the session of this id, making it where there is none yet.
func (s *server) open(id acp.SessionId) (*session, error) {
	kept := s.cfg.Service.Session(string(id))
	var mode acp.SessionModeId
	if kept.Mode == string(noAgent) || kept.Mode != "" && s.cfg.Service.HasAgent(kept.Mode) {
		mode = acp.SessionModeId(kept.Mode)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess := s.sessions[id]; sess != nil {
		return sess, nil
	}
	if s.closed || len(s.sessions) >= maxSessions {
		return nil, fmt.Errorf("there are %d sessions on this connection; start another one", len(s.sessions))
	}
	sess := &session{id: id, mode: noAgent, prompts: map[*prompt]bool{}, always: map[string]bool{}}
	if s.cfg.Agent != "" {
		sess.mode = acp.SessionModeId(s.cfg.Agent)
	}
	if mode != "" {
		sess.mode = mode
	}
	sess.kept = kept
	s.sessions[id] = sess
	return sess, nil
}

func noSession(id acp.SessionId) error {
	return &acp.RequestError{Code: resourceNotFound, Message: fmt.Sprintf("there is no session %q", id), Data: map[string]any{"sessionId": id}}
}

// sessionParams are those of session/new, load and resume that are used here.
type sessionParams struct {
	SessionID  acp.SessionId     `json:"sessionId"`
	Cwd        string            `json:"cwd"`
	McpServers []json.RawMessage `json:"mcpServers"`
}

// setUp gives a session the servers that the client names for it, in place of
// those it had, and returns what came of them as metadata.
func (s *server) setUp(ctx context.Context, sess *session, cwd string, servers []*clientServer) (map[string]any, error) {
	s.mu.Lock()
	if s.sessions[sess.id] != sess {
		s.mu.Unlock()
		return nil, noSession(sess.id) // closed meanwhile
	}
	old, n := sess.servers, len(servers)
	for _, other := range s.sessions {
		if other != sess {
			n += len(other.servers)
		}
	}
	if s.closed || n > maxServersInAll {
		s.mu.Unlock()
		return nil, &serve.ArgumentError{Argument: "mcpServers", Reason: fmt.Sprintf("with these there are %d on this connection; at most %d are started", n, maxServersInAll)}
	}
	sess.servers = servers
	for _, m := range servers {
		m.start(s.warn)
	}
	announced := s.announced
	s.mu.Unlock()
	sess.mu.Lock()
	sess.cwd = filepath.Clean(cwd)
	sess.mu.Unlock()
	closeServers(old)
	if len(servers) == 0 {
		return nil, nil
	}
	list := s.connected(ctx, servers)
	if !announced {
		return nil, nil
	}
	return map[string]any{MetaKey: map[string]any{"mcpServers": list}}, nil
}

// prepare reads what session/new, load and resume have in common.
func prepare(p sessionParams) ([]*clientServer, error) {
	if !filepath.IsAbs(p.Cwd) {
		return nil, &serve.ArgumentError{Argument: "cwd", Reason: "give the absolute path of a folder"}
	}
	return readServers(p.McpServers, p.Cwd)
}

// promptKey finds a prompt in the context of its request.
type promptKey struct{}

// register makes a prompt known before anything else is read from the client,
// so that a cancel that follows it finds it.
func (s *server) register(ctx context.Context, params json.RawMessage) (context.Context, func()) {
	defer s.in.known()
	var p struct {
		SessionID acp.SessionId `json:"sessionId"`
	}
	_ = json.Unmarshal(params, &p) // what is wrong with them is said later
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[p.SessionID]
	if sess == nil {
		return ctx, cancel
	}
	pr := &prompt{session: sess, cancel: cancel, cancelled: s.closed}
	if s.closed {
		cancel()
	}
	sess.mu.Lock()
	sess.prompts[pr] = true
	sess.mu.Unlock()
	return context.WithValue(ctx, promptKey{}, pr), func() {
		sess.mu.Lock()
		delete(sess.prompts, pr)
		sess.mu.Unlock()
		cancel()
	}
}

func (s *server) newSession(ctx context.Context, p sessionParams) (acp.NewSessionResponse, error) {
	var none acp.NewSessionResponse
	servers, err := prepare(p)
	if err != nil {
		return none, err
	}
	modes, err := s.modes()
	if err != nil {
		return none, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return none, err
	}
	sess, err := s.open(acp.SessionId(id.String()))
	if err != nil {
		return none, err
	}
	meta, err := s.setUp(ctx, sess, p.Cwd, servers)
	if err != nil {
		s.drop(sess)
		return none, err
	}
	if modes != nil {
		modes.CurrentModeId = sess.currentMode()
	}
	return acp.NewSessionResponse{SessionId: sess.id, Modes: modes, Meta: meta}, nil
}

// drop forgets a session and ends what belongs to it.
func (s *server) drop(sess *session) {
	s.mu.Lock()
	if s.sessions[sess.id] == sess {
		delete(s.sessions, sess.id)
	}
	servers := sess.servers
	sess.servers = nil
	s.mu.Unlock()
	sess.cancel() // no prompt finds it any more
	closeServers(servers)
}

// loadSession tells the client what was said in a thread and goes on with it.
func (s *server) loadSession(ctx context.Context, p sessionParams) (acp.LoadSessionResponse, error) {
	var none acp.LoadSessionResponse
	past, modes, meta, err := s.again(ctx, p)
	if err != nil {
		return none, err
	}
	for _, e := range past {
		for _, u := range []acp.SessionUpdate{acp.UpdateUserMessageText(e.User), acp.UpdateAgentMessageText(e.Answer)} {
			if err := s.notify(ctx, p.SessionID, u, nil); err != nil {
				return none, err
			}
		}
	}
	return acp.LoadSessionResponse{Modes: modes, Meta: meta}, nil
}

// resumeSession goes on with a thread and tells nothing of it.
func (s *server) resumeSession(ctx context.Context, p sessionParams) (acp.ResumeSessionResponse, error) {
	_, modes, meta, err := s.again(ctx, p)
	return acp.ResumeSessionResponse{Modes: modes, Meta: meta}, err
}

// again opens the session of a thread that is there.
func (s *server) again(ctx context.Context, p sessionParams) (past []store.Exchange, modes *acp.SessionModeState, meta map[string]any, err error) {
	fail := func(err error) ([]store.Exchange, *acp.SessionModeState, map[string]any, error) {
		return nil, nil, nil, err
	}
	servers, err := prepare(p)
	if err != nil {
		return fail(err)
	}
	past, err = s.cfg.Service.Exchanges(string(p.SessionID), 0)
	known := s.session(p.SessionID) != nil
	var wrong *serve.ArgumentError
	switch {
	case errors.As(err, &wrong), err == nil && len(past) == 0 && !known:
		return fail(noSession(p.SessionID))
	case err != nil:
		return fail(err)
	}
	if modes, err = s.modes(); err != nil {
		return fail(err)
	}
	sess, err := s.open(p.SessionID)
	if err != nil {
		return fail(err)
	}
	if meta, err = s.setUp(ctx, sess, p.Cwd, servers); err != nil {
		if !known {
			s.drop(sess)
		}
		return fail(err)
	}
	if modes != nil {
		modes.CurrentModeId = sess.currentMode()
	}
	return past, modes, meta, nil
}

// closeSession ends what the session is doing; its thread stays.
func (s *server) closeSession(p acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	sess := s.session(p.SessionId)
	if sess == nil {
		return acp.CloseSessionResponse{}, noSession(p.SessionId)
	}
	s.drop(sess)
	return acp.CloseSessionResponse{}, nil
}

// modes are the agents of the graph as it is now; nil without a graph.
func (s *server) modes() (*acp.SessionModeState, error) {
	list, err := s.cfg.Service.Agents()
	if errors.Is(err, serve.ErrNoGraph) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	state := &acp.SessionModeState{AvailableModes: []acp.SessionMode{{
		Id: noAgent, Name: "No agent", Description: acp.Ptr("the graph's defaults, without an agent's prompt"),
	}}}
	for _, a := range list {
		about := "free text"
		switch {
		case a.Error != "":
			about = "cannot run: " + a.Error
		case a.Schema != nil:
			about = fmt.Sprintf("answers held to %s (%s)", a.Schema.File, a.Schema.Kind)
		}
		state.AvailableModes = append(state.AvailableModes, acp.SessionMode{Id: acp.SessionModeId(a.Name), Name: a.Name, Description: &about})
	}
	return state, nil
}

func (s *server) setMode(p acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	sess := s.session(p.SessionId)
	if sess == nil {
		return acp.SetSessionModeResponse{}, noSession(p.SessionId)
	}
	if p.ModeId != noAgent && !s.cfg.Service.HasAgent(string(p.ModeId)) {
		return acp.SetSessionModeResponse{}, &serve.ArgumentError{Argument: "modeId", Reason: fmt.Sprintf("no agent is called %q", p.ModeId)}
	}
	sess.mu.Lock()
	sess.mode = p.ModeId
	sess.mu.Unlock()
	return acp.SetSessionModeResponse{}, nil
}
