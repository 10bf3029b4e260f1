package agentgraph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/output"
	"agentgraph/turn"
)

// python runs a script against the client, with in as JSON on its standard
// input, and reads out from what it prints. Without Python it skips.
func python(t *testing.T, script string, in, out any) {
	t.Helper()
	exe, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; the Python client is not tested")
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-c", script)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("clients", "python", "src"), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1")
	cmd.Stdin = bytes.NewReader(data)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	answer, err := cmd.Output()
	if err != nil {
		t.Fatalf("python3: %v\n%s", err, &stderr)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(answer, out); err != nil {
		t.Fatalf("python3 printed %q: %v", answer, err)
	}
}

func TestClientsPythonUnitTests(t *testing.T) {
	exe, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; the Python client is not tested")
	}
	cmd := exec.Command(exe, "-m", "unittest", "discover", "tests")
	cmd.Dir = filepath.Join("clients", "python")
	cmd.Env = append(os.Environ(), "PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "\nOK") {
		t.Errorf("%v\n%s", err, out)
	}
}

const rebuildScript = `
import json, sys
from agentgraph_client import rebuild_messages
print(json.dumps([rebuild_messages(c["dir"], c["text"], c["history"] or []) for c in json.load(sys.stdin)]))
`

// rebuildCase is one agent folder and the input of a turn.
type rebuildCase struct {
	Dir     string      `json:"dir"`
	Text    string      `json:"text"`
	History [][2]string `json:"history"`
}

// The Python client rebuilds the messages of SCHEMA.md's example and of many
// odd agent folders, byte for byte.
func TestClientsPythonRebuildsMessages(t *testing.T) {
	d := readSchemaDoc(t)
	root := docGraph(t, d)
	cases := []rebuildCase{{Dir: filepath.Join(root, "agents", "supervisor"), Text: "Great kettle, boils fast.\n"}}
	r := rand.New(rand.NewSource(7))
	for i := range 60 {
		dir := filepath.Join(root, "agents", fmt.Sprintf("agent%d", i))
		randomSystem(t, r, filepath.Join(dir, "system"))
		c := rebuildCase{Dir: dir, Text: pick(r, partTexts) + "x"}
		for range r.Intn(3) {
			c.History = append(c.History, [2]string{pick(r, partTexts), pick(r, partTexts)})
		}
		cases = append(cases, c)
	}
	g, err := agents.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	var want [][]model.Message
	schemas := 0
	for _, c := range cases {
		a := g.Agent(filepath.Base(c.Dir))
		a.Err = nil // the graph names no model, which is not what is tested here
		req, err := a.Turn([]agents.Input{{Path: "agents/x/input/i.txt", Data: []byte(c.Text)}})
		if err != nil {
			t.Fatalf("%s: %v", c.Dir, err)
		}
		if req.Spec != nil {
			schemas++
		}
		for _, h := range c.History {
			req.History = append(req.History, turn.Exchange{User: h[0], Answer: h[1]})
		}
		want = append(want, turn.Messages(req))
	}
	if schemas < 20 || schemas == len(cases) {
		t.Errorf("%d of %d agents have a schema", schemas, len(cases))
	}
	var got [][]model.Message
	python(t, rebuildScript, cases, &got)
	for i, c := range cases {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Errorf("%s (-Go +Python):\n%s", filepath.Base(c.Dir), diff)
		}
	}
	if example := strings.TrimSuffix(d.block("example: system message"), "\n"); got[0][0].Content != example {
		t.Errorf("Python's system message is %q; SCHEMA.md shows %q", got[0][0].Content, example)
	}
}

var partTexts = []string{
	"", "\n", "\r\n\r\n", "Be kind.\n", "Be\r\nkind.\r\n\n\n", "  indented \n ", "\uFEFFwith a mark\n", "é 日本 \U0001F600", "a\u2028b\u0085\n", "tab\t\x01\n",
	"lone return\r",
}

func pick(r *rand.Rand, list []string) string { return list[r.Intn(len(list))] }

// randomSystem fills a system folder with parts, files that are no parts, and
// mostly a schema file.
func randomSystem(t *testing.T, r *rand.Rand, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "folder.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"10-role.md", "2-two", "B.md", "a.md", "é.md", "z", "~x", "#x", "_", "-", "a b.txt", "\U0001F600.md", "\uFFFD.md",
		".hidden", "a.md~", "x.BAK", "4913", "Thumbs.db", "#x#", "~$x", "x.Swp", "a.old", "___JB_TMP___", "x.tmp.md", "a\nb.md"}
	for _, name := range names {
		if r.Intn(3) > 0 {
			put(name, pick(r, partTexts))
		}
	}
	if r.Intn(3) == 0 {
		put("binary.bin", "\xff\xfe\x00")
		put("zero.md", "a\x00b")
	}
	if r.Intn(3) == 0 {
		outside := filepath.Join(t.TempDir(), "outside.md")
		if err := os.WriteFile(outside, []byte("outside"), 0o644); err != nil {
			t.Fatal(err)
		}
		put("z9.md", "linked to\n")
		for name, target := range map[string]string{"link-in.md": "z9.md", "link-out.md": outside, "link-gone.md": "gone"} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Skip("no links here:", err)
			}
		}
	}
	sources := map[string][]string{
		".schema-a.json":           {"{}", "\uFEFF{\r\n\"b\": 1,\n\"a\": 2.0}\r\n\n"},
		".schema-a.txt@regex":      {"[a-z]+\n", "\uFEFFa\r\n", "a\n\n\n", " \n"},
		".schema-{turn}.md@lark":   {"start: \"a\"\n", "\uFEFFstart: \"é\"\r\n\r\n"},
		".schema-a.b.json@llg":     {"{\"grammars\": []}\n"},
		".schema-{timestamp}.json": {"{\"description\": \"日本\"}"},
		"":                         {""},
	}
	i, want := 0, r.Intn(len(sources))
	for _, name := range []string{".schema-a.json", ".schema-a.txt@regex", ".schema-{turn}.md@lark", ".schema-a.b.json@llg", ".schema-{timestamp}.json", ""} {
		if i == want && name != "" {
			put(name, pick(r, sources[name]))
			if r.Intn(2) == 0 {
				put(name+"~", "{")
			}
		}
		i++
	}
}

const namesScript = `
import json, sys
from agentgraph_client.answers import parse_name
print(json.dumps([[str(n) if n is not None else "" for n in parse_name(*c) or [None, None]] + [parse_name(*c) is not None] for c in json.load(sys.stdin)]))
`

// The Python client reads the names of answers as the output package does.
func TestClientsPythonFindsAnswers(t *testing.T) {
	formats := []string{"rating", "{turn}", "{turn}{turn}", "{turn}{timestamp}", "{timestamp}{turn}", "out-{timestamp}", "a.b*", "{timestamp}-{turn}-{timestamp}", "v1{turn}0{turn}"}
	parts := []string{"rating_", "0", "1", "12", "07", "1712345678000", "1712345678001", "-", "a.b*", "_", "v1", "out-", "18446744073709551615", "18446744073709551616", "9223372036854775808", "٣", "x", "\n"}
	r := rand.New(rand.NewSource(11))
	var cases [][3]string
	var want [][]any
	matches := 0
	for range 4000 {
		format := pick(r, formats)
		p, err := output.NewPattern(format, "json")
		if err != nil {
			t.Fatal(err)
		}
		name := p.Name(uint64(r.Intn(1200)), firstStart)
		if r.Intn(3) > 0 {
			name = ""
			for range 1 + r.Intn(5) {
				name += pick(r, parts)
			}
			name += ".json"
		}
		cases = append(cases, [3]string{format, "json", name})
		row := []any{"", "", p.Match(name)}
		if n, ok := p.Turn(name); ok {
			row[0] = fmt.Sprint(n)
		}
		if at, ok := p.Timestamp(name); ok {
			row[1] = fmt.Sprint(at.UnixMilli())
		}
		if row[2] == true {
			matches++
		}
		want = append(want, row)
	}
	if matches < 1000 || matches > 3500 {
		t.Errorf("%d of %d names match", matches, len(cases))
	}
	var got [][]any
	python(t, namesScript, cases, &got)
	for i := range cases {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Errorf("%q (-Go +Python):\n%s", cases[i], diff)
		}
	}
}
