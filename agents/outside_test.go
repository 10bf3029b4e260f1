package agents

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentgraph/record"
)

// Links out of the graph, relative and absolute, refuse a schema file before
// what they lead to is read, and are no parts of the prompt.
func TestLinksOutOfTheGraph(t *testing.T) {
	for _, kind := range []string{"absolute", "relative", "through a folder", "through another link"} {
		t.Run(kind, func(t *testing.T) {
			outside := t.TempDir()
			secret := filepath.Join(outside, "secret.json")
			write := func(text string) {
				if err := os.WriteFile(secret, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("not JSON: the secret")
			g := load(t, "-- agents/a/system/10-part.md --\nPart.\n")
			a := g.Agents[0]
			link := func(target, name string) {
				if err := os.Symlink(target, filepath.Join(a.SystemDir, name)); err != nil {
					t.Fatal(err)
				}
			}
			target := secret
			switch kind {
			case "relative":
				rel, err := filepath.Rel(a.SystemDir, secret)
				if err != nil {
					t.Fatal(err)
				}
				target = rel
			case "through a folder":
				link(outside, "folder")
				target = "folder/secret.json"
			case "through another link":
				link(secret, "first")
				target = "first"
			}
			link(target, "20-part.md")
			req, err := a.Turn(nil)
			if err != nil || strings.Join(req.System, "|") != "Part." {
				t.Errorf("a part: %q, %v", req.System, err)
			}

			link(target, ".schema-a.json")
			req, err = a.Turn(nil)
			var e *Error
			if !errors.As(err, &e) || e.Code != record.OutsideGraph || e.File != "agents/a/system/.schema-a.json" || req.Spec != nil {
				t.Errorf("a schema file: %+v, %v", req.Spec, err)
			}
			before := a.Fingerprint()
			write("another secret")
			if a.Fingerprint() != before {
				t.Error("the fingerprint was made from what lies outside")
			}
		})
	}
}

// A link that stays inside is followed.
func TestSchemaLinkInside(t *testing.T) {
	g := load(t, "-- agents/a/system/.schema-a.json -> ../../../shared.json --\n-- shared.json --\n{}\n")
	req, err := g.Agents[0].Turn(nil)
	if err != nil || req.Spec == nil {
		t.Errorf("%+v, %v", req.Spec, err)
	}
}

// An agent's folder that is a link out of the graph is one finding, not one
// for each folder in it too, and nothing in it is read.
func TestAgentOutsideTheGraph(t *testing.T) {
	outside := t.TempDir()
	for _, sub := range []string{"system", "input", "output", "turns"} {
		if err := os.Mkdir(filepath.Join(outside, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, AgentFile), []byte("inputs: [nowhere/to/be/found]\nno: key\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "agents/b/input"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "agents/a")); err != nil {
		t.Fatal(err)
	}
	g, err := LoadWith(dir, LoadOptions{Model: "script:s.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Findings) != 1 || g.Findings[0].File != "agents/a" || !strings.Contains(g.Findings[0].Msg, "leads out of the graph") {
		t.Errorf("findings %v", g.Findings)
	}
	if a := g.Agent("a"); a == nil || a.Err == nil || len(a.Inputs) != 0 {
		t.Errorf("the agent is %+v", a)
	}
	if b := g.Agent("b"); b == nil || b.Err != nil {
		t.Errorf("the other one is %+v", b)
	}
}
