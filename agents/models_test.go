package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// graphWith is a graph with one agent and these settings.
func graphWith(t *testing.T, graph, agent string) *Graph {
	t.Helper()
	dir := t.TempDir()
	for path, text := range map[string]string{
		GraphFile: graph, filepath.Join(AgentsDir, "a", AgentFile): agent, filepath.Join(AgentsDir, "a", "system", "role.md"): "Help.",
	} {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestModelEntries(t *testing.T) {
	for _, tc := range []struct{ name, models, want string }{
		{"two kinds", "{gguf: a.gguf, plugin: x}", "names gguf and plugin"},
		{"none", "{context: 5}", "names no gguf, no script, no server and no plugin"},
		{"command without server", "{gguf: a.gguf, server_command: [x]}", "has a server_command and no server"},
		{"time without command", "{plugin: x, startup_timeout: 5s}", "has a startup_timeout and no server_command"},
		{"constraints of a file", "{gguf: a.gguf, constraints: [json]}", "only a server or plug-in"},
		{"kind that is none", "{plugin: x, constraints: [yaml]}", `agentgraph.yaml:1:39: "models.m.constraints[0]" is "yaml"; write one of json, regex, lark, llg`},
		{"plug-in without a name", "{plugin: {env: [X]}}", "a plug-in without a name"},
		{"plug-in with both", "{plugin: {name: x, command: [y]}}", "names a plug-in and a command"},
		{"plug-in with a typo", "{plugin: {nmae: x}}", `did you mean "name"?`},
		{"command as text", "{plugin: x, server_command: run me}", "must be keys with values, not the text"},
		{"plain", "{plugin: x}", ""},
		{"plug-in with a model", "{plugin: {command: [python3, ours.py], env: [OUR_KEY]}, model: tiny, constraints: [json]}", ""},
		{"file with a model", "{gguf: a.gguf, model: tiny}", "has a model and no server"},
		{"long", "{plugin: {command: [sh, -c, y], env: [Z]}, constraints: [], context: 512}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := graphWith(t, "models: {m: "+tc.models+"}\n", "model: m\n")
			var got []string
			for _, f := range g.Findings {
				got = append(got, f.String())
			}
			text := strings.Join(got, "\n")
			if (tc.want == "") != (text == "") || !strings.Contains(text, tc.want) {
				t.Errorf("findings are %q, want %q among them", text, tc.want)
			}
			if tc.want != "" && g.Agent("a").Err == nil {
				t.Error("the agent can run")
			}
		})
	}
}

func TestModelPathsStartAtTheGraph(t *testing.T) {
	g := graphWith(t, "models:\n  m: {plugin: ./bin/x}\n  n: {plugin: {command: [bin/y, a/b]}}\n", "model: m\n")
	if got, want := *g.Models["m"].Plugin.Name, filepath.Join(g.Root, "bin", "x"); got != want {
		t.Errorf("the plug-in is %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{filepath.Join(g.Root, "bin", "y"), "a/b"}, g.Models["n"].Plugin.Command); diff != "" {
		t.Error(diff)
	}
}

func TestFallback(t *testing.T) {
	const models = "models:\n  one: {plugin: x}\n  two: {script: two.yaml}\n  bad: {context: 1}\n"
	for _, tc := range []struct {
		name, graph, agent string
		want               []string
		finding            string
	}{
		{"own", models, "model: one\nfallback: [two, near.gguf]\n", []string{"one", "two", "agents/a/near.gguf"}, ""},
		{"of the defaults", models + "defaults: {model: one, fallback: [two, near.gguf]}\n", "", []string{"one", "two", "near.gguf"}, ""},
		{"emptied", models + "defaults: {model: one, fallback: [two]}\n", "fallback: []\n", []string{"one"}, ""},
		{"unknown", models, "model: one\nfallback: [two, tow]\n", []string{"one", "two"}, `agents/a/agent.yaml:2:17: no model is called "tow"`},
		{"itself", models, "model: one\nfallback: [one]\n", []string{"one"}, "agents/a/agent.yaml:2:12: fallback names the model \"one\", which is tried before it"},
		{"twice", models, "model: one\nfallback: [two, two]\n", []string{"one", "two"}, "tried before it"},
		{"unknown in the defaults", models + "defaults: {model: one, fallback: [tow]}\n", "", []string{"one"}, "agentgraph.yaml:5:35: no model is called \"tow\""},
		{"a bad entry", models, "model: one\nfallback: [bad]\n", []string{"one"}, "names no gguf"},
		{"no list", models, "model: one\nfallback: two\n", []string{"one"}, "must be a list"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := graphWith(t, tc.graph, tc.agent)
			a := g.Agent("a")
			var names []string
			for _, n := range a.Settings.ModelNames() {
				names = append(names, g.Rel(n))
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Error(diff)
			}
			var found []string
			for _, f := range g.Findings {
				found = append(found, f.String())
			}
			text := strings.Join(found, "\n")
			if (tc.finding == "") != (a.Err == nil) {
				t.Errorf("the agent's error is %v, want one: %v", a.Err, tc.finding != "")
			}
			if !strings.Contains(text, tc.finding) || strings.Count(text, "tow") > 1 {
				t.Errorf("findings are %q, want %q once among them", text, tc.finding)
			}
		})
	}
	g := graphWith(t, models, "model: one\nfallback: [two]\n")
	flagged, err := LoadWith(g.Root, LoadOptions{Model: "two"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"two"}, flagged.Agent("a").Settings.ModelNames()); diff != "" {
		t.Errorf("a model that was asked for by name has no fallback: %s", diff)
	}
}
