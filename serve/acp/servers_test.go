package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model/script"
	"agentgraph/record"
	"agentgraph/serve"
	"agentgraph/serve/acp"
)

// toolServer is what this test binary is when it is started with that word and
// a kind: an MCP server.
const toolServer = "-mcp-test-server"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == toolServer {
		serveTools(os.Args[2])
		return
	}
	if len(os.Args) > 2 && os.Args[1] == agentOver {
		serveAgent(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// agentOver is what it is with that word and a graph: an agent on its stdin and
// stdout.
const agentOver = "-acp-test-agent"

func serveAgent(root string) {
	m, err := script.New("answers.yaml", []byte(caller), script.Config{})
	if err != nil {
		panic(err)
	}
	svc, err := serve.New(serve.Config{Graph: root, Load: agents.LoadOptions{Model: "script:answers.yaml"}, Models: only{m}})
	if err != nil {
		panic(err)
	}
	_ = acp.Serve(context.Background(), acp.Config{Service: svc}, os.Stdin, os.Stdout)
	os.Exit(0)
}

func serveTools(kind string) {
	switch kind {
	case "broken":
		fmt.Fprintln(os.Stderr, "the key", os.Getenv("SERVER_KEY"), "is not known")
		os.Exit(3)
	case "mute":
		time.Sleep(time.Hour)
	case "stubborn": // ends at nothing but a kill
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		defer time.Sleep(time.Hour)
	}
	_ = mcpServer().Run(context.Background(), &mcp.StdioTransport{})
}

type number struct {
	A int `json:"a"`
}

func mcpServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	said := func(format string, args ...any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "double", Description: "Double a number."}, func(_ context.Context, _ *mcp.CallToolRequest, in number) (*mcp.CallToolResult, any, error) {
		return said("it is %d", 2*in.A)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "list_folder", Description: "Not the built-in."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return said("folder of the server")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "about"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		dir, err := os.Getwd()
		if err != nil {
			return nil, nil, err
		}
		return said("pid=%d dir=%s key=%s root=%s other=%q", os.Getpid(), dir, os.Getenv("SERVER_KEY"), os.Getenv("SERVER_ROOT"), os.Getenv("OTHER_KEY"))
	})
	return s
}

// stdio is an entry of mcpServers: this binary as a server of a kind.
func stdio(t *testing.T, name, kind string, env ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	vars := []map[string]string{}
	for i := 0; i+1 < len(env); i += 2 {
		vars = append(vars, map[string]string{"name": env[i], "value": env[i+1]})
	}
	b, err := json.Marshal(map[string]any{"name": name, "command": exe, "args": []string{toolServer, kind}, "env": vars})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sessionWith makes a session with servers; the second result is what the
// metadata says of them.
func (c *client) sessionWith(cwd string, servers ...string) (id string, status []map[string]any) {
	c.t.Helper()
	f := c.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[%s]}`, cwd, strings.Join(servers, ",")))
	var r struct {
		SessionID string
		Meta      map[string]struct{ McpServers []map[string]any } `json:"_meta"`
	}
	if err := json.Unmarshal(f.Result, &r); err != nil || r.SessionID == "" {
		c.t.Fatalf("%v: %s", err, f.raw)
	}
	return r.SessionID, r.Meta["agentgraph/v1"].McpServers
}

const caller = `
constraints: none
tools: true
replies:
  - {match: double, tool_calls: [{name: double, arguments: {a: 21}}]}
  - {match: about, tool_calls: [{name: about, arguments: {}}]}
  - {match: mine, tool_calls: [{name: list_folder, arguments: {path: "."}}]}
  - {match: theirs, tool_calls: [{name: my_server_list_folder, arguments: {}}]}
  - {tool_result: "it is 42", text: '{"n": 42}'}
  - {tool_result: "", text: 'Done.'}
default: {text: "What?"}
`

// callerGraph is a graph with one agent and a tool of its own.
func callerGraph(more string) map[string]string {
	return map[string]string{
		"agentgraph.yaml":      "models: {fake: {script: answers.yaml}}\ndefaults: {model: fake, tools: [list_folder], output: {enforce: validate}" + more + "}\n",
		"answers.yaml":         "default: {text: x}\n",
		"agents/a/system/a.md": "You call tools.",
	}
}

// allowing answers every question of the agent and keeps the titles.
func allowing(c *client) func() []string {
	var mu sync.Mutex
	var titles []string
	c.ask = func(f frame) string {
		var q struct {
			ToolCall struct{ Title string }
		}
		_ = json.Unmarshal(f.Params, &q)
		mu.Lock()
		titles = append(titles, q.ToolCall.Title)
		mu.Unlock()
		return `"result":{"outcome":{"outcome":"selected","optionId":"allow_always"}}`
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return titles
	}
}

// A client's servers are offered beside the agent's own tools, with a mode and
// without one, and the client is asked before they are called.
func TestServersOfTheClient(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, graph(t, callerGraph("")), caller)})
	asked := allowing(c)
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
	id, status := c.sessionWith(t.TempDir(), stdio(t, "my server", "good"))
	want := []map[string]any{{"name": "my server", "tools": []any{"about", "double", "list_folder"}}}
	if d := cmp.Diff(want, status); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	ask := func(prompt, meta string) *record.Record {
		t.Helper()
		return readRecord(t, readPrompted(t, c.call("session/prompt", text(id, prompt, meta))))
	}
	for _, mode := range []string{"/", "a"} {
		if f := c.call("session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":%q}`, id, mode)); f.Error != nil {
			t.Fatal(f.raw)
		}
		// The answer is held to its schema all the same.
		rec := ask("double it", `{"agentgraph/v1":{"schema":{"type":"object","properties":{"n":{"const":42}},"required":["n"]}}}`)
		if answer, ok := rec.Answer(); !ok || answer != `{"n": 42}` || rec.OutputValidation.Status != record.Valid || len(rec.ToolCalls) != 1 || *rec.ToolCalls[0].Result != "it is 42" {
			t.Errorf("%s: %q, %+v %+v", mode, answer, rec.OutputValidation, rec.ToolCalls)
		}
		var names []string
		for _, tool := range rec.Request.Tools {
			names = append(names, tool.Name)
		}
		if d := cmp.Diff([]string{"list_folder", "about", "double", "my_server_list_folder"}, names); d != "" {
			t.Errorf("%s: (-want +got):\n%s", mode, d)
		}
	}
	if d := cmp.Diff([]string{`double (my server) {"a":21}`, `double (my server) {"a":21}`}, asked()); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
	// The settings' own tool keeps its name, and nobody is asked for it.
	if rec := ask("mine", ""); !strings.Contains(*rec.ToolCalls[0].Result, "agents") || len(asked()) != 2 {
		t.Errorf("%+v, asked %q", rec.ToolCalls[0], asked())
	}
	if rec := ask("theirs", ""); *rec.ToolCalls[0].Result != "folder of the server" || len(asked()) != 3 {
		t.Errorf("%+v, asked %q", rec.ToolCalls[0], asked())
	}
	if rec := ask("double it", `{"agentgraph/v1":{"no_tools":true}}`); len(rec.Request.Tools) != 0 {
		t.Errorf("no_tools: %+v", rec.Request.Tools)
	}
}

// The mask of "one call or the answer" is made of the client's tools too.
func TestMaskHoldsCallsOfTheClientsTools(t *testing.T) {
	if _, err := constraint.ByteVocabulary(); err != nil {
		t.Skip("the native library is not linked")
	}
	src := strings.Replace(caller, "constraints: none\n", "", 1)
	c := connect(t, acp.Config{Service: service(t, graph(t, callerGraph(", client_tools: allow")), src)})
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
	id, _ := c.sessionWith(t.TempDir(), stdio(t, "my server", "good"))
	rec := readRecord(t, readPrompted(t, c.call("session/prompt", text(id, "double it", `{"agentgraph/v1":{"schema":{"type":"object","properties":{"n":{"const":42}},"required":["n"]}}}`))))
	answer, _ := rec.Answer()
	if len(rec.ToolCalls) != 1 || rec.ToolCalls[0].Name != "double" || *rec.ToolCalls[0].Result != "it is 42" || *rec.OutputValidation.EnforcedBy != "mask" || answer != `{"n":42}` {
		t.Errorf("%q %+v %+v", answer, rec.ToolCalls, rec.OutputValidation)
	}
}

// The servers of an editor are no reason to refuse a model that calls nothing.
func TestModelWithoutTools(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", talker)})
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
	id, _ := c.sessionWith(t.TempDir(), stdio(t, "s", "good"))
	rec := readRecord(t, readPrompted(t, c.call("session/prompt", text(id, "who?", ""))))
	if answer, _ := rec.Answer(); answer != "I am a script." || len(rec.Request.Tools) != 0 || len(rec.Request.DisabledTools) != 3 || !strings.Contains(rec.Request.DisabledTools[0].Reason, "declares no tools") {
		t.Errorf("%q %+v", answer, rec.Request.DisabledTools)
	}
}

func TestPolicyOfTheClientsTools(t *testing.T) {
	for _, tt := range []struct {
		policy, stop string
		asked        int
	}{{"allow", "end_turn", 0}, {"ask", "end_turn", 1}, {"deny", "refusal", 0}} {
		c := connect(t, acp.Config{Service: service(t, graph(t, callerGraph(", client_tools: "+tt.policy)), caller)})
		asked := allowing(c)
		c.call("initialize", `{"protocolVersion":1}`)
		id, status := c.sessionWith(t.TempDir(), stdio(t, "s", "good"))
		p := readPrompted(t, c.call("session/prompt", text(id, "double it", "")))
		if p.StopReason != tt.stop || len(asked()) != tt.asked || status != nil {
			t.Errorf("%s: %s, asked %q, metadata %v", tt.policy, p.StopReason, asked(), status)
		}
	}
}

// A server has the session's folder and the variables it was given, and none
// of this process. Their values come back to nobody, except those that are
// places.
func TestEnvironmentOfServers(t *testing.T) {
	t.Setenv("OTHER_KEY", "another-secret")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := graph(t, callerGraph(", client_tools: allow"))
	c := connect(t, acp.Config{Service: service(t, root, caller)})
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
	id, _ := c.sessionWith(dir, stdio(t, "s", "good", "SERVER_KEY", "s3cret-of-the-server", "SERVER_ROOT", dir))
	rec := readRecord(t, readPrompted(t, c.call("session/prompt", text(id, "about", ""))))
	if got := *rec.ToolCalls[0].Result; !strings.Contains(got, "dir="+dir+" key=[SERVER_KEY] root="+dir+` other=""`) {
		t.Errorf("the server says %s", got)
	}
	for name, all := range map[string]string{"frames": c.dump(), "files": filesOf(t, root)} {
		if strings.Contains(all, "s3cret") || strings.Contains(all, "another-secret") {
			t.Errorf("the %s hold a secret", name)
		}
	}
}

// filesOf joins every file below a folder.
func filesOf(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A server that cannot be had takes nothing from the session but its tools:
// the client is told, and the record says it.
func TestServersThatCannotBeHad(t *testing.T) {
	var warned []string
	var mu sync.Mutex
	c := connect(t, acp.Config{Service: service(t, graph(t, callerGraph(", client_tools: allow")), caller), ServersWait: patience, Warn: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		warned = append(warned, err.Error())
	}})
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
	id, status := c.sessionWith(t.TempDir(), `{"name":"lost","command":"/nowhere/server","args":[],"env":[]}`,
		stdio(t, "broken", "broken", "SERVER_KEY", "s3cret-of-the-server"), stdio(t, "good", "good"))
	if len(status) != 3 || !strings.Contains(fmt.Sprint(status[0]), "there is no program /nowhere/server") ||
		!strings.Contains(fmt.Sprint(status[1]), "the key [SERVER_KEY] is not known") || status[2]["error"] != nil {
		t.Errorf("%v", status)
	}
	for i := range 2 {
		rec := readRecord(t, readPrompted(t, c.call("session/prompt", text(id, "double it", ""))))
		if *rec.ToolCalls[0].Result != "it is 42" || len(rec.Request.DisabledTools) != 2 || rec.Request.DisabledTools[0].Name != "lost" {
			t.Errorf("%+v, %+v", rec.ToolCalls, rec.Request.DisabledTools)
		}
		got := calls(c.updates(id))
		if len(got) != 3+i || got[0] != "tool_call call_1 failed MCP server lost: cannot be used" || got[1] != "tool_call call_2 failed MCP server broken: cannot be used" {
			t.Errorf("%q", got) // told once
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(warned) != 2 || strings.Contains(strings.Join(warned, c.dump()), "s3cret") {
		t.Errorf("warned %q", warned)
	}
}

// A server that does not answer is not waited for by session/new, and a prompt
// that waits for it can be cancelled.
func TestMuteServer(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", caller), ServersWait: 50 * time.Millisecond})
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
	id, status := c.sessionWith(t.TempDir(), stdio(t, "mute", "mute"))
	if d := cmp.Diff([]map[string]any{{"name": "mute", "connecting": true}}, status); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	n, line := c.request("session/prompt", text(id, "double it", ""))
	c.write(line, cancel(id))
	if p := readPrompted(t, c.response(n)); p.StopReason != "cancelled" {
		t.Errorf("%+v", p)
	}
}

func TestWrongServers(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", caller)})
	c.call("initialize", `{"protocolVersion":1}`)
	for _, tt := range []struct{ servers, says string }{
		{`{"name":"x","type":"sse","url":"http://localhost","headers":[]}`, "mcpServers[0]: type: the transport"},
		{`{"name":"x","type":"acp","id":"1"}`, "type"},
		{`{"name":"x"}`, "mcpServers[0]: command"},
		{`{"command":"/bin/true","args":[],"env":[]}`, "name"},
		{`{"name":"x","command":"/bin/true","args":"s3cret","env":[]}`, "args: a JSON string"},
		{`{"name":"x","command":"/bin/true","args":[],"env":[{"name":"A=B","value":"s3cret"}]}`, "env[0]"},
		{`{"name":"x","type":"http","url":"http://localhost","headers":[{"name":"a b","value":"s3cret"}]}`, "headers[0]"},
		{`{"name":"x","type":"http","url":"http://localhost","headers":[{"name":"a","value":"s3cret\r\nb: c"}]}`, "headers[0]"},
		{`17`, "mcpServers[0]"},
		{strings.TrimSuffix(strings.Repeat(`{"name":"x","command":"/bin/true","args":[],"env":[]},`, 33), ","), "at most 32"},
	} {
		f := c.call("session/new", `{"cwd":"/tmp","mcpServers":[`+tt.servers+`]}`)
		if f.Error == nil || f.Error.Code != -32602 || !strings.Contains(f.raw, tt.says) || strings.Contains(f.raw, "s3cret") {
			t.Errorf("%.100s: %s", tt.servers, f.raw)
		}
	}
	if f := c.call("session/new", `{"cwd":"here","mcpServers":[]}`); f.Error == nil || !strings.Contains(f.Error.Message, "cwd") {
		t.Errorf("a relative folder: %s", f.raw)
	}
}

// Servers over HTTP get their headers, whose values stand nowhere.
func TestServersOverHTTP(t *testing.T) {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return mcpServer() }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer tok-123456" || r.URL.Query().Get("key") != "s3cret-key" {
			http.Error(w, "not with "+r.Header.Get("Authorization")+r.URL.String(), http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer srv.Close()
	c := connect(t, acp.Config{Service: service(t, graph(t, callerGraph(", client_tools: allow")), caller), Warn: func(err error) {
		if strings.Contains(err.Error(), "tok-") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("a secret in %v", err)
		}
	}})
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
	entry := func(name, token string) string {
		return fmt.Sprintf(`{"name":%q,"type":"http","url":"%s/a/long/path?key=s3cret-key","headers":[{"name":"Authorization","value":"Bearer %s"}]}`, name, srv.URL, token)
	}
	id, status := c.sessionWith(t.TempDir(), entry("right", "tok-123456"), entry("wrong", "tok-654321"))
	if status[0]["error"] != nil || status[1]["error"] == nil {
		t.Errorf("%v", status)
	}
	rec := readRecord(t, readPrompted(t, c.call("session/prompt", text(id, "double it", ""))))
	if *rec.ToolCalls[0].Result != "it is 42" {
		t.Errorf("%+v", rec.ToolCalls)
	}
	if all := c.dump(); strings.Contains(all, "tok-") || strings.Contains(all, "s3cret") || strings.Contains(all, srv.URL) {
		t.Errorf("a secret is in %s", all)
	}
}

// pidOf asks the model to have a server say its process id.
func pidOf(t *testing.T, c *client, id string) int {
	t.Helper()
	rec := readRecord(t, readPrompted(t, c.call("session/prompt", text(id, "about", ""))))
	_, rest, _ := strings.Cut(*rec.ToolCalls[0].Result, "pid=")
	pid, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// gone waits for the end of a process.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		// What was ended and has lost its parent may wait to be collected.
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %d is still there", pid)
}

// Servers end with their session: when it is loaded with others, and with the
// connection, also those that do not want to.
func TestServersEnd(t *testing.T) {
	svc := service(t, graph(t, callerGraph(", client_tools: allow")), caller)
	c := connect(t, acp.Config{Service: svc})
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
	id, _ := c.sessionWith(t.TempDir(), stdio(t, "s", "good"))
	first := pidOf(t, c, id)
	f := c.call("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":"/tmp","mcpServers":[%s]}`, id, stdio(t, "s", "stubborn")))
	if f.Error != nil {
		t.Fatal(f.raw)
	}
	gone(t, first)
	second := pidOf(t, c, id)
	if second == first {
		t.Error("it is the same server")
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
	gone(t, second)
}

// A server does not outlive this program, however that ends. A server that
// listens to nothing is ended by the kernel, which Linux alone does.
func TestServersEndWithTheProgram(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kind := "good"
	if runtime.GOOS == "linux" {
		kind = "stubborn"
	}
	cmd := exec.Command(exe, agentOver, graph(t, callerGraph(", client_tools: allow")))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := connectTo(t, in, out, func() error {
		_ = cmd.Wait() // it was killed
		return nil
	})
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
	id, _ := c.sessionWith(t.TempDir(), stdio(t, "s", kind))
	pid := pidOf(t, c, id)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}

// tool_output has the results of the client's tools, also of an agent that has
// none of its own.
func TestToolOutputOfTheClientsTools(t *testing.T) {
	root := graph(t, map[string]string{
		"agentgraph.yaml":      "models: {fake: {script: answers.yaml}}\ndefaults: {model: fake, client_tools: allow, tool_output: results}\n",
		"answers.yaml":         "default: {text: x}\n",
		"agents/a/system/a.md": "You call tools.",
	})
	c := connect(t, acp.Config{Service: service(t, root, caller), Agent: "a"})
	c.call("initialize", `{"protocolVersion":1}`)
	id, _ := c.sessionWith(t.TempDir(), stdio(t, "s", "good"))
	readPrompted(t, c.call("session/prompt", text(id, "double it", "")))
	files, err := filepath.Glob(filepath.Join(root, "results", "tool-double-*.txt"))
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
