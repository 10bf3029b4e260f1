package distill_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/internal/clienttest"
)

const validateScript = `
import json, sys
from agentgraph_client import discover_schema, find_answers, validate
schema = discover_schema(sys.argv[1] + "/system")
print(json.dumps({a.path.name: [v.ok, v.decided_by, v.reasons] for a in find_answers(sys.argv[1] + "/output", schema) for v in [validate(a, schema)]}))
`

// With the jsonschema package the Python client applies the schema, and reads
// no network for it.
func TestClientsPythonValidates(t *testing.T) {
	if testing.Short() {
		t.Skip("installs Python packages")
	}
	exe := clienttest.Python(t, "jsonschema==4.25.1")
	g := newGraphDir(t)
	g.write("agents/rater/system/.schema-rating.json", ratingSchema)
	g.turn("rater", "in", `{"rating":1}`, shaped)
	g.turn("rater", "in", `{"rating":1}`, shaped, func(m *made) { m.file = `{"rating":"1"}` })
	g.turn("rater", "in", `{"rating":1}`, shaped, func(m *made) { m.file = `{"rating":2}` })
	g.write("agents/rater/output/rating_7.json", `{"rating":7}`)
	g.write("agents/rater/output/rating_8.json", `{"rating":7,"rating":7}`)
	g.write("agents/rater/output/rating_9.json", `{"rating":7.5}`)
	g.write("agents/far/system/.schema-rating.json", `{"$ref":"http://127.0.0.1:1/schema.json"}`)
	g.write("agents/far/output/rating_0.json", `{}`)
	run := func(agent string) (map[string][]any, string) {
		cmd := exec.Command(exe, "-c", validateScript, filepath.Join(g.root, "agents", agent))
		cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("..", "clients", "python", "src"), "PYTHONDONTWRITEBYTECODE=1")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		b, err := cmd.Output()
		got := map[string][]any{}
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil {
			return nil, stderr.String()
		}
		return got, ""
	}
	got, msg := run("rater")
	want := map[string][]any{
		"rating_1.json": {true, "schema", []any{}},
		"rating_2.json": {false, "schema", []any{"file and record disagree", "not valid at $.rating: type"}},
		"rating_3.json": {false, "schema", []any{"file and record disagree"}},
		"rating_7.json": {true, "schema", []any{}},
		"rating_8.json": {false, "form", []any{"not JSON: a member stands twice in one object"}},
		"rating_9.json": {false, "schema", []any{"not valid at $.rating: type"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", msg, diff)
	}
	// A schema that lies elsewhere is not fetched: it cannot be applied.
	far, msg := run("far")
	if diff := cmp.Diff(map[string][]any{"rating_0.json": {false, "form", []any{"its schema cannot be applied: Unresolvable: http://127.0.0.1:1/schema.json"}}}, far); diff != "" {
		t.Errorf("%s (-want +got):\n%s", msg, diff)
	}
}
