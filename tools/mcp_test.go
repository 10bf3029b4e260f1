package tools_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/tools"
)

type addArgs struct {
	A int `json:"a"`
	B int `json:"b"`
}

func mcpServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Add."}, func(_ context.Context, _ *mcp.CallToolRequest, in addArgs) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: strings.Repeat("+", in.A+in.B)},
			&mcp.ImageContent{MIMEType: "image/png", Data: []byte("1234")},
		}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no luck"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		// A client that gives up does not always tell the server.
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(3 * time.Second):
			return nil, nil, errors.New("nobody waited")
		}
	})
	return s
}

func TestMCPOverHTTP(t *testing.T) {
	t.Setenv("MCP_TOKEN", "Bearer tok-123456")
	var sessions, denied atomic.Int32
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server { sessions.Add(1); return mcpServer() }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer tok-123456" {
			denied.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer srv.Close()
	server := &tools.Server{URL: srv.URL, Headers: map[string]string{"Authorization": "MCP_TOKEN"}}
	box := &tools.Box{}
	defer box.Close()
	open := func(c tools.Config) ([]*tools.Offer, error) {
		c.MCP = server
		return box.Open(t.Context(), []tools.Config{c}, tools.Place{})
	}

	all, err := open(tools.Config{})
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	some, err := open(tools.Config{Only: []string{"fail", "add"}, Prefix: "t_", Policies: map[string]tools.Policy{"fail": tools.Ask}})
	if err != nil || len(some) != 2 || some[0].Name() != "t_fail" || some[0].Policy != tools.Ask || some[1].Policy != tools.Allow {
		t.Fatalf("%v, %v", some, err)
	}
	if r := call(some[1], `{"a":1,"b":2}`); r.Text != "+++\n[image image/png, 4 bytes]" || r.Failed != "" {
		t.Errorf("%+v", r)
	}
	if r := call(some[1], `{"a":"x","b":2}`); r.Failed == "" {
		t.Errorf("wrong arguments: %+v", r)
	}
	if r := call(some[0], `{}`); r.Failed != "no luck" || r.Text != "error: no luck" {
		t.Errorf("%+v", r)
	}
	slow, err := open(tools.Config{Only: []string{"wait"}, Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if r := call(slow[0], `{}`); !strings.Contains(r.Failed, "ran longer than 100ms") {
		t.Errorf("%+v", r)
	}
	for _, c := range []tools.Config{{Only: []string{"sub"}}, {Policies: map[string]tools.Policy{"sub": tools.Deny}}} {
		if _, err := open(c); err == nil || !strings.Contains(err.Error(), `"sub"`) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if denied.Load() > 0 {
		t.Error("a request came without its header")
	}
}

// stdioServer is what this test binary is when it is started as a server.
const stdioServer = "-mcp-test-server"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == stdioServer {
		if err := mcpServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == rawStdio {
		serveRawStdio()
		return
	}
	os.Exit(m.Run())
}

func TestMCPOverStdio(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	box := &tools.Box{}
	c := tools.Config{MCP: &tools.Server{Command: []string{exe, stdioServer}}, Only: []string{"add"}}
	for range 2 {
		offers, err := box.Open(t.Context(), []tools.Config{c}, tools.Place{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if r := call(offers[0], `{"a":2,"b":2}`); !strings.HasPrefix(r.Text, "++++") {
			t.Errorf("%+v", r)
		}
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	if _, err := box.Open(t.Context(), []tools.Config{c}, tools.Place{}); err == nil {
		t.Error("a closed box opens")
	}
}

// everythingPackage is the protocol's own reference server.
const everythingPackage = "@modelcontextprotocol/server-everything@2026.8.31"

func TestReferenceServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server under Node")
	}
	skip := func(why string) {
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		skip("npm is not installed; on Debian and Ubuntu: apt-get install nodejs npm")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "agentgraph", "mcp-everything")
	script := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		install := exec.Command(npm, "install", "--no-audit", "--no-fund", "--prefix", dir, everythingPackage)
		if out, err := install.CombinedOutput(); err != nil {
			skip("npm cannot fetch " + everythingPackage + ": " + string(bytes.TrimSpace(out)))
		}
	}
	box := &tools.Box{}
	defer box.Close()
	cfg := tools.Config{MCP: &tools.Server{Command: []string{"node", script, "stdio"}}, Prefix: "ev_"}
	all, err := box.Open(t.Context(), []tools.Config{cfg}, tools.Place{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range all {
		names = append(names, o.Name())
	}
	if !slices.Contains(names, "ev_echo") {
		t.Fatalf("its tools: %q", names)
	}
	cfg.Only = []string{"echo"}
	some, err := box.Open(t.Context(), []tools.Config{cfg}, tools.Place{Dir: dir})
	if err != nil || len(some) != 1 {
		t.Fatalf("%v, %v", some, err)
	}
	if r := call(some[0], `{"message":"hällo"}`); r.Failed != "" || !strings.Contains(r.Text, "hällo") {
		t.Errorf("%+v", r)
	}
	if r := call(some[0], `{"massage":1}`); r.Failed == "" {
		t.Errorf("wrong arguments: %+v", r)
	}
}
