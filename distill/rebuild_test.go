package distill_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/distill"
	"agentgraph/model"
	"agentgraph/model/script"
	"agentgraph/output"
	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/turn"
)

func openScript(spec agents.ModelSpec) (model.Model, error) { return script.Open(spec.Script) }

const scripted = `
mask: false
replies:
  - match: kettle
    text: '{"rating":4}'
  - match: broken
    text: '{"rating":"four"}'
  - match: Your answer is not valid
    text: '{"rating":5}'
default: {text: "plain"}
`

// answerAll answers every input of the graph as a turn does, with records, and
// returns the answers.
func answerAll(t *testing.T, root string) []string {
	t.Helper()
	g, err := agents.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	var answers []string
	for _, a := range g.Agents {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		m, err := openScript(a.Settings.ModelSpec)
		if err != nil {
			t.Fatal(err)
		}
		var in []agents.Input
		for _, dir := range a.Inputs {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				data, err := os.ReadFile(filepath.Join(dir, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				in = append(in, agents.Input{Path: g.Rel(filepath.Join(dir, e.Name())), Data: data})
			}
		}
		req, err := a.Turn(in)
		if err != nil {
			t.Fatal(err)
		}
		req.Model, req.TurnID = m, "t-"+a.Name
		rec := turn.Run(t.Context(), req)
		text, ok := rec.FileText()
		if !ok {
			t.Fatalf("%s: %v", a.Name, rec.Error)
		}
		pattern := output.Default
		if format, ext, ok := agents.AnswerName(req); ok {
			if pattern, err = output.NewPattern(format, ext); err != nil {
				t.Fatal(err)
			}
		}
		path, err := output.Publish(t.Context(), a.OutputDir, pattern, rec.Timing.Started, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		rec.Outputs = []record.FileRef{fileRef(g.Rel(path), text)}
		if _, err := store.Open(a.TurnsDir).Write(req.TurnID, rec); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, path)
	}
	return answers
}

// rebuildGraph has an agent for each thing that a request depends on.
func rebuildGraph(t *testing.T) *graphDir {
	g := newGraphDir(t)
	g.write("agentgraph.yaml", "models: {fake: {script: model.yaml}}\ndefaults: {model: fake, output: {enforce: validate}}\n")
	g.write("model.yaml", scripted)
	long := strings.Repeat("A long part, which records share.\n", 60)
	for name, files := range map[string]map[string]string{
		"free":     {"system/10.md": "Be brief.\n", "input/a.txt": "one <two> & \u2028three\r\n"},
		"nothing":  {"input/a.txt": "no system at all"},
		"shaped":   {"system/10.md": long, "system/20.md": "x\r\n\n", "system/x.md~": "no", "system/.schema-rating.json": "\uFEFF" + ratingSchema + "\n", "input/a.txt": "kettle"},
		"regex":    {"system/.schema-log-{timestamp}.txt@regex": "[a-z]+\n", "input/a.txt": "say it"},
		"settings": {"system/a.md": "A.", "agent.yaml": "prompt: After the parts.\nschema_in_prompt: false\nsampling: {temperature: 0.5, top_p: 0.9, seed: 7, max_tokens: 99}\ndeterminism: solo\n", "system/.schema-rating.json": ratingSchema, "input/a.txt": "kettle"},
		"joined":   {"system/a.md": "A.", "agent.yaml": "join: all\ninputs: [input, other]\n", "input/a.txt": "first\n", "other/b.txt": "second\n\n"},
		"repaired": {"system/.schema-rating.json": ratingSchema, "agent.yaml": "output: {repair: {enabled: true}}\n", "input/a.txt": "broken"},
	} {
		for file, text := range files {
			g.write("agents/"+name+"/"+file, text)
		}
	}
	return g
}

func rebuild(t *testing.T, file string, opt distill.RebuildOptions) *distill.Rebuilt {
	t.Helper()
	b, err := distill.Rebuild(t.Context(), file, opt)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return b
}

// The two ways give the same bytes: messages, prompt, constraint, sampling,
// tools and model.
func TestRebuildTwoWays(t *testing.T) {
	g := rebuildGraph(t)
	answers := answerAll(t, g.root)
	for _, file := range answers {
		rec := rebuild(t, file, distill.RebuildOptions{First: true, Open: openScript})
		dir := rebuild(t, file, distill.RebuildOptions{From: distill.FromFolder, Open: openScript})
		if rec.From != distill.FromRecord || rec.Prompt == nil || rec.TurnID == nil {
			t.Errorf("%s: %+v", file, rec)
		}
		if diff := cmp.Diff(rec, dir, cmpopts.IgnoreFields(distill.Rebuilt{}, "From")); diff != "" {
			t.Errorf("%s (-record +folder):\n%s", file, diff)
		}
		a, b := mustJSON(t, rec), mustJSON(t, dir)
		if strings.Replace(a, `"from":"record"`, `"from":"folder"`, 1) != b {
			t.Errorf("not the same bytes:\n%s\n%s", a, b)
		}
		// The answer without its records, its input given: the same again.
		without := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(without, os.DirFS(g.root)); err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(g.root, file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(without, filepath.Dir(filepath.Dir(rel)), "turns")); err != nil {
			t.Fatal(err)
		}
		var in []string
		for _, ref := range rec.Inputs {
			in = append(in, filepath.Join(without, ref.Path))
		}
		bare := rebuild(t, filepath.Join(without, rel), distill.RebuildOptions{Inputs: in, Open: openScript})
		if diff := cmp.Diff(dir, bare, cmpopts.IgnoreFields(distill.Rebuilt{}, "TurnID")); diff != "" {
			t.Errorf("%s (-folder +without records):\n%s", file, diff)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rebuild_request of the Python client gives the same, from the record and
// from the folder.
func TestRebuildPython(t *testing.T) {
	exe, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; the Python client is not tested")
	}
	g := rebuildGraph(t)
	answers := answerAll(t, g.root)
	run := func(script string, in any, out any) {
		t.Helper()
		cmd := exec.Command(exe, "-c", script)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("..", "clients", "python", "src"), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1")
		cmd.Stdin = strings.NewReader(mustJSON(t, in))
		b, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			if ok := asExit(err, &exit); ok {
				t.Fatalf("%v\n%s", err, exit.Stderr)
			}
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, out); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
	}
	const script = `
import json, sys
from agentgraph_client import rebuild_request, iter_turns, validate
q = json.load(sys.stdin)
print(json.dumps({"last": [rebuild_request(a) for a in q["answers"]], "first": [rebuild_request(a, first=True) for a in q["answers"]],
  "turns": sorted(t.record["turn_id"] for t in iter_turns(q["root"])), "ok": [validate(a).ok for a in q["answers"]],
  "by": [validate(a).decided_by for a in q["answers"]]}))
`
	var got struct {
		Last, First []*distill.Rebuilt
		Turns, By   []string
		OK          []bool
	}
	run(script, map[string]any{"root": g.root, "answers": answers}, &got)
	for i, file := range answers {
		for first, b := range map[bool]*distill.Rebuilt{false: got.Last[i], true: got.First[i]} {
			want := rebuild(t, file, distill.RebuildOptions{First: first})
			if diff := cmp.Diff(want, b, cmpopts.IgnoreFields(distill.Rebuilt{}, "Agent", "File", "Note")); diff != "" {
				t.Errorf("%s, first %v (-Go +Python):\n%s", file, first, diff)
			}
		}
		if !got.OK[i] || got.By[i] == "form" {
			t.Errorf("%s: %v by %s", file, got.OK[i], got.By[i])
		}
	}
	if len(got.Turns) != len(answers) {
		t.Errorf("%v", got.Turns)
	}

	// From the folder, for an agent without settings and without records.
	g.write("agentgraph.yaml", "models: {fake: {script: model.yaml}}\ndefaults: {model: fake}\n")
	var names []string
	for _, file := range answers {
		dir := filepath.Dir(filepath.Dir(file))
		if _, err := os.Stat(filepath.Join(dir, "agent.yaml")); err != nil && filepath.Base(dir) != "nothing" {
			if err := os.RemoveAll(filepath.Join(dir, "turns")); err != nil {
				t.Fatal(err)
			}
			names = append(names, file)
		}
	}
	got.Last = nil
	run("import json, sys\nfrom agentgraph_client import rebuild_request\nprint(json.dumps({'last': [rebuild_request(a) for a in json.load(sys.stdin)]}))", names, &got)
	if len(names) != 3 {
		t.Errorf("%q", names)
	}
	for i, file := range names {
		want := rebuild(t, file, distill.RebuildOptions{})
		if diff := cmp.Diff(want, got.Last[i], cmpopts.IgnoreFields(distill.Rebuilt{}, "Agent", "File", "Note", "Inputs")); diff != "" {
			t.Errorf("%s (-Go +Python):\n%s", file, diff)
		}
	}
}

func asExit(err error, target **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*target = e
	return ok
}

// The last request of a turn has its tool rounds and its repair.
func TestRebuildLastRequest(t *testing.T) {
	g := newGraphDir(t)
	result, rejected, feedback := "4", `{"rating":"x"}`, "Answer again."
	m := g.turn("rater", "in", `{"rating":4}`, shaped, func(m *made) {
		m.rec.ToolRounds = []record.ToolRound{{Text: "Let me see.", Reasoning: "Hm.", Calls: 2}, {Calls: 1}}
		m.rec.ToolCalls = []record.ToolCall{
			{ID: "call00001", Name: "add", Arguments: json.RawMessage(`{"a":1}`), Result: &result},
			{ID: "call00002", Name: "add", Arguments: json.RawMessage(`{"a":2}`)},
			{ID: "call00003", Name: "add", Arguments: json.RawMessage(`{"a":3}`), Result: &result},
		}
		m.rec.Repair = &record.Repair{Status: record.RepairSucceeded, Attempts: "1", Validations: "2", Rejected: &rejected, Feedback: &feedback}
		prompt := "rendered"
		m.rec.Request.Prompt = &prompt
	})
	file := filepath.Join(g.root, "agents/rater/output", m.name)
	b := rebuild(t, file, distill.RebuildOptions{})
	call := func(id, args string) model.ToolCall {
		return model.ToolCall{ID: id, Name: "add", Arguments: json.RawMessage(args)}
	}
	want := append(m.rec.Request.Messages[:2:2],
		model.Message{Role: model.Assistant, Content: "Let me see.", Reasoning: "Hm.", ToolCalls: []model.ToolCall{call("call00001", `{"a":1}`)}},
		model.Message{Role: model.ToolRole, Content: "4", ToolCallID: "call00001", Name: "add"},
		model.Message{Role: model.Assistant, ToolCalls: []model.ToolCall{call("call00003", `{"a":3}`)}},
		model.Message{Role: model.ToolRole, Content: "4", ToolCallID: "call00003", Name: "add"},
		model.Message{Role: model.Assistant, Content: rejected}, model.Message{Role: model.User, Content: feedback})
	if diff := cmp.Diff(want, b.Messages, cmp.Comparer(sameJSON)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b.Prompt != nil || b.Note == "" {
		t.Errorf("the prompt of another request: %v", *b.Prompt)
	}
	// From the record's own file, and its first request.
	first := rebuild(t, filepath.Join(g.root, "agents/rater/turns", *m.rec.TurnID+".json"), distill.RebuildOptions{First: true})
	if len(first.Messages) != 2 || first.Prompt == nil || *first.Prompt != "rendered" {
		t.Errorf("%+v", first)
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}

func TestRebuildRefusals(t *testing.T) {
	g := rebuildGraph(t)
	answers := map[string]string{}
	for _, file := range answerAll(t, g.root) {
		answers[filepath.Base(filepath.Dir(filepath.Dir(file)))] = file
	}
	_, secretFile := outside(t)
	link(t, secretFile, filepath.Join(g.root, "agents/free/output/out-1.txt"))
	g.write("agents/free/input/b.txt", "two inputs now")
	g.write("agents/free/output/out-2.txt", "no record")
	g.write("agents/shaped/input/a.txt", "another text")
	g.write("agents/nothing/agent.yaml", "history: 2\n")
	g.write("agents/regex/agent.yaml", "tools: [{command: [echo]}]\n")
	g.write("elsewhere.txt", "x")
	folder := distill.RebuildOptions{From: distill.FromFolder}
	for _, tc := range []struct {
		file string
		opt  distill.RebuildOptions
		want string
	}{
		{answers["free"], distill.RebuildOptions{From: "dreams"}, "record or folder"},
		{filepath.Join(g.root, "agents/free/output/out-1.txt"), distill.RebuildOptions{}, "link that leads out of the graph"},
		{filepath.Join(g.root, "agents/free/output/out-2.txt"), distill.RebuildOptions{}, "say with --input"},
		{filepath.Join(g.root, "agents/free/output/out-2.txt"), distill.RebuildOptions{From: distill.FromRecord}, "no record in agents/free/turns names"},
		{filepath.Join(g.root, "agents/free/output/out-2.txt"), distill.RebuildOptions{Inputs: []string{filepath.Join(g.root, "gone")}}, "is gone"},
		{filepath.Join(g.root, "agents/free/output/out-3.txt"), distill.RebuildOptions{}, "is gone"},
		{answers["shaped"], folder, "is not what it was"},
		{answers["nothing"], folder, "has history: 2"},
		{answers["regex"], folder, "has tools"},
		{filepath.Join(g.root, "elsewhere.txt"), folder, "lies in no agent's output or turns folder"},
		{filepath.Join(g.root, "agents"), folder, "is a folder"},
	} {
		_, err := distill.Rebuild(context.Background(), tc.file, tc.opt)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %+v: %v, want %q", tc.file, tc.opt, err, tc.want)
		}
	}
}

// AgentGraph's own folders have no settings and no records.
func TestRebuildForeignFolder(t *testing.T) {
	g := newGraphDir(t)
	g.write("team/rater/system/role.md", "Rate.\n")
	g.write("team/rater/system/.schema-rating.json", ratingSchema)
	g.write("team/rater/input/a.txt", "It boils.\n")
	g.write("team/rater/output/rating_0.json", `{"rating":1}`)
	b := rebuild(t, filepath.Join(g.root, "team/rater/output/rating_0.json"), distill.RebuildOptions{Open: openScript})
	want := []model.Message{
		{Role: model.System, Content: "Rate.\n\n" + turn.SchemaParagraph(constraint.Spec{Kind: constraint.JSON, Source: []byte(ratingSchema)})},
		{Role: model.User, Content: "It boils.\n"},
	}
	if diff := cmp.Diff(want, b.Messages); diff != "" || b.Sampling.MaxTokens != turn.DefaultShapedTokens || b.Prompt != nil || b.Note == "" {
		t.Errorf("%+v (-want +got):\n%s", b, diff)
	}
}

// What each kind of server would be sent.
func TestRebuildBody(t *testing.T) {
	g := rebuildGraph(t)
	answers := map[string]string{}
	for _, file := range answerAll(t, g.root) {
		answers[filepath.Base(filepath.Dir(filepath.Dir(file)))] = file
	}
	for _, tc := range []struct{ agent, server, path, want string }{
		{"shaped", "openai", "chat/completions", `"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":` + ratingSchema},
		{"shaped", "vllm", "chat/completions", `"structured_outputs":{"json":` + ratingSchema},
		{"shaped", "mistralrs", "chat/completions", `"grammar":{"type":"json_schema","value":` + ratingSchema},
		{"shaped", "llamacpp", "chat/completions", `"response_format":{"type":"json_schema"`},
		{"shaped", "sglang", "chat/completions", `"response_format":{"type":"json_schema"`},
		{"shaped", "ollama", "api/chat", `"format":` + ratingSchema},
		{"regex", "vllm", "chat/completions", `"structured_outputs":{"regex":"[a-z]+"}`},
		{"regex", "mistralrs", "chat/completions", `"grammar":{"type":"regex","value":"[a-z]+"}`},
		{"settings", "vllm", "chat/completions", `"seed":7`},
		{"free", "openai", "chat/completions", `one <two> & `},
	} {
		b := rebuild(t, answers[tc.agent], distill.RebuildOptions{})
		path, body, _, err := b.Body(tc.server)
		if err != nil {
			t.Errorf("%s for %s: %v", tc.agent, tc.server, err)
			continue
		}
		if path != tc.path || !json.Valid(body) || !strings.Contains(string(body), tc.want) {
			t.Errorf("%s for %s: %s %s; want %s", tc.agent, tc.server, path, body, tc.want)
		}
		again, _, _, _ := b.Body(tc.server)
		if again != path {
			t.Error("not the same twice")
		}
		// The messages are those of the request, byte for byte.
		var sent struct{ Messages []model.Message }
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b.Messages, sent.Messages); diff != "" {
			t.Errorf("%s for %s (-request +body):\n%s", tc.agent, tc.server, diff)
		}
	}
	if _, _, _, err := rebuild(t, answers["regex"], distill.RebuildOptions{}).Body("ollama"); err == nil || !strings.Contains(err.Error(), "Ollama takes no constraint of kind regex") {
		t.Errorf("%v", err)
	}
}
