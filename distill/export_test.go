package distill_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/distill"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/record/recordtest"
)

// The records of these tests are records.
func TestExportFixture(t *testing.T) {
	g := newGraphDir(t)
	w := g.turn("writer", "a dog", "A dog barks.")
	recordtest.Check(t, w.rec)
	recordtest.Check(t, g.turn("rater", "A dog barks.", `{"rating":4}`, shaped, about(w)).rec)
}

// Each layout, as a trainer reads it.
func TestExportLayouts(t *testing.T) {
	g := newGraphDir(t)
	g.turn("writer", "a dog", "A dog barks.")
	tests := []struct {
		layout distill.Layout
		want   string // the columns of the layout
	}{
		{distill.Chat, `{"messages":[{"role":"system","content":"Be writer."},{"role":"user","content":"a dog"},{"role":"assistant","content":"A dog barks."}],"score":null,`},
		{distill.PromptCompletion, `{"prompt":[{"role":"system","content":"Be writer."},{"role":"user","content":"a dog"}],"completion":[{"role":"assistant","content":"A dog barks."}],"score":null,`},
		{distill.ShareGPT, `{"conversations":[{"from":"system","value":"Be writer."},{"from":"human","value":"a dog"},{"from":"gpt","value":"A dog barks."}],"score":null,`},
	}
	for _, tt := range tests {
		t.Run(string(tt.layout), func(t *testing.T) {
			r, dir := g.export(distill.ExportOptions{Layout: tt.layout, License: "CC-BY-4.0"})
			b, err := os.ReadFile(filepath.Join(dir, "train.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			rest, ok := strings.CutPrefix(string(b), tt.want)
			if !ok {
				t.Fatalf("got %s", b)
			}
			want := `"id":"turn000001","agent":"writer","sample":null,"reasoning":"","schema_kind":"","schema_file":"","schema_sha256":"","schema":"","validation":"not_requested","enforced_by":"","repaired":false,` +
				`"model":"small","model_engine":"script","model_sha256":"` + hex64("weights") + `","sampling":"{\"temperature\":0}",` +
				`"inputs":[{"path":"agents/writer/input/000001.txt","sha256":"` + hex64("a dog") + `","bytes":5}],"root_inputs":[{"path":"agents/writer/input/000001.txt","sha256":"` + hex64("a dog") + `","bytes":5}],` +
				`"hops":0,"trace_id":"turn000001","output_path":"agents/writer/output/out-1767225601000.txt","output_sha256":"` + hex64("A dog barks.") + `",` +
				`"created_ms":1767225601000,"input_tokens":1,"output_tokens":2,"logprobs":[],"license":"CC-BY-4.0"}` + "\n"
			if d := cmp.Diff(want, rest); d != "" {
				t.Error(d)
			}
			if r.Rows != 1 || r.Answers != 1 || r.ProblemCount != 0 {
				t.Errorf("report %+v", r)
			}
		})
	}
}

// Pairs come from repairs and from a rating agent's scores; a tie gives none.
func TestExportPreference(t *testing.T) {
	g := newGraphDir(t)
	g.turn("writer", "fix me", `{"rating":1}`, func(m *made) {
		rejected, feedback := "rating one", "Your answer is not valid."
		m.rec.Repair = &record.Repair{Status: record.RepairSucceeded, Attempts: "1", Validations: "2", Rejected: &rejected, Feedback: &feedback}
	})
	rate := func(of *made, rating int) {
		g.turn("rater", "x", fmt.Sprintf(`{"rating":%d}`, rating), shaped, about(of))
	}
	for i, rating := range []int{3, 5, 2} {
		rate(g.turn("writer", "a dog", fmt.Sprintf("dog %d", i)), rating)
	}
	for i := range 2 {
		rate(g.turn("writer", "a cat", fmt.Sprintf("cat %d", i)), 3)
	}
	// Rated twice: the mean counts.
	twice := g.turn("writer", "a cow", "cow 0")
	rate(twice, 1)
	rate(twice, 2)
	rate(g.turn("writer", "a cow", "cow 1"), 1)

	r, dir := g.export(distill.ExportOptions{Layout: distill.Preference, Score: "rater.rating", Filter: distill.Filter{Agents: []string{"writer"}}})
	var got []string
	for _, row := range rows(t, filepath.Join(dir, "train.jsonl")) {
		got = append(got, fmt.Sprint(get(row, "pair"), ": ", get(row, "prompt", 1, "content"), ": ", get(row, "chosen", 0, "content"), " (", get(row, "score_chosen"), ") over ",
			get(row, "rejected", 0, "content"), " (", get(row, "score_rejected"), ")"))
	}
	want := []string{
		`repair: fix me: {"rating":1} (<nil>) over rating one (<nil>)`,
		`samples: a dog: dog 1 (5) over dog 2 (2)`,
		`samples: a cow: cow 0 (1.5) over cow 1 (1)`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if r.Skipped[distill.SkipNoPair] != 5 {
		t.Errorf("skipped %v", r.Skipped)
	}
}

func TestExportFilters(t *testing.T) {
	g := newGraphDir(t)
	a := g.turn("writer", "one", "first")
	b := g.turn("writer", "two", "second")
	g.turn("rater", "first", `{"rating":4,"why":{"list":["x"]}}`, shaped, about(a))
	g.turn("rater", "second", `{"rating":2}`, shaped, about(b))
	g.turn("writer", "three", "third", func(m *made) {
		result := "42"
		m.rec.ToolCalls = []record.ToolCall{{ID: "c1", Name: "add", Arguments: json.RawMessage(`{"a":1}`), Result: &result}}
		m.rec.ToolRounds = []record.ToolRound{{Text: "Let me see.", Calls: 1}}
		m.rec.Request.Tools = []model.Tool{{Name: "add", Parameters: json.RawMessage(`{"type":"object"}`)}}
	})
	g.turn("writer", "four", "changed by hand", func(m *made) { m.file = "changed" })
	g.write("agents/writer/output/out-1.txt", "no record")
	at := func(opt distill.ExportOptions) []string {
		_, dir := g.export(opt)
		var ids []string
		for _, row := range rows(t, filepath.Join(dir, "train.jsonl")) {
			ids = append(ids, get(row, "id").(string))
		}
		return ids
	}
	start := a.rec.Timing.Started
	const t1, t2, t3, t4, t5 = "turn000001", "turn000002", "turn000003", "turn000004", "turn000005"
	tests := []struct {
		name string
		opt  distill.ExportOptions
		want []string
	}{
		{"all", distill.ExportOptions{}, []string{t3, t4, t1, t2}},
		{"agent", distill.ExportOptions{Filter: distill.Filter{Agents: []string{"writer"}}}, []string{t1, t2}},
		{"tools", distill.ExportOptions{Tools: true, Filter: distill.Filter{Agents: []string{"writer"}}}, []string{t1, t2, t5}},
		{"time", distill.ExportOptions{Filter: distill.Filter{Since: start, Until: start.Add(time.Second)}}, []string{t1}},
		{"valid", distill.ExportOptions{Filter: distill.Filter{Valid: true}}, []string{t3, t4}},
		{"schema", distill.ExportOptions{Filter: distill.Filter{Schemas: []string{hex64(ratingSchema)[:8]}}}, []string{t3, t4}},
		{"another schema", distill.ExportOptions{Filter: distill.Filter{Schemas: []string{hex64("x")}}}, nil},
		{"own member", distill.ExportOptions{Filter: distill.Filter{Where: "answer.rating > 2"}}, []string{t3}},
		{"nested member", distill.ExportOptions{Filter: distill.Filter{Where: `answer.why.list.0 == "x"`}}, []string{t3}},
		{"rated", distill.ExportOptions{Filter: distill.Filter{Where: "rater.rating >= 4"}}, []string{t1}},
		{"rated low or own", distill.ExportOptions{Filter: distill.Filter{Where: "rater.rating < 3 or answer.rating == 4"}}, []string{t3, t2}},
		{"free text", distill.ExportOptions{Filter: distill.Filter{Where: "answer == 'second'"}}, []string{t2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, at(tt.opt)); d != "" {
				t.Error(d)
			}
		})
	}
	r, _ := g.export(distill.ExportOptions{})
	want := map[string]int{distill.SkipTools: 1, distill.SkipChanged: 1, distill.SkipNoRecord: 1}
	if d := cmp.Diff(want, r.Skipped); d != "" {
		t.Error(d)
	}
	// The calls of a turn with tools, and what they are called with.
	_, dir := g.export(distill.ExportOptions{Tools: true, Filter: distill.Filter{Agents: []string{"writer"}}})
	row := rows(t, filepath.Join(dir, "train.jsonl"))[2]
	if get(row, "messages", 2, "tool_calls", 0, "function", "arguments") != `{"a":1}` || get(row, "messages", 3, "content") != "42" ||
		get(row, "messages", 3, "tool_call_id") != "c1" || get(row, "messages", 4, "content") != "third" ||
		get(row, "tools") != `[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]` {
		t.Errorf("%v", row)
	}
	_, dir = g.export(distill.ExportOptions{Layout: distill.ShareGPT, Tools: true, Filter: distill.Filter{Agents: []string{"writer"}}})
	row = rows(t, filepath.Join(dir, "train.jsonl"))[2]
	if get(row, "conversations", 3, "value") != `{"name":"add","arguments":{"a":1}}` || get(row, "conversations", 4, "from") != "observation" {
		t.Errorf("%v", row)
	}
}

// What is dropped or hashed is nowhere in the export.
func TestExportRedacts(t *testing.T) {
	g := newGraphDir(t)
	g.turn("clerk", "my name is Secret Person", `{"rating":1,"who":[{"name":"Secret Person","age":3.10}]}`, shaped, func(m *made) {
		m.rec.Inputs[0].Path, m.rec.Lineage.Roots[0].Path = "agents/clerk/input/Secret Person.txt", "agents/clerk/input/Secret Person.txt"
		m.rec.Outcome.Reasoning = "Secret Person asks"
		m.rec.Outcome.Logprobs = []model.TokenLogprob{{Token: "Secret Person"}}
		m.rec.Request.Messages = append([]model.Message{m.rec.Request.Messages[0], {Role: model.User, Content: "Secret Person before"}, {Role: model.Assistant, Content: `{"who":{"name":"Secret Person"}}`}}, m.rec.Request.Messages[1])
	})
	for _, format := range distill.Formats {
		_, dir := g.export(distill.ExportOptions{Format: format, HashInputs: true, DropFields: []string{"answer.who.name", "trace_id"}})
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 3 {
			t.Fatalf("%v, %v", entries, err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(b), "Secret") {
				t.Errorf("%s: %s holds what was dropped:\n%s", format, e.Name(), b)
			}
		}
		if format == distill.JSONL {
			row := rows(t, filepath.Join(dir, "train.jsonl"))[0]
			if get(row, "messages", 4, "content") != `{"rating":1,"who":[{"age":3.10}]}` || get(row, "messages", 3, "content") != "sha256:"+hex64("my name is Secret Person") {
				t.Errorf("%v", row)
			}
			if _, ok := row["trace_id"]; ok {
				t.Error("trace_id is there")
			}
		}
	}
	for _, bad := range []string{"answer", "nothing", "answers.x"} {
		if _, err := distill.Export(context.Background(), g.root, distill.ExportOptions{Dir: filepath.Join(t.TempDir(), "d"), DropFields: []string{bad}}); err == nil || !strings.Contains(err.Error(), "the columns are messages,") {
			t.Errorf("drop %q: %v", bad, err)
		}
	}
}

// Nothing is overwritten, a failure leaves nothing behind, and no link is
// followed out of the graph.
func TestExportTouchesNothingElse(t *testing.T) {
	g := newGraphDir(t)
	g.turn("writer", "a", "answer")
	dir := filepath.Join(t.TempDir(), "set")
	opt := distill.ExportOptions{Dir: dir}
	if _, err := distill.Export(context.Background(), g.root, opt); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	_, err := distill.Export(context.Background(), g.root, opt)
	if err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("a second export: %v", err)
	}
	if d := cmp.Diff(before, listing(t, dir)); d != "" {
		t.Error(d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := distill.Export(ctx, g.root, distill.ExportOptions{Dir: dir + "2"}); err == nil {
		t.Error("a cancelled export is no error")
	}
	if d := cmp.Diff([]string{"set"}, names(t, filepath.Dir(dir))); d != "" {
		t.Errorf("left behind:\n%s", d)
	}

	outside := newGraphDir(t)
	outside.turn("writer", "other", "OUTSIDE")
	for _, link := range [][2]string{
		{"agents/linked/output", "agents/writer/output"},
		{"agents/linked/turns", "agents/writer/turns"},
		{"agents/writer/output/out-9.txt", "agents/writer/output/out-1767225601000.txt"},
		{"agents/other", "agents/writer"},
	} {
		from := filepath.Join(g.root, link[0])
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(outside.root, link[1]), from); err != nil {
			t.Skip("no links here:", err)
		}
	}
	r, out := g.export(distill.ExportOptions{})
	if r.Rows != 1 || r.ProblemCount < 2 {
		t.Errorf("%+v", r)
	}
	b, err := os.ReadFile(filepath.Join(out, "train.jsonl"))
	if err != nil || strings.Contains(string(b), "OUTSIDE") {
		t.Errorf("%v: %s", err, b)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, n := range names(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		files[n] = string(b)
	}
	return files
}

// The same answers give the same bytes, and the manifest the hash of every
// file that a row was made of.
func TestExportIsDeterministic(t *testing.T) {
	g := newGraphDir(t)
	for i := range 200 {
		g.turn("writer", fmt.Sprintf("input %d", i), strings.Repeat(fmt.Sprintf("answer %d. ", i), 20))
	}
	for _, format := range distill.Formats {
		opt := distill.ExportOptions{Format: format, Split: []distill.Share{{Name: "train", Weight: 8}, {Name: "test", Weight: 2}}, Dedupe: 0.95}
		_, one := g.export(opt)
		_, two := g.export(opt)
		if d := cmp.Diff(listing(t, one), listing(t, two)); d != "" {
			t.Errorf("%s: two exports differ:\n%s", format, d)
		}
		sources := 0
		for _, line := range rows(t, filepath.Join(one, "manifest.jsonl")) {
			dir := g.root
			if line["kind"] == "data" {
				dir = one
			} else {
				sources++
			}
			b, err := os.ReadFile(filepath.Join(dir, line["path"].(string)))
			if err != nil || line["sha256"] != hex64(string(b)) || line["bytes"] != float64(len(b)) {
				t.Errorf("%v: %v", line, err)
			}
		}
		if sources != 400 {
			t.Errorf("%d sources", sources)
		}
	}
}

func TestExportRefusesBadOptions(t *testing.T) {
	g := newGraphDir(t)
	g.turn("writer", "a", "b")
	tests := map[string]distill.ExportOptions{
		`layout "x"`:             {Layout: "x"},
		`format "x"`:             {Format: "x"},
		"0.5 to 1":               {Dedupe: 0.2},
		"named twice":            {Split: []distill.Share{{Name: "a", Weight: 1}, {Name: "a", Weight: 1}}},
		"cannot name a split":    {Split: []distill.Share{{Name: "../a", Weight: 1}}},
		"a number above 0":       {Split: []distill.Share{{Name: "a", Weight: 0}}},
		"column 9":               {Filter: distill.Filter{Where: "answer >"}},
		"is not one value":       {Score: "a.b > 2"},
		"sha256 of a schema":     {Filter: distill.Filter{Schemas: []string{"xyz"}}},
		`no agent is called "w"`: {Filter: distill.Filter{Agents: []string{"w"}}},
		`no agent is called "r"`: {Score: "r.rating"},
	}
	for want, opt := range tests {
		parent := t.TempDir()
		opt.Dir = filepath.Join(parent, "d")
		if _, err := distill.Export(context.Background(), g.root, opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
		if left := names(t, parent); left != nil {
			t.Errorf("%s leaves %v", want, left)
		}
	}
}
