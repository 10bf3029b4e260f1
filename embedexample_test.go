package agentgraph_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentgraph/constraint"
	"agentgraph/runner"
)

// A module outside ours imports the packages and works a graph. Without the
// native library it builds too, and says what it lacks.
func TestEmbedExample(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("examples", "embed", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`(?m)^\s*[^\s/]`).FindAll(source, -1)); n > 30 {
		t.Errorf("the example has %d lines of code; it is to show that 30 do", n)
	}
	exe := filepath.Join(t.TempDir(), "embed")
	build := exec.Command("go", "build", "-o", exe, ".")
	build.Dir = filepath.Join("examples", "embed")
	build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n(after a change of go.mod: go mod tidy in examples/embed)", err, out)
	}
	graph := filepath.Join(t.TempDir(), "reviews")
	if err := os.CopyFS(graph, os.DirFS(filepath.Join("examples", "reviews"))); err != nil {
		t.Fatal(err)
	}
	modelFile := smallModelFile(t)
	cmd := exec.Command(exe, graph, modelFile)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if !constraint.LocalEngine("").Masks {
		if err == nil || !strings.Contains(stderr.String(), "make native") {
			t.Errorf("without the native library: %v\n%s", err, &stderr)
		}
		return
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	answers := 0
	for dec := json.NewDecoder(&stdout); dec.More(); {
		var e runner.Event
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if e.Kind != runner.TurnFinished {
			continue
		}
		answers++
		if text, err := os.ReadFile(filepath.Join(graph, filepath.FromSlash(e.Output))); err != nil || !json.Valid(text) {
			t.Errorf("%s: %q, %v", e.Output, text, err)
		}
	}
	if answers != 3 || !strings.Contains(stderr.String(), "3 completed") {
		t.Errorf("%d answers; it said %s", answers, &stderr)
	}
}

// smallModelFile is the small model, or the test ends without it. Where the
// native library is not linked, nothing opens it.
func smallModelFile(t *testing.T) string {
	t.Helper()
	path := os.Getenv("AGENTGRAPH_TEST_MODEL")
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		path = filepath.Join(cache, "agentgraph", "SmolLM2-135M-Instruct.Q4_1.gguf")
	}
	if _, err := os.Stat(path); err == nil || !constraint.LocalEngine("").Masks {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("the small model is not at %s; 'make model' fetches it", path)
	}
	t.Skipf("the small model is not at %s; 'make model' fetches it", path)
	return ""
}
