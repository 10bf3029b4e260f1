package distill_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/distill"
	"agentgraph/model"
	"agentgraph/model/script"
	"agentgraph/record"
	"agentgraph/turn"
)

func scriptModel(t testing.TB, src string) *script.Model {
	t.Helper()
	m, err := script.New("s.yaml", []byte(src), script.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// answering replaces what a fixture says about its model by a turn that ran.
func (g *graphDir) ran(agent string, req *turn.Request) *made {
	g.t.Helper()
	return g.turn(agent, req.User, "", func(m *made) {
		req.Agent, req.TurnID = agent, *m.rec.TurnID
		inputs, lineage := m.rec.Inputs, m.rec.Lineage
		m.rec = turn.Run(context.Background(), req)
		m.rec.Inputs, m.rec.Lineage = inputs, lineage
	})
}

// replay replays the graph and returns what was found.
func (g *graphDir) replay(opt distill.ReplayOptions, m model.Model) (*distill.ReplayReport, []*distill.Replayed) {
	g.t.Helper()
	opt.Model = func(context.Context, string, model.Identity) (model.Model, error) { return m, nil }
	var list []*distill.Replayed
	rep, err := distill.Replay(context.Background(), g.root, opt, func(r *distill.Replayed, p *distill.Problem) error {
		if p != nil {
			g.t.Error(p)
			return nil
		}
		list = append(list, r)
		return nil
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return rep, list
}

const validate = "constraints: none\n"

// ratingSpec is a schema that only validation holds, so that this runs
// without the native library.
func rated(user string, m model.Model, solo bool) *turn.Request {
	return &turn.Request{System: []string{"Rate."}, User: user, Model: m, Solo: solo,
		Spec:              &constraint.Spec{Kind: constraint.JSON, Source: []byte(`{"type":"object"}`), File: ".schema-rating.json"},
		ConstraintOptions: constraint.Options{Enforce: constraint.EnforceValidate}}
}

func TestReplay(t *testing.T) {
	const src = validate + `
replies:
- {match: one, text: '{"rating":1,"why":{"text":"a"},"list":[1,2]}'}
- {match: two, text: '{"rating":2}'}
- {match: three, text: free text}
`
	g := newGraphDir(t)
	m := scriptModel(t, src)
	g.ran("rater", rated("one", m, true))
	g.ran("rater", rated("two", m, false))
	g.ran("rater", &turn.Request{User: "three", Model: m, Solo: true})

	// The same model: everything is the same, and what was made alone is promised.
	rep, list := g.replay(distill.ReplayOptions{Parallel: 4}, scriptModel(t, src))
	if d := cmp.Diff(distill.Agreement{Compared: 2, Equal: 2}, rep.Promised); d != "" || !rep.Kept() {
		t.Errorf("%+v", rep)
	}
	if d := cmp.Diff(distill.Agreement{Compared: 1, Equal: 1}, rep.Others); d != "" {
		t.Error(d)
	}
	for _, r := range list {
		if !r.Identical || r.SamePrompt == nil || !*r.SamePrompt || r.Error != "" {
			t.Errorf("%+v", r)
		}
	}
	// Another model: nothing is promised; each member has its own agreement.
	other := scriptModel(t, validate+`
replies:
- {match: one, text: '{"rating":1.0,"why":{"text":"b"},"list":[1,3,4]}'}
- {match: two, text: '[]'}
- {match: three, text: 'free text'}
`)
	rep, list = g.replay(distill.ReplayOptions{}, other)
	want := map[string]distill.Agreement{"rating": {2, 1}, "why.text": {1, 0}, "list[]": {3, 1}, "": {1, 0}}
	if d := cmp.Diff(want, rep.Fields); d != "" {
		t.Error(d)
	}
	if rep.Promised.Compared != 0 || rep.Others != (distill.Agreement{Compared: 3, Equal: 1}) || rep.Invalid != 1 || !rep.Kept() {
		t.Errorf("%+v", rep)
	}
	if *list[1].Valid || list[0].Recorded == list[0].Answer {
		t.Errorf("%+v", list)
	}
	// Limits and paths.
	if rep, _ = g.replay(distill.ReplayOptions{Limit: 2}, m); rep.Answers != 2 {
		t.Errorf("%+v", rep)
	}
	if rep, list = g.replay(distill.ReplayOptions{Paths: []string{list[1].Path}}, m); rep.Answers != 1 || list[0].TurnID != "turn000002" {
		t.Errorf("%+v", rep)
	}
	// A model that breaks what was promised, and one that fails.
	broken := lying{scriptModel(t, validate+"default: {text: '{}'}"), m.Identity()}
	if rep, _ = g.replay(distill.ReplayOptions{}, broken); rep.Kept() || rep.Promised.Equal != 0 || rep.Promised.Compared != 2 {
		t.Errorf("%+v", rep)
	}
	if rep, list = g.replay(distill.ReplayOptions{}, scriptModel(t, validate+"default: {error: {kind: failed, message: the line is down}}")); rep.Kept() || rep.Failed != 3 || !strings.Contains(list[0].Error, "the line is down") {
		t.Errorf("%+v, %+v", rep, list[0])
	}
	// Without the schema's support there is no answer, and it says so.
	masks := scriptModel(t, "constraints: [regex]\nmask: false\ndefault: {text: '{}'}")
	g2 := newGraphDir(t)
	req := rated("one", scriptModel(t, "mask: false\ndefault: {text: '{}'}"), false)
	req.ConstraintOptions.Enforce = constraint.EnforceMask
	g2.ran("rater", req)
	if rep, list = g2.replay(distill.ReplayOptions{}, masks); rep.Failed != 1 || list[0].Error == "" {
		t.Errorf("%+v", rep)
	}
}

// lying says that it is another model.
type lying struct {
	model.Model
	id model.Identity
}

func (l lying) Identity() model.Identity { return l.id }

// A repaired answer is asked for with what was said about the first, a turn
// with tools with the results that are recorded; neither runs a tool.
func TestReplayOfRepairsAndTools(t *testing.T) {
	g := newGraphDir(t)
	req := rated("fix", scriptModel(t, validate+"replies:\n- {match: fix, times: 1, text: no JSON}\ndefault: {text: '{\"rating\":3}'}"), true)
	req.Repair.Enabled = true
	m := g.ran("rater", req)
	if m.rec.Repair.Status != record.RepairSucceeded {
		t.Fatalf("%+v", m.rec.Repair)
	}
	g.turn("caller", "add", "the sum is 42", func(m *made) {
		result := "42"
		m.rec.ToolCalls = []record.ToolCall{{ID: "call00001", Name: "add", Arguments: json.RawMessage(`{"a":1}`), Result: &result}}
		m.rec.ToolRounds = []record.ToolRound{{Text: "Let me see.", Calls: 1}}
		m.rec.Request.Tools = []model.Tool{{Name: "add", Parameters: json.RawMessage(`{"type":"object"}`)}}
	})
	var got []string
	spy := spying{scriptModel(t, "constraints: none\nmask: false\ntools: true\nreplies:\n- {tool_result: '42', text: the sum is 42}\n- {match: Your answer is not valid, text: '{\"rating\":3}'}"), &got}
	rep, _ := g.replay(distill.ReplayOptions{}, spy)
	if rep.Others.Equal != 2 || rep.Failed > 0 {
		t.Errorf("%+v", rep)
	}
	want := []string{"system,user,assistant:Let me see.,tool:42", "system,user,assistant:no JSON,user:Your answer is not valid."}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

type spying struct {
	model.Model
	got *[]string
}

func (s spying) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	var said []string
	for i, m := range req.Messages {
		text := string(m.Role)
		if i > 1 {
			first, _, _ := strings.Cut(m.Content, " What is wrong")
			text += ":" + first
		}
		said = append(said, text)
	}
	*s.got = append(*s.got, strings.Join(said, ","))
	return s.Model.Generate(ctx, req)
}

// A script of recorded answers gives every recorded conversation its answer,
// whatever bytes are in it.
func TestScript(t *testing.T) {
	texts := []string{"plain", "", " leading\n\nand trailing \n", "tab\tand \x01\x7f and \u0085\u2028\uFEFF", "'quotes' \"too\": # no comment", "true", "日本 \U0001F600", "- a\n  b\r\n", "@%`"}
	g := newGraphDir(t)
	for i, text := range texts {
		g.turn("writer", fmt.Sprintf("text %d %s", i, text), text)
	}
	for _, text := range []string{"first", "second", "third"} {
		g.turn("writer", "the same", text)
	}
	result := "42"
	call := record.ToolCall{ID: "call00001", Name: "add", Arguments: json.RawMessage(`{"a": 1.50, "b": [true, null, "x"], "c": {}}`), Result: &result}
	g.turn("caller", "add", "the sum is 42", func(m *made) {
		m.rec.ToolCalls = []record.ToolCall{call}
		m.rec.ToolRounds = []record.ToolRound{{Text: "Let me see.", Reasoning: "hm", Calls: 1}}
		m.rec.Request.Tools = []model.Tool{{Name: "add"}}
	})
	rejected, feedback := "first try", "Your answer is not valid."
	g.turn("writer", "repair", "second try", func(m *made) {
		m.rec.Repair = &record.Repair{Status: record.RepairSucceeded, Attempts: "1", Validations: "2", Rejected: &rejected, Feedback: &feedback}
	})
	g.turn("writer", "not there", "gone", func(m *made) { m.file = "changed" })

	var b bytes.Buffer
	rep, err := distill.Script(context.Background(), g.root, distill.ReplayOptions{}, &b, func(p *distill.Problem) error { return p })
	if err != nil {
		t.Fatal(err)
	}
	if rep.Turns != len(texts)+6 || rep.Replies != rep.Turns+2 {
		t.Errorf("%+v", rep)
	}
	m := scriptModel(t, b.String())
	say := func(msgs ...model.Message) *model.Response {
		t.Helper()
		resp, err := m.Generate(context.Background(), &model.Request{Messages: msgs})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	asked := func(agent, input string) []model.Message {
		return []model.Message{{Role: model.System, Content: "Be " + agent + "."}, {Role: model.User, Content: input}}
	}
	for i, text := range texts {
		if got := say(asked("writer", fmt.Sprintf("text %d %s", i, text))...).Text; got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	for _, want := range []string{"first", "second", "third", "third"} {
		if got := say(asked("writer", "the same")...).Text; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	round := say(asked("caller", "add")...)
	if round.Text != "Let me see." || round.Reasoning != "hm" || len(round.ToolCalls) != 1 || string(round.ToolCalls[0].Arguments) != `{"a":1.50,"b":[true,null,"x"],"c":{}}` {
		t.Errorf("%+v", round)
	}
	after := append(asked("caller", "add"), model.Message{Role: model.Assistant, Content: "Let me see.", ToolCalls: round.ToolCalls}, model.Message{Role: model.ToolRole, Content: "42", ToolCallID: "x"})
	if got := say(after...).Text; got != "the sum is 42" {
		t.Errorf("after the tool: %q", got)
	}
	if got := say(asked("writer", "repair")...).Text; got != rejected {
		t.Errorf("before the repair: %q", got)
	}
	again := append(asked("writer", "repair"), model.Message{Role: model.Assistant, Content: rejected}, model.Message{Role: model.User, Content: feedback})
	if got := say(again...).Text; got != "second try" {
		t.Errorf("after the repair: %q", got)
	}
	if _, err := m.Generate(context.Background(), &model.Request{Messages: asked("writer", "never asked")}); err == nil {
		t.Error("a request that was not recorded gets an answer")
	}
}

// Replay reads its graph and changes nothing in it.
func TestReplayWritesNothing(t *testing.T) {
	g := newGraphDir(t)
	g.turn("writer", "a", "b")
	tree := func() (list []string) {
		err := filepath.WalkDir(g.root, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				b, _ := os.ReadFile(path)
				path += ": " + hex64(string(b))
			}
			list = append(list, path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := tree()
	g.replay(distill.ReplayOptions{}, scriptModel(t, "default: {text: b}"))
	if d := cmp.Diff(before, tree()); d != "" {
		t.Error(d)
	}
}
