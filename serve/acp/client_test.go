package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/model/script"
	"agentgraph/serve"
	"agentgraph/serve/acp"
)

// patience bounds a wait for something that must happen.
const patience = time.Minute

// frame is one message as it stood on the wire.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
	raw string
}

// client is the other end of a connection: it writes lines and keeps all that
// come back, in their order.
type client struct {
	t     *testing.T
	in    io.WriteCloser
	ended chan error

	mu     sync.Mutex
	got    []frame
	sent   []string
	more   chan struct{}
	nextID int
	// ask answers requests of the agent; nil leaves them open.
	ask func(frame) string
}

// only opens one model, whatever the settings call it.
type only struct{ m model.Model }

func (o only) Model(context.Context, string) (model.Model, error) { return o.m, nil }

// graph writes files into a new folder.
func graph(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// service answers from a script; root is a graph's folder or empty.
func service(t *testing.T, root, src string) *serve.Service {
	t.Helper()
	m, err := script.New("answers.yaml", []byte(src), script.Config{})
	if err != nil {
		t.Fatal(err)
	}
	svc, err := serve.New(serve.Config{
		Graph: root, Load: agents.LoadOptions{Model: "script:answers.yaml"}, Models: only{m}, StateDir: t.TempDir(), Dir: t.TempDir(),
		Warn: func(err error) { t.Log(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
	})
	return svc
}

// connect starts a connection and a client on it.
func connect(t *testing.T, cfg acp.Config) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	return connectTo(t, inW, outR, func() error {
		defer outW.Close()
		return acp.Serve(context.WithoutCancel(t.Context()), cfg, inR, outW)
	})
}

// connectTo makes a client of an agent that serves until it returns.
func connectTo(t *testing.T, in io.WriteCloser, outR io.Reader, serve func() error) *client {
	t.Helper()
	c := &client{t: t, in: in, ended: make(chan error, 1), more: make(chan struct{}, 1)}
	go func() { c.ended <- serve() }()
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewReaderSize(outR, 1<<20)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			f := frame{raw: strings.TrimSuffix(line, "\n")}
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Errorf("not JSON: %q", line)
				continue
			}
			c.mu.Lock()
			c.got = append(c.got, f)
			ask := c.ask
			c.mu.Unlock()
			select {
			case c.more <- struct{}{}:
			default:
			}
			if f.Method != "" && f.ID != nil && ask != nil {
				if answer := ask(f); answer != "" {
					c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, f.ID, answer))
				}
			}
		}
	}()
	t.Cleanup(func() {
		c.end()
		<-read
	})
	return c
}

// end closes the connection and returns how it ended.
func (c *client) end() error {
	c.in.Close()
	select {
	case err := <-c.ended:
		c.ended <- err
		return err
	case <-time.After(patience):
		c.t.Error("the connection does not end")
		return errors.New("it goes on")
	}
}

func (c *client) write(lines ...string) {
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	c.mu.Lock()
	c.sent = append(c.sent, lines...)
	c.mu.Unlock()
	if _, err := c.in.Write(b.Bytes()); err != nil {
		c.t.Errorf("writing: %v", err)
	}
}

// request makes the line of a request.
func (c *client) request(method, params string) (id int, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	return c.nextID, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.nextID, method, params)
}

// wait returns the first frame for which f is true, from now or before. One
// goroutine waits at a time.
func (c *client) wait(what string, f func(frame) bool) frame {
	c.t.Helper()
	deadline := time.After(patience)
	for i := 0; ; {
		c.mu.Lock()
		for ; i < len(c.got); i++ {
			if f(c.got[i]) {
				found := c.got[i]
				c.mu.Unlock()
				return found
			}
		}
		c.mu.Unlock()
		select {
		case <-c.more:
		case <-deadline:
			all := c.dump()
			c.t.Fatalf("%s: nothing came; the end is\n%s", what, all[max(len(all)-4000, 0):])
		}
	}
}

func (c *client) dump() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, f := range c.got {
		b.WriteString(f.raw + "\n")
	}
	return b.String()
}

func (c *client) response(id int) frame {
	c.t.Helper()
	return c.wait(fmt.Sprintf("the response %d", id), func(f frame) bool { return f.Method == "" && string(f.ID) == fmt.Sprint(id) })
}

// call sends a request and returns its response.
func (c *client) call(method, params string) frame {
	c.t.Helper()
	id, line := c.request(method, params)
	c.write(line)
	return c.response(id)
}

// announcing are the capabilities of a client that reads our metadata.
const announcing = `{"_meta":{"agentgraph/v1":{}}}`

// start initializes and makes a session.
func (c *client) start(capabilities string) (session string) {
	c.t.Helper()
	if f := c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`); f.Error != nil {
		c.t.Fatal(f.raw)
	}
	return c.session()
}

func (c *client) session() string {
	c.t.Helper()
	f := c.call("session/new", `{"cwd":"/tmp","mcpServers":[]}`)
	var r struct{ SessionID string }
	if err := json.Unmarshal(f.Result, &r); err != nil || r.SessionID == "" {
		c.t.Fatalf("%v: %s", err, f.raw)
	}
	return r.SessionID
}

// text is the parameters of a prompt; meta is the member _meta, or empty.
func text(session, prompt, meta string) string {
	b, err := json.Marshal(map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": prompt}}})
	if err != nil {
		panic(err)
	}
	if meta != "" {
		return strings.TrimSuffix(string(b), "}") + `,"_meta":` + meta + "}"
	}
	return string(b)
}

// update is a session/update as tests look at it.
type update struct {
	SessionID string `json:"sessionId"`
	Update    struct {
		SessionUpdate, ToolCallID, Title, Status string
		Content                                  json.RawMessage
	}
	Meta struct {
		Ours *struct {
			TurnID string `json:"turn_id"`
			Tokens int
		} `json:"agentgraph/v1"`
	} `json:"_meta"`
}

func (u update) text() string {
	var content struct{ Text string }
	_ = json.Unmarshal(u.Update.Content, &content) // of another form in tool calls
	return content.Text
}

// updates are those of one session, in order.
func (c *client) updates(session string) []update {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []update
	for _, f := range c.got {
		if f.Method != "session/update" {
			continue
		}
		var u update
		if err := json.Unmarshal(f.Params, &u); err != nil {
			c.t.Errorf("%v: %s", err, f.raw)
		}
		if u.SessionID == session {
			list = append(list, u)
		}
	}
	return list
}

// said joins the texts of one kind of update.
func said(list []update, kind string) string {
	var b strings.Builder
	for _, u := range list {
		if u.Update.SessionUpdate == kind {
			b.WriteString(u.text())
		}
	}
	return b.String()
}

// prompted is the response of a prompt.
type prompted struct {
	StopReason string
	Meta       struct {
		Ours *struct{ Task json.RawMessage } `json:"agentgraph/v1"`
	} `json:"_meta"`
}

func readPrompted(t *testing.T, f frame) prompted {
	t.Helper()
	var p prompted
	if f.Error != nil {
		t.Fatalf("an error: %s", f.raw)
	}
	if err := json.Unmarshal(f.Result, &p); err != nil {
		t.Fatalf("%v: %s", err, f.raw)
	}
	return p
}
