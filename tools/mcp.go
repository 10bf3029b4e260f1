package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/model"
)

const (
	connectTimeout = 60 * time.Second       // npx may have to fetch the server first
	closeTimeout   = 600 * time.Millisecond // twice: before and after SIGTERM; a command that is told to end has 1.5 s
	maxServerTools = 256
)

// connection is a session with one MCP server, shared by all turns of a Box.
type connection struct {
	once    sync.Once
	session *mcp.ClientSession
	cmd     *exec.Cmd // nil with a URL
	stderr  *lockedTail
	wire    *wire
	tools   []serverTool
	err     error
}

type serverTool struct {
	name string // on the server
	spec model.Tool
	bad  error // why it cannot be offered
}

// openServer offers the allowed tools of an MCP server.
func (b *Box) openServer(ctx context.Context, c Config, at Place, env programEnv, offer func(Tool, Policy) *Offer) ([]*Offer, error) {
	conn, err := b.connect(ctx, c, at, env)
	if err != nil {
		return nil, &OpenError{Tool: c.label(), Err: err, Retry: true,
			Hint: "see that the server can be started or reached, and that the variables it needs are listed under env:"}
	}
	wanted := c.Only
	if len(wanted) == 0 {
		for _, t := range conn.tools {
			wanted = append(wanted, t.name)
		}
	}
	for name := range c.Policies {
		if !slices.Contains(wanted, name) {
			return nil, &OpenError{Tool: c.label(), Err: fmt.Errorf("policies names %q, which is not among its tools", name), Hint: conn.names()}
		}
	}
	var offers []*Offer
	for _, name := range wanted {
		i := slices.IndexFunc(conn.tools, func(t serverTool) bool { return t.name == name })
		if i < 0 {
			return nil, &OpenError{Tool: c.label(), Err: fmt.Errorf("it has no tool %q", name), Hint: conn.names()}
		}
		t := conn.tools[i]
		spec := t.spec
		spec.Name = c.Prefix + spec.Name
		o := offer(&remote{box: b, key: serverKey(c, at, env), conn: conn, name: name, spec: spec}, c.policy(name))
		o.Unfit = t.bad
		offers = append(offers, o)
	}
	return offers, nil
}

func (c *connection) names() string {
	names := make([]string, len(c.tools))
	for i, t := range c.tools {
		names[i] = t.name
	}
	return "it has " + strings.Join(names, ", ")
}

func serverKey(c Config, at Place, env programEnv) string {
	dir := c.Dir
	if dir == "" {
		dir = at.Dir
	}
	key, _ := json.Marshal([]any{c.MCP, c.MCP.Given, dir, env.vars}) // strings only
	return string(key)
}

// connect returns the connection of the Box, made when there is none.
func (b *Box) connect(ctx context.Context, c Config, at Place, env programEnv) (*connection, error) {
	key := serverKey(c, at, env)
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, errors.New("the tools are closed")
	}
	conn := b.servers[key]
	if conn == nil {
		if b.servers == nil {
			b.servers = map[string]*connection{}
		}
		conn = &connection{wire: newWire()}
		b.servers[key] = conn
	}
	b.mu.Unlock()
	conn.once.Do(func() { conn.err = conn.open(ctx, c, at, env) })
	if conn.err != nil {
		b.drop(key, conn)
	}
	return conn, conn.err
}

// drop forgets a connection that is of no use any more.
func (b *Box) drop(key string, conn *connection) {
	b.mu.Lock()
	if b.servers[key] == conn {
		delete(b.servers, key)
	}
	b.mu.Unlock()
	_ = conn.close()
}

func (c *connection) open(ctx context.Context, cfg Config, at Place, env programEnv) (err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			_ = c.close()
			if c.stderr != nil {
				err = fmt.Errorf("%w%s", err, because(c.stderr.without(env.secrets)))
			}
		}
	}()
	transport, err := c.transport(cfg, at, env)
	if err != nil {
		return err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "agentgraph", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	if c.session, err = client.Connect(ctx, transport, nil); err != nil {
		return fmt.Errorf("connecting: %w", plainError(err))
	}
	var list []*mcp.Tool
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("listing its tools: %w", plainError(err))
		}
		if len(list) == maxServerTools {
			return fmt.Errorf("it has more than %d tools", maxServerTools)
		}
		list = append(list, t)
	}
	c.wire.listed()
	for _, t := range list {
		c.tools = append(c.tools, c.newServerTool(t))
	}
	return nil
}

func (c *connection) newServerTool(t *mcp.Tool) serverTool {
	out := serverTool{name: t.Name, spec: model.Tool{Name: t.Name, Description: t.Description}}
	if !toolName.MatchString(t.Name) {
		out.bad = errors.New("the name has characters that no call can carry")
		return out
	}
	schema, err := c.wire.schema(t)
	if err == nil {
		out.spec.Parameters, err = parameters(schema)
	}
	out.bad = err
	return out
}

func (c *connection) transport(cfg Config, at Place, env programEnv) (mcp.Transport, error) {
	if cfg.MCP.URL != "" {
		u, err := url.Parse(cfg.MCP.URL)
		switch {
		case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
			return nil, fmt.Errorf("%s is no http address", plainURL(cfg.MCP.URL))
		case u.User != nil:
			return nil, errors.New("the address holds a user name; put the credentials into headers:")
		}
		headers := http.Header{}
		for name, variable := range cfg.MCP.Headers {
			v, ok := os.LookupEnv(variable)
			if !ok {
				return nil, fmt.Errorf("the header %s needs the environment variable %s, which is not set", name, variable)
			}
			headers.Set(name, v)
		}
		for _, h := range cfg.MCP.Given {
			headers.Set(h.Name, h.Value)
		}
		return &mcp.StreamableClientTransport{Endpoint: cfg.MCP.URL, DisableStandaloneSSE: true,
			HTTPClient: &http.Client{Transport: &withHeaders{headers, c.wire}}}, nil
	}
	path, err := lookFor(cfg.MCP.Command[0], cfg.Given)
	if err != nil {
		return nil, fmt.Errorf("there is no program %s", cfg.MCP.Command[0])
	}
	c.cmd = exec.Command(path, cfg.MCP.Command[1:]...)
	c.cmd.Dir, c.cmd.Env = cfg.Dir, env.vars
	if c.cmd.Dir == "" {
		c.cmd.Dir = at.Dir
	}
	c.stderr = &lockedTail{tail: tail{keep: detailBytes}}
	c.cmd.Stderr = c.stderr
	ownGroup(c.cmd)
	endWithThread(c.cmd)
	return &listening{&kept{CommandTransport: mcp.CommandTransport{Command: c.cmd, TerminateDuration: closeTimeout}}, c.wire}, nil
}

// lookFor finds a program, on the PATH that is given where there is one.
func lookFor(name string, given []Variable) (string, error) {
	i := slices.IndexFunc(given, func(v Variable) bool { return v.Name == "PATH" })
	if i >= 0 && !strings.ContainsAny(name, `/\`) {
		for _, dir := range filepath.SplitList(given[i].Value) {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(dir) {
				return path, nil
			}
		}
	}
	return exec.LookPath(name)
}

// kept starts a server on a thread that stays as long as the connection: the
// kernel ends the server with it, however this process ends.
type kept struct {
	mcp.CommandTransport
}

func (k *kept) Connect(ctx context.Context) (mcp.Connection, error) {
	var conn mcp.Connection
	var err error
	started := make(chan struct{})
	over := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		conn, err = k.CommandTransport.Connect(ctx)
		close(started)
		if err == nil {
			<-over
		}
	}()
	<-started
	if err != nil {
		return nil, err
	}
	return &keptConn{Connection: conn, over: sync.OnceFunc(func() { close(over) })}, nil
}

type keptConn struct {
	mcp.Connection
	over func()
}

func (c *keptConn) Close() error {
	defer c.over()
	return c.Connection.Close()
}

// close ends the session and every process of a server that was started.
func (c *connection) close() error {
	var err error
	if c.session != nil {
		err = c.session.Close()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = nil // a server that is told to end may end as it likes
		}
	}
	if c.cmd != nil {
		killGroup(c.cmd)
	}
	return err
}

// httpTransport keeps connections for less than the five seconds after which Node
// and uvicorn close them: a call that is under way then is not sent again, for
// a tool may not do its work twice.
var httpTransport = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.IdleConnTimeout = 4 * time.Second
	return t
}()

// withHeaders adds headers to the requests to one server, and bounds its
// replies. The headers are not sent on to another host.
type withHeaders struct {
	headers http.Header
	wire    *wire
}

func (w *withHeaders) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.wire.tooLarge() && req.Method == http.MethodGet {
		return nil, errLargeReply // a stream that is too long is not taken up again
	}
	req = req.Clone(req.Context())
	if req.Response == nil { // not a redirect
		for k, v := range w.headers {
			req.Header[k] = v
		}
	}
	if req.Method == http.MethodDelete { // the goodbye, for which nobody waits long
		ctx, cancel := context.WithTimeout(req.Context(), closeTimeout)
		defer cancel()
		resp, err := httpTransport.RoundTrip(req.WithContext(ctx))
		if err == nil {
			_ = resp.Body.Close()
			resp.Body = http.NoBody
		}
		return resp, err
	}
	resp, err := httpTransport.RoundTrip(req)
	if err == nil {
		w.wire.watch(resp)
	}
	return resp, err
}

// plainError is an error without the query of an address.
func plainError(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return fmt.Errorf("%s: %w", plainURL(ue.URL), ue.Err)
	}
	return err
}

// remote is a tool of an MCP server.
type remote struct {
	box  *Box
	key  string
	conn *connection
	name string
	spec model.Tool
}

func (r *remote) Spec() model.Tool { return r.spec }

func (r *remote) Call(ctx context.Context, c Call) (Output, error) {
	args := c.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.conn.wire.whole, cancel)()
	res, err := r.conn.session.CallTool(ctx, &mcp.CallToolParams{Name: r.name, Arguments: args})
	if err != nil {
		if r.conn.wire.tooLarge() {
			// One such reply ends the connection: what else it would send is
			// not asked for.
			r.box.drop(r.key, r.conn)
			return Output{}, errLargeReply
		}
		if errors.Is(err, mcp.ErrConnectionClosed) {
			r.box.drop(r.key, r.conn) // the next turn connects again
		}
		return Output{}, plainError(err)
	}
	text, err := contentText(res)
	if err != nil {
		return Output{}, err
	}
	if res.IsError {
		return Output{Text: text}, errors.New(failureText(text))
	}
	return Output{Text: text}, nil
}

func failureText(text string) string {
	if text = strings.TrimSpace(cutText(text, detailBytes)); text != "" {
		return text
	}
	return "the server says it failed, and not why"
}

// contentText is a result as text. What is no text is named with its size.
func contentText(res *mcp.CallToolResult) (string, error) {
	var parts []string
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			parts = append(parts, c.Text)
		case *mcp.ImageContent:
			parts = append(parts, fmt.Sprintf("[image %s, %d bytes]", c.MIMEType, len(c.Data)))
		case *mcp.AudioContent:
			parts = append(parts, fmt.Sprintf("[audio %s, %d bytes]", c.MIMEType, len(c.Data)))
		case *mcp.ResourceLink:
			parts = append(parts, fmt.Sprintf("[resource %s]", c.URI))
		case *mcp.EmbeddedResource:
			switch r := c.Resource; {
			case r == nil:
			case r.Text != "":
				parts = append(parts, r.Text)
			default:
				parts = append(parts, fmt.Sprintf("[resource %s %s, %d bytes]", r.URI, r.MIMEType, len(r.Blob)))
			}
		default:
			parts = append(parts, "[content of a kind that is not known here]")
		}
	}
	if len(parts) == 0 && res.StructuredContent != nil {
		b, err := json.Marshal(res.StructuredContent)
		if err != nil {
			return "", fmt.Errorf("its structured result: %w", err)
		}
		return string(b), nil
	}
	return strings.Join(parts, "\n"), nil
}

type lockedTail struct {
	mu sync.Mutex
	tail
}

func (t *lockedTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tail.Write(p)
}

func (t *lockedTail) without(secrets []secret) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tail.without(secrets)
}
