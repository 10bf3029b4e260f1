package importer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/agents"
)

// copyTo copies a folder of testdata.
func copyTo(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// show is a plan as the golden files have it.
func show(p *Plan, base string) string {
	var b strings.Builder
	for _, f := range p.Files {
		if f.From != "" {
			fmt.Fprintf(&b, "== copy %s to %s\n", f.From, f.Path)
			continue
		}
		fmt.Fprintf(&b, "== write %s\n%s", f.Path, f.Text)
	}
	b.WriteString("== folders\n" + strings.Join(p.Folders, "\n") + "\n== notes\n")
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "%d:%d %s %s: %s\n", n.Line, n.Column, n.Kind, n.Key, n.Message)
	}
	return strings.ReplaceAll(b.String(), base, "$BASE")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("AGENTGRAPH_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what comes of it; AGENTGRAPH_UPDATE=1 writes it (-want +got):\n%s", path, diff)
	}
}

func TestEveryKey(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no tool is there
	for _, tc := range []struct {
		name   string
		target string
	}{{"into-another-folder", "graph"}, {"in-place", "."}} {
		t.Run(tc.name, func(t *testing.T) {
			base := copyTo(t, "testdata/all")
			dir := filepath.Join(base, tc.target)
			plan, err := Read(filepath.Join(base, "config.yaml"), dir)
			if err != nil {
				t.Fatal(err)
			}
			text := show(plan, base)
			golden(t, tc.name+".golden", text)
			if strings.Contains(text, "sk-do-not") || strings.Contains(text, "sk-nor") {
				t.Error("a key was copied")
			}
			if err := plan.Write(); err != nil {
				t.Fatal(err)
			}
			g, err := agents.LoadWith(dir, agents.LoadOptions{DefaultModel: "script:x.yaml"})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range g.Findings {
				if f.Severity == agents.SeverityError {
					t.Errorf("the result: %s", f)
				}
			}
			for _, a := range g.Agents {
				if a.Err != nil {
					t.Errorf("agent %s: %v", a.Name, a.Err)
				}
			}
			if len(g.Agents) < 6 {
				t.Errorf("%d agents", len(g.Agents))
			}
			everyKeyIsSpokenFor(t, filepath.Join(base, "config.yaml"), plan)
		})
	}
}

// everyKeyIsSpokenFor finds keys of the configuration that are neither carried
// nor noted.
func everyKeyIsSpokenFor(t *testing.T, config string, p *Plan) {
	t.Helper()
	root, err := readConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	// Carried without a word, or asking for nothing.
	silent := strings.Fields(`id path gguf builder model name type api_base max_seq_len max_num_seqs provider startup_timeout_secs
		inputs output system stream_output tool_output prompt sampling enable_thinking system_prompt_mode inference_retries tools tools_enabled
		consume_tool_calls excluded_from_summary temperature top_p top_k min_p max_len`)
	noted := map[string]bool{}
	for _, n := range p.Notes {
		noted[n.Key] = true
	}
	var walk func(n node)
	walk = func(n node) {
		for _, k := range n.keys() {
			short := k.name()
			depth := strings.Count(k.key, ".")
			if !noted[k.key] && depth != 1 && n.key != "" && !slices.Contains(silent, short) {
				t.Errorf("%d: nothing is said of %s", k.at.Line, k.key)
			}
			if n.key == "" && !noted[k.key] && short != "models" && short != "agents" {
				t.Errorf("%d: nothing is said of %s", k.at.Line, k.key)
			}
			if !noted[k.key] {
				walk(k)
			}
		}
	}
	walk(root)
}

// The values that are carried mean what they meant.
func TestCarriedValues(t *testing.T) {
	base := copyTo(t, "testdata/all")
	dir := filepath.Join(base, "graph")
	plan, err := Read(filepath.Join(base, "config.yaml"), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Write(); err != nil {
		t.Fatal(err)
	}
	g, err := agents.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, c := g.Agent("researcher"), g.Agent("coder")
	s := r.Settings
	if s.Sampling.Temperature != 0.7 || s.Sampling.TopP != 0.9 || s.Sampling.TopK != 40 || s.Sampling.MinP != 0.05 || s.Sampling.MaxTokens != 2048 || s.History != 10 {
		t.Errorf("the researcher's settings are %+v", s)
	}
	if got, want := g.Rel(s.ModelSpec.GGUF), filepath.Join(base, "models", "smol.gguf"); got != filepath.ToSlash(want) {
		t.Errorf("the model is %s, want %s", got, want)
	}
	if want := "Write code.\nNothing else: \"no\" prose."; c.Settings.Prompt != want || !*c.Settings.Thinking || c.Settings.Retries != 5 {
		t.Errorf("the coder's settings are %+v", c.Settings)
	}
	var edges []string
	for _, e := range g.Edges() {
		edges = append(edges, e.From+" "+e.To)
	}
	if diff := cmp.Diff([]string{"coder reviewer", "ping pong", "pong ping", "researcher coder"}, edges); diff != "" {
		t.Error(diff)
	}
	m := g.Models["served"]
	if m.Server != "vllm" || m.URL != "http://127.0.0.1:8000/v1" || m.Context != 8192 || m.Startup().Seconds() != 600 ||
		!cmp.Equal(m.ServerCommand.Command, []string{"sh", "-c", "exec vllm serve Qwen/Qwen3-8B --port 8000"}) || *m.Key.Env != "SERVED_KEY" {
		t.Errorf("the server is %+v", m)
	}
	data, err := os.ReadFile(filepath.Join(r.SystemDir, ".schema-note.json"))
	want, _ := os.ReadFile(filepath.Join(base, "agents", "researcher", "system", ".schema-note.json"))
	if err != nil || string(data) != string(want) {
		t.Errorf("the schema is %q, want %q (%v)", data, want, err)
	}
}

func TestNothingIsReplaced(t *testing.T) {
	base := copyTo(t, "testdata/all")
	dir := filepath.Join(base, "graph")
	plan, err := Read(filepath.Join(base, "config.yaml"), dir)
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(dir, "agents", "coder", "agent.yaml")
	if err := os.MkdirAll(filepath.Dir(there), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(there, []byte("history: 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var exist *ExistError
	if err := plan.Write(); !errors.As(err, &exist) || !cmp.Equal(exist.Files, []string{there}) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, agents.GraphFile)); err == nil {
		t.Error("a part was written")
	}
	if data, _ := os.ReadFile(there); string(data) != "history: 3\n" {
		t.Errorf("the file is %q now", data)
	}
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"not YAML":     {"models: [\n", "config.yaml:2:1: not YAML"},
		"a list":       {"- a\n", "it has no keys"},
		"other YAML":   {"name: x\n", "it has neither models: nor agents:"},
		"nothing":      {"", "not YAML"},
		"too long":     {"models: " + strings.Repeat("x", maxConfigBytes), "no configuration has"},
		"many aliases": {"a: &a [x]\nmodels: {m: *a}\nagents: {b: *a}\n", ""},
		"empty":        {"models: {}\nagents: {}\n", ""},
		"odd values":   {"models: 5\nagents: {a: 5, b: {inputs: {x: y}, output: {x: y}, system: 7, model: [x], sampling: 3, tools: {}, history_limit: -1}}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "config.yaml")
			if err := os.WriteFile(path, []byte(tc.src), 0o644); err != nil {
				t.Fatal(err)
			}
			plan, err := Read(path, filepath.Join(dir, "g"))
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %s; the plan %+v", err, tc.want, plan)
			}
		})
	}
}

func TestOtherThanNames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte("models: none\nagents:\n  - name: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := Read(path, filepath.Join(dir, "g"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Note{
		{Lost, "models", 1, 1, "its value is not models by name"},
		{Lost, "agents", 2, 1, "its value is not agents by name"},
	}
	if diff := cmp.Diff(want, plan.Notes); diff != "" {
		t.Error(diff)
	}
	if _, err := Read(dir, filepath.Join(dir, "g")); err == nil || !strings.Contains(err.Error(), "is no regular file") {
		t.Errorf("a folder: %v", err)
	}
}

// Whatever stands in a configuration, the settings that come of it are read.
func TestCopiesHaveABound(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte("agents: {a: {system: [s]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "s"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", maxSystemBytes)
	const fit = maxCopiedBytes / maxSystemBytes
	for i := range fit + 1 {
		if err := os.WriteFile(filepath.Join(dir, "s", fmt.Sprintf("%02d.md", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := Read(config, filepath.Join(dir, "graph"))
	if err != nil {
		t.Fatal(err)
	}
	copies := 0
	for _, f := range plan.Files {
		if f.From != "" {
			copies++
		}
	}
	if copies != fit {
		t.Errorf("%d files are copied, want %d", copies, fit)
	}
	if !slices.ContainsFunc(plan.Notes, func(n Note) bool {
		return n.Kind == Lost && strings.HasPrefix(n.Message, fmt.Sprintf("s/%02d.md: with it", fit))
	}) {
		t.Errorf("no note names the file that is left out: %v", plan.Notes)
	}
}

func TestQuoting(t *testing.T) {
	for _, text := range []string{"", "true", "No", "null", "1", "a: b", "# x", "'", "\"", "a\nb", "\t", "é", "\u2028", "-", "a b", "*x", "&x", "<<", "~", "0x1", "1e3", "2024-01-01", "a\\b", "\x7f"} {
		s := &settings{}
		s.set("prompt", text)
		path := filepath.Join(t.TempDir(), "agents", "a")
		if err := os.MkdirAll(filepath.Join(path, "system"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "agent.yaml"), []byte(s.yaml("")), 0o644); err != nil {
			t.Fatal(err)
		}
		g, err := agents.LoadWith(filepath.Dir(filepath.Dir(path)), agents.LoadOptions{DefaultModel: "script:x"})
		if err != nil {
			t.Fatal(err)
		}
		if a := g.Agent("a"); a.Err != nil || a.Settings.Prompt != text {
			t.Errorf("%q is read as %q (%v) from %s", text, a.Settings.Prompt, a.Err, s.yaml(""))
		}
	}
}
