package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// graphOf unpacks an archive into a new folder; a name that ends in / is a
// folder, and "a -> b" is a link.
func graphOf(t *testing.T, archive string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		if from, to, ok := strings.Cut(f.Name, " -> "); ok {
			must(os.MkdirAll(filepath.Dir(filepath.Join(root, from)), 0o755))
			must(os.Symlink(to, filepath.Join(root, from)))
			continue
		}
		path := filepath.Join(root, f.Name)
		if strings.HasSuffix(f.Name, "/") {
			must(os.MkdirAll(path, 0o755))
			continue
		}
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, f.Data, 0o644))
	}
	return root
}

func load(t *testing.T, archive string) *Graph {
	t.Helper()
	g, err := LoadWith(graphOf(t, archive), LoadOptions{DefaultModel: "script:a.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func findings(g *Graph) []string {
	list := []string{}
	for _, f := range g.Findings {
		list = append(list, f.String())
	}
	return list
}

func TestFindings(t *testing.T) {
	for _, tt := range []struct {
		name, archive string
		want          []string
		stopped       string // names of the agents that cannot run
	}{
		{"no settings", "-- agents/a/system/ --\n", []string{}, ""},
		{"empty settings", "-- agents/a/agent.yaml --\n# nothing\n-- agentgraph.yaml --\n", []string{}, ""},
		{"everything at once", "-- agents/a/agent.yaml --\nhistroy: 1\nsampling: {top_k: 1.5, temperature: hot}\nconcurrency: 017\nmodel: 12\nmodel: x\nsettle: 200\n-- agents/b/system/ --\n", []string{
			`agents/a/agent.yaml:1:1: unknown key "histroy"; did you mean "history"?`,
			`agents/a/agent.yaml:2:19: "sampling.top_k" must be a whole number, not 1.5`,
			`agents/a/agent.yaml:2:37: "sampling.temperature" must be a number, not the text "hot"`,
			`agents/a/agent.yaml:3:14: "concurrency" must be a whole number, not 017`,
			`agents/a/agent.yaml:4:8: "model" must be text, not 12; put it in quotes`,
			`agents/a/agent.yaml:5:1: "model" is written twice, first at line 4; keep one of them`,
			`agents/a/agent.yaml:6:9: "settle" must be a duration, not 200; write a number and a unit, such as 200ms, 30s, 10m`,
		}, "a"},
		{"second document", "-- agents/a/agent.yaml --\nhistory: 1\n---\nhistory: 2\n", []string{
			`agents/a/agent.yaml:3:1: a second document begins here; a settings file holds one document; remove the '---' and what follows`,
		}, "a"},
		{"not YAML", "-- agents/a/agent.yaml --\ninputs: [a\n", []string{
			`agents/a/agent.yaml:2:1: not YAML: while parsing a flow sequence: did not find expected ',' or ']'`,
		}, "a"},
		{"numbers that other readers bend", "-- agents/a/agent.yaml --\nsampling: {temperature: 1e400, seed: -1, max_tokens: 99999999999999999999}\nretries: 0x10\ntimeout: 2026-01-01\n", []string{
			`agents/a/agent.yaml:1:25: "sampling.temperature" must be a number, not the text "1e400"`,
			`agents/a/agent.yaml:1:38: "sampling.seed" must be a whole number from 0 to 18446744073709551615, not -1`,
			`agents/a/agent.yaml:1:54: "sampling.max_tokens" must be a whole number, not 99999999999999999999`,
			`agents/a/agent.yaml:2:10: "retries" must be a whole number, not 0x10`,
			`agents/a/agent.yaml:3:10: "timeout" must be a duration, not 2026-01-01; write a number and a unit, such as 200ms, 30s, 10m`,
		}, "a"},
		{"bounds and words", "-- agents/a/agent.yaml --\nconcurrency: 0\njoin: some\noutput: {enforce: hope, repair: {max_feedback_bytes: 100}}\nsampling: {top_p: 1.1}\ntimeout: 0s\nschema_in_prompt: yes\nhistory:\n", []string{
			`agents/a/agent.yaml:1:14: "concurrency" is 0, less than 1`,
			`agents/a/agent.yaml:2:7: "join" is "some"; write one of any, all`,
			`agents/a/agent.yaml:3:19: "output.enforce" is "hope"; write one of mask, validate`,
			`agents/a/agent.yaml:3:54: "output.repair.max_feedback_bytes" is 100, less than 512`,
			`agents/a/agent.yaml:4:19: "sampling.top_p" is 1.1, more than 1`,
			`agents/a/agent.yaml:5:10: "timeout" is 0s, less than 1ms`,
			`agents/a/agent.yaml:6:19: "schema_in_prompt" must be true or false, not the text "yes"`,
			`agents/a/agent.yaml:7:9: "history" has no value; write one or remove the key`,
		}, "a"},
		{"a schema in an agent's settings", "-- agents/a/agent.yaml --\noutput: {schema: {type: string}}\n", []string{
			`agents/a/agent.yaml:1:10: output.schema is for respond, under defaults: in agentgraph.yaml; put the schema into system/.schema-NAME.json`,
		}, "a"},
		{"samples", "-- agents/a/agent.yaml --\nsampling: {temperature: 0}\nsamples: 2\n-- agents/b/agent.yaml --\nsamples: 3\nsampling: {temperature: 0.5}\n-- agents/c/agent.yaml --\nsamples: 1001\n", []string{
			"agents/a/agent.yaml:2:1: samples: 2 with temperature 0: all answers to an input would be the same; set sampling: {temperature: 0.8}, or samples: 1",
			`agents/c/agent.yaml:1:10: "samples" is 1001, more than 1000`,
		}, "c"},
		{"samples of all", "-- agentgraph.yaml --\ndefaults: {samples: 2}\n-- agents/a/system/ --\n", []string{
			"agentgraph.yaml:1:12: samples: 2 with temperature 0: all answers to an input would be the same; set sampling: {temperature: 0.8}, or samples: 1",
		}, ""},
		{"tools", "-- agents/a/agent.yaml --\ntools:\n  - read_file\n  - {tool: read_file, dir: ../../..}\n  - {policy: maybe, tool: x}\n  - {mcp: {url: 'http://a/', command: [b]}}\n  - {tool: x, only: [y]}\n  - {timout: 1s, tool: x}\n  - [x]\ntool_output: output\nstream_output: /tmp\n", []string{
			`agents/a/agent.yaml:3:5: tools[1]: its dir lies outside the graph; nothing leaves the graph; name a folder in it`,
			`agents/a/agent.yaml:4:14: "tools[2].policy" is "maybe"; write one of allow, ask, deny`,
			`agents/a/agent.yaml:5:5: tools[3]: an MCP server has one of command and url; docs/tools.md shows how tools are written`,
			`agents/a/agent.yaml:6:5: tools[4]: only, prefix and policies are for MCP servers; docs/tools.md shows how tools are written`,
			`agents/a/agent.yaml:7:6: unknown key "tools[5].timout"; did you mean "timeout"?`,
			`agents/a/agent.yaml:8:5: "tools[6]" must be keys with values, not a list`,
			`agents/a/agent.yaml:9:1: tool_output is the agent's own output; nothing but whole answers is in output; name a folder of its own`,
			`agents/a/agent.yaml:10:1: stream_output: /tmp is no folder for this in the graph; name a folder of its own inside the graph`,
		}, "a"},
		{"dangling model", "-- agentgraph.yaml --\nmodels: {small: {script: a.yaml}}\n-- agents/a/agent.yaml --\nmodel: smal\n-- agents/b/agent.yaml --\nmodel: small\n", []string{
			`agents/a/agent.yaml:1:1: no model is called "smal"; known models: small; or add it under models: in agentgraph.yaml, or write a path that ends in .gguf, or script:FILE`,
		}, "a"},
		{"a bad model stops its users only", "-- agentgraph.yaml --\nmodels:\n  qwen2.5: {gguf: x.gguf, contxt: 1}\n  both: {gguf: x.gguf, script: y}\n  far: {server: vllm}\n  ok: {script: y}\n-- agents/a/agent.yaml --\nmodel: qwen2.5\n-- agents/b/agent.yaml --\nmodel: both\n-- agents/c/agent.yaml --\nmodel: ok\n-- agents/d/agent.yaml --\nmodel: far\n", []string{
			`agentgraph.yaml:2:27: unknown key "models.qwen2.5.contxt"; did you mean "context"?`,
			`agentgraph.yaml:3:3: model "both" names gguf and script; a model is one of them; write several entries for several models`,
			`agentgraph.yaml:4:3: model "far" names a server and no url; write url: http://HOST:PORT/v1`,
		}, "a b d"},
		{"broken graph file", "-- agentgraph.yaml --\nwatch: sometimes\n-- agents/a/system/ --\n", []string{
			`agentgraph.yaml:1:8: "watch" is "sometimes"; write one of auto, notify, poll`,
		}, "a"},
		{"dangling input", "-- agents/a/agent.yaml --\ninputs: [../writr/output, input]\n-- agents/writer/system/ --\n", []string{
			`agents/a/agent.yaml:1:10: no agent is called "writr"; did you mean "writer"?`,
		}, "a"},
		{"inputs outside", "-- agents/a/agent.yaml --\ninputs:\n  - ../../../elsewhere\n  - turns\n  - ../../.agentgraph/x\n  - ''\n", []string{
			`agents/a/agent.yaml:2:5: the input folder ../../../elsewhere lies outside the graph; nothing leaves the graph; move the folder into it`,
			`agents/a/agent.yaml:3:5: turns is the agent's own turns; list an input folder or another agent's output`,
			`agents/a/agent.yaml:4:5: ../../.agentgraph/x cannot be an input folder; the graph's own files live there`,
			`agents/a/agent.yaml:5:5: an input folder's path is empty, too long or holds a zero byte; write a path relative to the agent's folder`,
		}, "a"},
		{"link out", "-- agents/a/system/ --\n-- agents/a/input -> /usr --\n", []string{
			`agents/a/agent.yaml: the input folder input lies outside the graph; nothing leaves the graph; move the folder into it`,
		}, "a"},
		{"own output", "-- agents/a/agent.yaml --\ninputs: [output]\n-- agents/b/agent.yaml --\nmax_hops: 2\ninputs: [output]\n", []string{
			`agents/a/agent.yaml:1:1: the agent's output folder is its input folder; break the cycle, or bound it with max_hops: N in one of its agents`,
		}, "a"},
		{"cycles", "-- agents/a/agent.yaml --\ninputs: [../c/output]\n-- agents/b/agent.yaml --\ninputs: [../a/output]\n-- agents/c/agent.yaml --\ninputs: [../b/output, input]\n-- agents/d/agent.yaml --\ninputs: [../e/output]\n-- agents/e/agent.yaml --\ninputs: [../d/output]\nmax_hops: 3\n-- agents/f/agent.yaml --\ninputs: [../c/output]\n", []string{
			`agents/a/agent.yaml:1:1: the agents feed each other: a → b → c → a; break the cycle, or bound it with max_hops: N in one of its agents`,
			`agents/b/agent.yaml:1:1: the agents feed each other: a → b → c → a; break the cycle, or bound it with max_hops: N in one of its agents`,
			`agents/c/agent.yaml:1:1: the agents feed each other: a → b → c → a; break the cycle, or bound it with max_hops: N in one of its agents`,
		}, "a b c"},
		{"not an agent, and a graph inside", "-- agents/notes/readme.txt --\nx\n-- agents/a/system/ --\n-- agents/a/agents/ --\n-- agents/.hidden/system/ --\n", []string{
			`agents/a: a graph lies inside this agent (agents); move the inner graph elsewhere`,
			`agents/notes: not an agent: it has no system folder, no input folder and no agent.yaml; add a system folder, or move it out of agents`,
		}, "a"},
		{"merge keys and odd keys", "-- agents/a/agent.yaml --\n<<: {history: 1}\n? [x]\n: 1\n", []string{
			`agents/a/agent.yaml:1:1: merge keys (<<) are not read in settings; write the keys out, or put them under defaults:`,
			`agents/a/agent.yaml:2:3: a key must be a plain word`,
		}, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := load(t, tt.archive)
			if diff := cmp.Diff(tt.want, findings(g)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			var stopped []string
			for _, a := range g.Agents {
				if a.Err != nil {
					stopped = append(stopped, a.Name)
				}
			}
			if got := strings.Join(stopped, " "); got != tt.stopped {
				t.Errorf("stopped agents: %q, want %q", got, tt.stopped)
			}
		})
	}
}

func TestEffectiveSettings(t *testing.T) {
	g := load(t, `
-- agentgraph.yaml --
models:
  m: {script: models/m.yaml}
defaults:
  model: m
  sampling: {temperature: 0.5, max_tokens: 10}
  output: {enforce: validate, repair: {enabled: true}}
  timeout: 2 min
limits: {preset: strict, input_bytes: 7}
settle: 1s
-- agents/a/agent.yaml --
sampling: {max_tokens: 20}
output: {repair: {max_feedback_bytes: 600}}
limits: {schema_depth: 5}
-- agents/b/agent.yaml --
limits: {preset: standard}
settle: 0
-- agents/c/agent.yaml --
model: local.gguf
`)
	if len(g.Findings) > 0 {
		t.Fatal(findings(g))
	}
	a, b, c := g.Agents[0].Settings, g.Agents[1].Settings, g.Agents[2].Settings
	type view struct {
		Temperature float64
		MaxTokens   int
		Enforce     string
		Repair      bool
		Feedback    int
		Timeout     string
		Depth       int
		Nodes       int
		Input       int
		Settle      string
		SettleSet   bool
	}
	of := func(s Settings) view {
		return view{s.Sampling.Temperature, s.Sampling.MaxTokens, string(s.Constraint.Enforce), s.Repair.Enabled,
			s.Repair.MaxFeedbackBytes, s.Timeout.String(), s.Constraint.Limits.SchemaDepth, s.Constraint.Limits.SchemaNodes, s.InputBytes, s.Settle.String(), s.SettleSet}
	}
	want := []view{
		{0.5, 20, "validate", true, 600, "2m0s", 5, 4096, 7, "1s", true},
		{0.5, 10, "validate", true, 4096, "2m0s", 64, 16384, 1 << 20, "0s", true},
	}
	if diff := cmp.Diff(want, []view{of(a), of(b)}); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if want := filepath.Join(g.Root, "models/m.yaml"); a.ModelSpec.Script != want {
		t.Errorf("script = %q, want %q", a.ModelSpec.Script, want)
	}
	if want := filepath.Join(g.Root, "agents/c/local.gguf"); c.ModelSpec.GGUF != want {
		t.Errorf("a path in agent.yaml starts at that file: %q, want %q", c.ModelSpec.GGUF, want)
	}
	if a.SHA256() == b.SHA256() || a.SHA256() != g.Agents[0].Settings.SHA256() {
		t.Error("the hash of settings must follow the settings")
	}
}

func TestGraphExports(t *testing.T) {
	g := load(t, `
-- agents/editor/agent.yaml --
inputs: [../writer/output, input]
-- agents/end/agent.yaml --
inputs: [../editor/output]
-- agents/writer/system/ --
`)
	if len(g.Findings) > 0 {
		t.Fatal(findings(g))
	}
	if diff := cmp.Diff([]Edge{{"editor", "end"}, {"writer", "editor"}}, g.Edges()); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
	want := "flowchart LR\n  a0[\"editor\"]\n  a1[\"end\"]\n  a2[\"writer\"]\n  f3[/\"agents/editor/input\"/] --> a0\n  f4[/\"agents/writer/input\"/] --> a2\n  a0 --> a1\n  a2 --> a0\n"
	if diff := cmp.Diff(want, g.Mermaid()); diff != "" {
		t.Errorf("mermaid (-want +got):\n%s", diff)
	}
	want = "digraph agentgraph {\n  rankdir=LR;\n  \"editor\" [shape=box];\n  \"end\" [shape=box];\n  \"writer\" [shape=box];\n  \"agents/editor/input\" [shape=folder];\n  \"agents/editor/input\" -> \"editor\";\n  \"agents/writer/input\" [shape=folder];\n  \"agents/writer/input\" -> \"writer\";\n  \"editor\" -> \"end\";\n  \"writer\" -> \"editor\";\n}\n"
	if diff := cmp.Diff(want, g.DOT()); diff != "" {
		t.Errorf("dot (-want +got):\n%s", diff)
	}
	data, err := g.JSON()
	if err != nil || !strings.Contains(string(data), `"from": "writer"`) {
		t.Errorf("json: %s, %v", data, err)
	}
}

// A folder's name cannot write to the terminal.
func TestGraphExportsArePrintable(t *testing.T) {
	g := &Graph{Agents: []*Agent{{Name: "esc\x1b[31m\nx\xff"}}}
	for name, tc := range map[string]struct{ got, want string }{
		"mermaid": {g.Mermaid(), `["esc\x1b[31m\nx\xff"]`},
		"dot":     {g.DOT(), `"esc\\x1b[31m\\nx\\xff"`},
	} {
		if !strings.Contains(tc.got, tc.want) {
			t.Errorf("%s: %q, want %s in it", name, tc.got, tc.want)
		}
	}
}

func TestNotAGraph(t *testing.T) {
	root := graphOf(t, "-- outer/agentgraph.yaml --\n-- outer/agents/a/inner/agents/b/system/ --\n-- plain/x --\n")
	for dir, want := range map[string]string{
		"missing":              "no graph at",
		"plain":                "is no graph: it has no agents folder",
		"outer/agents/a/inner": "lies inside the graph at",
	} {
		if _, err := Load(filepath.Join(root, dir)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%s) = %v, want %q", dir, err, want)
		}
	}
}

func TestSettingsDoc(t *testing.T) {
	path := filepath.Join("..", "docs", "settings.md")
	const marker = "<!-- generated: go test ./agents -run TestSettingsDoc with AGENTGRAPH_UPDATE=1 -->\n"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, body, ok := strings.Cut(string(data), marker)
	if !ok {
		t.Fatalf("%s lost its marker", path)
	}
	want := "\n" + SettingsTables()
	if os.Getenv("AGENTGRAPH_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(head+marker+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("%s is not what the settings structs say; run with AGENTGRAPH_UPDATE=1 (-want +got):\n%s", path, diff)
	}
}
