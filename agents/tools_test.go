package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/record"
	"agentgraph/tools"
)

func TestToolSettings(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("agentgraph.yaml", "models: {m: {script: m.yaml}}\ndefaults:\n  model: m\n  tools: [bin/tool, clock]\n")
	write("agents/a/agent.yaml", `
tools:
  - read_file
  - {tool: ./tool, policy: ask, timeout: 5s, output_bytes: 100, dir: work, env: [KEY]}
  - command: [python3, t.py]
  - mcp: {command: [./serve, -x]}
    only: [echo]
    prefix: ev_
    policies: {echo: deny}
  - mcp: {url: 'http://127.0.0.1/mcp', headers: {Authorization: TOKEN}}
max_tool_rounds: 0
tool_format: llama
tool_output: results
stream_output: ../../live
keep_stream: true
`)
	write("agents/b/agent.yaml", "max_hops: 3\n")
	write("agents/c/agent.yaml", "inputs: [../b/output]\n")
	g, err := Load(root)
	if err != nil || len(g.Findings) > 0 {
		t.Fatalf("%v, %v", err, g.Findings)
	}
	root = g.Root
	a := g.Agent("a")
	dir := filepath.Join(root, "agents/a")
	want := []tools.Config{
		{Builtin: "read_file"},
		{Command: []string{dir + "/tool"}, Policy: tools.Ask, Timeout: 5 * time.Second, OutputBytes: 100, Dir: dir + "/work", Env: []string{"KEY"}},
		{Command: []string{"python3", "t.py"}},
		{MCP: &tools.Server{Command: []string{dir + "/serve", "-x"}}, Only: []string{"echo"}, Prefix: "ev_", Policies: map[string]tools.Policy{"echo": tools.Deny}},
		{MCP: &tools.Server{URL: "http://127.0.0.1/mcp", Headers: map[string]string{"Authorization": "TOKEN"}}},
	}
	if diff := cmp.Diff(want, a.Settings.Tools); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]tools.Config{{Command: []string{root + "/bin/tool"}}, {Command: []string{"clock"}}}, g.Agent("b").Settings.Tools); diff != "" {
		t.Error(diff)
	}
	req, err := a.Turn([]Input{{Path: "agents/a/input/x", Data: []byte("x")}})
	if err != nil {
		t.Fatal(err)
	}
	if req.MaxToolRounds != -1 || req.ToolFormat != "llama" || a.Settings.StreamOutput != filepath.Join(root, "live") || !a.Settings.KeepStream {
		t.Errorf("%+v", req)
	}
	place := tools.Place{Root: root, Dir: dir, Notes: dir + "/notes", Peers: []tools.Peer{{Name: "b", Input: filepath.Join(root, "agents/b/input"), MaxHops: 3}}}
	if diff := cmp.Diff(place, req.Place); diff != "" {
		t.Error(diff)
	}
	req.TurnID = "t1"
	text := "three"
	if err := req.ToolResult(record.ToolCall{ID: "call00001", Name: "../add", Result: &text}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "results", "tool-___add-t1-call00001.txt"))
	if err != nil || string(b) != "three" {
		t.Errorf("%q, %v", b, err)
	}
}

// What is shown of an answer, and results of tools, get into no folder that
// holds answers, records or prompts: not this agent's, not another's, and not
// through a link.
func TestFoldersThatAreKept(t *testing.T) {
	for folder, want := range map[string]string{
		"output/live": "lies in agents/a/output/live", "../b/output": "lies in agents/b/output", "../b/turns/x": "lies in agents/b/turns/x",
		"system": "is the agent's own system", "../b/system": "lies in agents/b/system", "linked/deeper": "lies in agents/b/output/deeper",
		"../../agents/b/../b/output": "lies in agents/b/output", "live": "", "../../live/output": "", "../b/live": "",
	} {
		for _, key := range []string{"stream_output", "tool_output"} {
			root := t.TempDir()
			for _, dir := range []string{"agents/a/system", "agents/b/system", "agents/b/output"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("../b/output", filepath.Join(root, "agents/a/linked")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "agents/a/agent.yaml"), []byte(key+": "+folder+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			g, err := LoadWith(root, LoadOptions{DefaultModel: "script:none"})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if e := g.Agent("a").Err; e != nil {
				got = e.Error()
			}
			if want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%s: %s: %q, want %q", key, folder, got, want)
			}
		}
	}
}

// thinking: reaches the turn as it is written, and is nobody's where it is not.
func TestThinkingReachesTheTurn(t *testing.T) {
	for _, tt := range []struct{ defaults, agent, want string }{
		{"", "", "unset"},
		{"", "thinking: false\n", "false"},
		{"", "thinking: true\n", "true"},
		{"defaults: {thinking: false}\n", "", "false"},
		{"defaults: {thinking: false}\n", "thinking: true\n", "true"},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "agents/a/system"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"agentgraph.yaml": tt.defaults, "agents/a/agent.yaml": tt.agent} {
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		g, err := LoadWith(root, LoadOptions{DefaultModel: "script:none"})
		if err != nil {
			t.Fatal(err)
		}
		req, err := g.Agent("a").Turn([]Input{{Path: "agents/a/input/x", Data: []byte("x")}})
		if err != nil {
			t.Fatal(err)
		}
		got := "unset"
		if req.Thinking != nil {
			got = map[bool]string{true: "true", false: "false"}[*req.Thinking]
		}
		if got != tt.want {
			t.Errorf("%q, %q: %s, want %s", tt.defaults, tt.agent, got, tt.want)
		}
	}
}
