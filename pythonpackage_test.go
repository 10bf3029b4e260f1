package agentgraph_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentgraph/internal/clienttest"
)

var pythonTools = []string{"build==1.6.1", "setuptools==84.2.1", "mypy==2.4.1"}

const casesScript = `
import json, sys
from agentgraph_client import structured_of, task_of, text_of
found = []
for case in json.load(sys.stdin):
    response = json.loads(case["response"])
    task, answer = task_of(response), structured_of(response)
    if answer is not None and answer.value != json.loads(answer.text):
        raise SystemExit(f"{case['name']}: {answer}")
    found.append({"name": case["name"], "response": case["response"], "task": task and task.get("turn_id"),
                  "text": text_of(response), "value": answer and answer.text})
print(json.dumps(found))
`

// The Python client finds in responses what the TypeScript client finds.
func TestClientsPythonResponses(t *testing.T) {
	cases := answerCases(t)
	var got []answerCase
	python(t, casesScript, cases, &got)
	for i, want := range cases {
		if w, g := asJSON(t, want), asJSON(t, got[i]); w != g {
			t.Errorf("%s: got %s, want %s", want.Name, g, w)
		}
	}
}

// The Python client is built as a wheel, installed into an empty environment
// and used from there: by its own tests, and by a type checker.
func TestClientsPythonPackage(t *testing.T) {
	if raceDetector {
		t.Skip("runs no Go code; it runs without the race detector")
	}
	exe := clienttest.Python(t, pythonTools...)
	work := t.TempDir()
	source, env := filepath.Join(work, "source"), filepath.Join(work, "env")
	if err := os.CopyFS(source, os.DirFS(filepath.Join("clients", "python"))); err != nil {
		t.Fatal(err)
	}
	tell := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PYTHONPATH=", "PIP_NO_INDEX=1", "PIP_DISABLE_PIP_VERSION_CHECK=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	// The wheel is made out of the source distribution, which shows that both
	// are whole.
	tell(source, exe, "-m", "build", "--no-isolation", "--outdir", work)
	wheels, err := filepath.Glob(filepath.Join(work, "agentgraph_client-*-py3-none-any.whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("there are the wheels %v (%v)", wheels, err)
	}
	tell(work, exe, "-m", "venv", "--without-pip", env)
	clean := filepath.Join(env, "bin", "python")
	tell(work, exe, "-m", "pip", "--python", clean, "install", "-q", wheels[0])
	if got := tell(work, exe, "-m", "pip", "--python", clean, "list", "--format=freeze"); !strings.HasPrefix(got, "agentgraph-client==") || strings.Count(got, "\n") != 1 {
		t.Errorf("the environment holds more than the client:\n%s", got)
	}
	tests := filepath.Join(source, "tests")
	if out := tell(tests, clean, "-m", "unittest", "discover", "."); !strings.Contains(out, "\nOK") {
		t.Error(out)
	}

	// Typed where it is used, and in itself.
	use := filepath.Join(work, "use.py")
	const text = `from typing import List, Optional
from agentgraph_client import Answer, Schema, Structured, discover_schema, find_answers, structured_of

schema: Optional[Schema] = discover_schema("x")
answers: List[Answer] = find_answers("x", schema)
number: Optional[Structured[int]] = structured_of({}, int)
wrong: int = find_answers("x")
`
	if err := os.WriteFile(use, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	// What is known about the standard library is kept from run to run.
	known := "--cache-dir=" + filepath.Join(filepath.Dir(filepath.Dir(exe)), "mypy-cache")
	cmd := exec.Command(exe, "-m", "mypy", known, "--strict", "--no-error-summary", "--python-executable", clean, use)
	cmd.Dir = work
	out, _ := cmd.CombinedOutput()
	if got := string(out); !strings.HasPrefix(got, "use.py:7: error: Incompatible types in assignment") || strings.Count(got, "error:") != 1 {
		t.Errorf("mypy is to find one error, in line 7:\n%s", got)
	}
	tell(source, exe, "-m", "mypy", known, "--python-version=3.10", "src", "tests")
}
