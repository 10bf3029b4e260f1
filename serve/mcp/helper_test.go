package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/model/script"
	"agentgraph/record"
	"agentgraph/serve"
)

// scripts opens scripted models by the names that the service resolves.
type scripts struct {
	s    *serve.Service
	mu   sync.Mutex
	open map[string]model.Model
}

func (m *scripts) Model(_ context.Context, name string) (model.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x := m.open[name]; x != nil {
		return x, nil
	}
	spec, err := m.s.ModelSpec(name)
	if err != nil {
		return nil, err
	}
	x, err := script.Open(spec.Script)
	if err != nil {
		return nil, err
	}
	m.open[name] = x
	return x, nil
}

const rating = `{"type":"object","properties":{"rating":{"type":"integer","minimum":1,"maximum":5}},"required":["rating"],"additionalProperties":false}`

// graphFiles is a graph of one agent on a scripted model.
var graphFiles = map[string]string{
	"agentgraph.yaml": "models:\n  fake: {script: fake.yaml}\n  loose: {script: loose.yaml}\ndefaults: {model: fake}\nsettle: 10ms\n",
	"fake.yaml": `
replies:
  - {match: Rate, text: '{"rating": 4}'}
  - {match: forever, prefer: 'on and ', token_delay: 2ms}
  - {match: slow, text: 'one two three four five six seven eight nine ten', token_delay: 40ms}
default: {text: good morning}
`,
	"loose.yaml":                      "constraints: none\nreplies: [{match: day, text: '{\"day\":\"tomorrow\"}'}]\ndefault: {text: '{\"z\":12345678901234567890,\"a\":1}'}\n",
	"agents/greeter/system/role.md":   "Greet.",
	"agents/greeter/input/.keep":      "",
	"agents/name with/system/role.md": "An agent with a space in its name.",
}

// newServer serves graphFiles, or with graph false models alone.
func newServer(t *testing.T, graph bool) (*Server, *serve.Service) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range graphFiles {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must(t, os.WriteFile(path, []byte(text), 0o666))
	}
	ms := &scripts{open: map[string]model.Model{}}
	cfg := serve.Config{Models: ms, Warn: func(err error) { t.Log("warning:", err) }}
	if graph {
		cfg.Graph = dir
	} else {
		cfg.StateDir = filepath.Join(dir, "state")
		cfg.Load.DefaultModel = "script:" + filepath.Join(dir, "fake.yaml")
	}
	var err error
	ms.s, err = serve.New(cfg)
	must(t, err)
	t.Cleanup(func() { ms.s.Close() })
	check := func(_ context.Context, req CheckRequest) (*CheckReport, error) {
		r := &CheckReport{}
		if req.Agent != "" {
			r.Findings = append(r.Findings, agents.Finding{Severity: agents.SeverityWarning, Msg: "looked at " + req.Agent})
		}
		if req.Spec != nil {
			r.Models = append(r.Models, ModelSupport{Model: string(req.Spec.Kind), Engine: strings.TrimSpace(req.Enforce + " " + req.Formats)})
		}
		return r, nil
	}
	return New(Config{Service: ms.s, Version: "0", Check: check}), ms.s
}

// client is a client of the server, with what it was told.
type client struct {
	*sdk.ClientSession
	t        *testing.T
	progress chan *sdk.ProgressNotificationParams
	updated  chan string
	list     chan struct{}
}

// connect does it by the handshake that clients in use today speak.
func connect(t *testing.T, s *Server) *client { return connectBy(t, s, "2025-11-25") }

func connectBy(t *testing.T, s *Server, protocol string) *client {
	return connectAs(t, s, protocol, sdk.ClientOptions{})
}

func connectAs(t *testing.T, s *Server, protocol string, opt sdk.ClientOptions) *client {
	t.Helper()
	c := &client{t: t, progress: make(chan *sdk.ProgressNotificationParams, 1000), updated: make(chan string, 1000), list: make(chan struct{}, 1000)}
	here, there := sdk.NewInMemoryTransports()
	ctx := within(t)
	session, err := s.sdk.Connect(ctx, there, nil)
	must(t, err)
	stop := s.watch(ctx)
	opt.ProgressNotificationHandler = func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progress <- r.Params }
	opt.ResourceUpdatedHandler = func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { c.updated <- r.Params.URI }
	opt.ResourceListChangedHandler = func(context.Context, *sdk.ResourceListChangedRequest) { c.list <- struct{}{} }
	x := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "0"}, &opt)
	c.ClientSession, err = x.Connect(ctx, here, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		session.Wait()
		stop()
	})
	return c
}

// result is a tool's result, taken apart.
type result struct {
	text   string
	failed bool
	raw    map[string]json.RawMessage // structuredContent
	task   *record.Record             // nil when there is none
}

// call calls a tool with arguments that are JSON.
func (c *client) call(ctx context.Context, name, args string) result {
	c.t.Helper()
	res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		c.t.Fatalf("%s %s: %v", name, args, err)
	}
	return takeApart(c.t, res)
}

// later makes a call in the background. Its result comes once; none where it
// failed.
func (c *client) later(ctx context.Context, name, args string) <-chan result {
	answered := make(chan result, 1)
	go func() {
		defer close(answered)
		res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
		if err != nil {
			c.t.Error(err)
			return
		}
		answered <- takeApart(c.t, res)
	}()
	return answered
}

// waiting is the first call of a tool that waits for a decision.
func (c *client) waiting(ctx context.Context) (call struct{ ID, Tool string }) {
	c.t.Helper()
	var list struct {
		Waiting []struct{ ID, Tool string }
	}
	for len(list.Waiting) == 0 {
		if ctx.Err() != nil {
			c.t.Fatal("no call waits")
		}
		decode(c.t, c.call(ctx, "approve", `{}`), &list)
	}
	return list.Waiting[0]
}

func takeApart(t *testing.T, res *sdk.CallToolResult) result {
	t.Helper()
	r := result{failed: res.IsError}
	for _, part := range res.Content {
		r.text += part.(*sdk.TextContent).Text
	}
	if res.StructuredContent != nil {
		b, err := json.Marshal(res.StructuredContent)
		must(t, err)
		must(t, json.Unmarshal(b, &r.raw))
	}
	if b := r.raw["task"]; len(b) > 0 && string(b) != "null" {
		must(t, record.Check(b))
		r.task = &record.Record{}
		must(t, json.Unmarshal(b, r.task))
	}
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func needNative(t *testing.T) {
	t.Helper()
	_, err := constraint.ByteVocabulary()
	if !errors.Is(err, constraint.ErrNotBuilt) {
		return
	}
	if os.Getenv("CI") == "true" && os.Getenv("CGO_ENABLED") != "0" {
		t.Fatal(err)
	}
	t.Skip(err)
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q lacks %q", text, p)
		}
	}
}

// write puts a file into a graph.
func write(t *testing.T, root, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o666))
}
