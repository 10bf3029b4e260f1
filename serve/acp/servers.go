package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"agentgraph/agents"
	"agentgraph/serve"
	"agentgraph/tools"
)

// Bounds of the MCP servers that clients bring. What one lists is bounded in
// package tools.
const (
	maxServers      = 32  // of a session
	maxServersInAll = 256 // of a connection
	maxClientTools  = 256 // that a model is told of
	maxServerName   = 200
)

// serversWait is how long session/new waits for the servers. Clients do not
// wait for a session as long as npx may take to fetch a server; the first
// prompt waits for the rest.
const serversWait = 20 * time.Second

// retryAfter is the least time between two attempts to get back a server that
// was there before.
const retryAfter = 30 * time.Second

// serverParams is an entry of mcpServers.
type serverParams struct {
	Type    string           `json:"type"`
	Name    string           `json:"name"`
	Command string           `json:"command"`
	Args    []string         `json:"args"`
	Env     []tools.Variable `json:"env"`
	URL     string           `json:"url"`
	Headers []tools.Variable `json:"headers"`
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$")

// readServers reads mcpServers. An entry that is none of the protocol's is an
// error of the request, and names no value of it: any of them may be a secret.
func readServers(list []json.RawMessage, cwd string) ([]*clientServer, error) {
	if len(list) > maxServers {
		return nil, &serve.ArgumentError{Argument: "mcpServers", Reason: fmt.Sprintf("there are %d; a session has at most %d", len(list), maxServers)}
	}
	var servers []*clientServer
	for i, raw := range list {
		wrong := func(format string, args ...any) error {
			return &serve.ArgumentError{Argument: fmt.Sprintf("mcpServers[%d]", i), Reason: fmt.Sprintf(format, args...)}
		}
		var p serverParams
		var mistyped *json.UnmarshalTypeError
		switch err := json.Unmarshal(raw, &p); {
		case errors.As(err, &mistyped) && mistyped.Field != "":
			return nil, wrong("%s: a JSON %s stands where another type belongs", mistyped.Field, mistyped.Value)
		case err != nil:
			return nil, wrong("it is no JSON object")
		case p.Name == "" || len(p.Name) > maxServerName:
			return nil, wrong("name: give a name of at most %d bytes", maxServerName)
		}
		m := &clientServer{name: agents.Printable(p.Name), at: tools.Place{Dir: cwd}}
		m.cfg = tools.Config{MCP: &tools.Server{Name: m.name}}
		switch p.Type {
		case "", "stdio":
			if p.Command == "" || strings.ContainsRune(p.Command+strings.Join(p.Args, ""), 0) {
				return nil, wrong("command: give the path of a program; servers of other transports say which in their type")
			}
			if strings.ContainsAny(p.Command, `/\`) && !filepath.IsAbs(p.Command) {
				p.Command = filepath.Join(cwd, p.Command)
			}
			m.cfg.MCP.Command = append([]string{p.Command}, p.Args...)
			for k, v := range p.Env {
				if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || strings.ContainsRune(v.Value, 0) {
					return nil, wrong("env[%d]: it is no variable of an environment", k)
				}
			}
			m.cfg.Given = p.Env
		case "http":
			if p.URL == "" {
				return nil, wrong("url: give the address of the server")
			}
			for k, h := range p.Headers {
				if !headerName.MatchString(h.Name) || strings.ContainsAny(h.Value, "\r\n\x00") {
					return nil, wrong("headers[%d]: it is no header of HTTP", k)
				}
			}
			m.cfg.MCP.URL, m.cfg.MCP.Given = p.URL, p.Headers
		default:
			return nil, wrong("type: the transport is none of stdio and http, which mcpCapabilities announces")
		}
		servers = append(servers, m)
	}
	return servers, nil
}

// clientServer is an MCP server that the client brought to a session. It has a
// Box of its own and ends with the session.
type clientServer struct {
	name string
	cfg  tools.Config
	at   tools.Place
	box  tools.Box
	warn func(error)

	ctx    context.Context // ends with the session
	cancel context.CancelFunc
	ready  chan struct{} // closed after the first attempt
	one    chan struct{} // holds a value while somebody opens it

	// Guarded by one.
	names  []string // of its tools
	worked bool
	failed error
	tried  time.Time
	told   bool // the client knows of failed
}

// errEnded is what a server comes to whose session was closed, or set up anew.
var errEnded = errors.New("the session has ended or has other servers now")

func (m *clientServer) start(warn func(error)) {
	m.warn = warn
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.ready, m.one = make(chan struct{}), make(chan struct{}, 1)
	go func() {
		defer close(m.ready)
		m.one <- struct{}{}
		defer func() { <-m.one }()
		_, _ = m.open(m.ctx, tools.Ask) // kept in failed
	}()
}

// open connects where there is no connection, and lists the tools.
func (m *clientServer) open(ctx context.Context, policy tools.Policy) ([]*tools.Offer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)()
	cfg := m.cfg
	cfg.Policy = policy
	offers, err := m.box.Open(ctx, []tools.Config{cfg}, m.at)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // that is no failure of the server
	}
	m.tried = time.Now()
	if err != nil {
		var oe *tools.OpenError
		if errors.As(err, &oe) {
			err = oe.Err
		}
		if m.failed == nil || m.failed.Error() != err.Error() {
			m.told = false
			m.warn(fmt.Errorf("the client's MCP server %s cannot be used: %w", m.name, err))
		}
		m.failed = err
		return nil, err
	}
	m.worked, m.failed, m.names = true, nil, nil
	for _, o := range offers {
		m.names = append(m.names, o.Name())
	}
	return offers, nil
}

// offers are its tools now. A server that never worked is not tried again: each
// prompt would wait for it.
func (m *clientServer) offers(ctx context.Context, policy tools.Policy) (offers []*tools.Offer, news bool, err error) {
	select {
	case <-m.ready:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	select {
	case m.one <- struct{}{}:
		defer func() { <-m.one }()
	case <-m.ctx.Done():
		return nil, false, errEnded
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	err = m.failed
	if err == nil || m.worked && time.Since(m.tried) >= retryAfter {
		offers, err = m.open(ctx, policy)
	}
	if m.failed != nil && !m.told {
		m.told, news = true, true
	}
	return offers, news, err
}

// close ends the server.
func (m *clientServer) close() {
	m.cancel()
	<-m.ready
	m.one <- struct{}{} // for good
	_ = m.box.Close()   // it is killed either way
}

// closeServers ends servers and returns when they have ended.
func closeServers(servers []*clientServer) {
	var all sync.WaitGroup
	for _, m := range servers {
		all.Go(m.close)
	}
	all.Wait()
}

// serverStatus is what the response of session/new says of a server, as
// metadata.
type serverStatus struct {
	Name       string   `json:"name"`
	Tools      []string `json:"tools,omitempty"`
	Error      string   `json:"error,omitempty"`
	Connecting bool     `json:"connecting,omitempty"`
}

// connected waits for the first attempts and says what came of them.
func (s *server) connected(ctx context.Context, servers []*clientServer) []serverStatus {
	limit := time.NewTimer(s.serversWait())
	defer limit.Stop()
	var list []serverStatus
	over := false
	for _, m := range servers {
		if !over {
			select {
			case <-m.ready:
			case <-limit.C:
				over = true
			case <-ctx.Done():
				over = true
			}
		}
		st := serverStatus{Name: m.name}
		select {
		case <-m.ready:
			select {
			case m.one <- struct{}{}:
				st.Tools = m.names
				if m.failed != nil {
					st.Error = m.failed.Error()
				}
				<-m.one
			case <-m.ctx.Done():
				st.Error = errEnded.Error()
			}
		default:
			st.Connecting = true
		}
		list = append(list, st)
	}
	return list
}

func (s *server) serversWait() time.Duration {
	if s.cfg.ServersWait > 0 {
		return s.cfg.ServersWait
	}
	return serversWait
}
