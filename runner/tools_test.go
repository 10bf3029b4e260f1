package runner

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentgraph/model"
	scripted "agentgraph/model/script"
	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/turn"
)

// byScript answers with real turns of a scripted model.
func byScript(t *testing.T, src string) GeneratorFunc {
	t.Helper()
	m, err := scripted.New("m.yaml", []byte(src), scripted.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, req *turn.Request) *record.Record {
		req.Model = m
		return turn.Run(ctx, req)
	}
}

// A message handed on by a tool is an input of another agent, with lineage.
func TestMessagesCarryLineage(t *testing.T) {
	g := newGraph(t,
		"agents/a/agent.yaml", "tools: [send_message]\ntool_output: results\n",
		"agents/a/input/q.txt", "please forward",
		"agents/b/agent.yaml", "max_hops: 1\ntools: [send_message]\n",
		"agents/b/input/", "",
	)
	const src = `
tools: true
constraints: none
replies:
  - match: forward
    tool_calls: [{name: send_message, arguments: {to: b, text: bounce this}}]
  - match: bounce
    tool_calls: [{name: send_message, arguments: {to: a, text: forward again}}]
default: {text: done}
`
	s, log := g.once(byScript(t, src))
	if s.Completed < 2 || s.Failed+s.Refused > 0 {
		t.Fatalf("%+v; events:\n%s", s, log)
	}
	n := 0
	g.must(store.Open(g.path("agents/b/turns")).Each(func(_ string, r *record.Record) error {
		n++
		if r.Lineage.Hops != 1 || len(r.Lineage.Roots) != 1 || r.Lineage.Roots[0].Path != "agents/a/input/q.txt" {
			t.Errorf("lineage: %+v", r.Lineage)
		}
		return nil
	}))
	if n != 1 {
		t.Errorf("b had %d turns", n)
	}
	// Free text: the calls stand in the file.
	want := "done\n\n{\"id\":\"call00001\",\"name\":\"send_message\",\"arguments\":{\"to\":\"b\",\"text\":\"bounce this\"}}\n"
	found := false
	for _, c := range g.contents("agents/a/output") {
		found = found || c == want
	}
	if !found {
		t.Errorf("answers of a: %q", g.contents("agents/a/output"))
	}
	// a gets its message back and sends it on: one hop more than b takes.
	got := g.contents("agents/a/results")
	if len(got) != 2 || !strings.Contains(got[0], "it would be hop 3, and b takes at most 1") || !strings.HasPrefix(got[1], "sent to b") {
		t.Errorf("tool_output: %q", got)
	}
	// Nothing is done twice without the ledger: the file's hash is that of
	// the record.
	g.must(os.RemoveAll(g.path(".agentgraph")))
	if s, log := g.once(byScript(t, src)); s != (Summary{}) {
		t.Errorf("again: %+v; events:\n%s", s, log)
	}
	g.clean()
}

func TestCallsWaitForApproval(t *testing.T) {
	g := newGraph(t, "agents/a/agent.yaml", "tools: [{tool: write_note, policy: ask}]\nretries: 0\n", "agents/a/input/", "")
	log := newLog()
	l := g.run(g.config(byScript(t, "tools: true\nconstraints: none\nreplies:\n  - match: note\n    tool_calls: [{name: write_note, arguments: {name: n, text: x}}]\ndefault: {text: done}\n"), log), log)
	for i, deny := range []bool{false, true} {
		g.write("agents/a/input/"+string(rune('a'+i)), "note "+string(rune('a'+i)))
		l.until("a question", func() bool { return log.count(ApprovalWanted) == i+1 })
		c, err := Dial(g.root)
		g.must(err)
		resp, err := c.Do(Request{Command: CmdApprove})
		g.must(err)
		if len(resp.Waiting) != 1 || resp.Waiting[0].Tool != "write_note" || resp.Waiting[0].Agent != "a" {
			t.Fatalf("waiting: %+v", resp.Waiting)
		}
		if _, err := c.Do(Request{Command: CmdApprove, ID: "nobody"}); err == nil {
			t.Error("an unknown id was approved")
		}
		_, err = c.Do(Request{Command: CmdApprove, ID: resp.Waiting[0].ID, Deny: deny})
		g.must(err)
		g.must(c.Close())
		if deny {
			l.until("the failure", func() bool { return log.count(TurnFailed) == 1 })
		} else {
			l.until("the answer", func() bool { return log.count(TurnFinished) == 1 })
		}
	}
	l.stop()
	if b, err := os.ReadFile(g.path("agents/a/notes/n")); err != nil || string(b) != "x" {
		t.Errorf("the note: %q, %v", b, err)
	}
	for _, e := range log.all() {
		if e.Kind == TurnFailed && e.Error.Code != record.CodePolicyDenied {
			t.Errorf("failed with %+v", e.Error)
		}
	}
}

func TestStreamOutput(t *testing.T) {
	for _, keep := range []string{"false", "true"} {
		g := newGraph(t, "agents/a/agent.yaml", "stream_output: live\nkeep_stream: "+keep+"\n", "agents/a/input/q", "hi",
			"agents/b/agent.yaml", "inputs: [../a/live]\n")
		var part string
		s, log := g.once(func(_ context.Context, req *turn.Request) *record.Record {
			if req.Agent == "b" {
				return completed(req, "taken")
			}
			for i, text := range []string{"draft that is dropped", "the ", "answer"} {
				tokens := []int{5, 1, 2}[i] // the second call begins anew
				req.Progress(model.Progress{Text: text, Tokens: tokens})
			}
			b, err := os.ReadFile(g.path("agents/a/live/" + streamName(req.TurnID)))
			if err != nil {
				t.Error(err)
			}
			part = string(b)
			return completed(req, "the answer")
		})
		if s.Failed > 0 || part != "the answer" {
			t.Errorf("%+v, %q; events:\n%s", s, part, log)
		}
		entries, err := os.ReadDir(g.path("agents/a/live"))
		g.must(err)
		answers := g.outputs("agents/a/output")
		switch {
		case keep == "false" && len(entries) > 0:
			t.Errorf("left: %v", entries)
		case keep == "true" && (len(entries) != 1 || filepath.Ext(entries[0].Name()) == ".part"):
			t.Errorf("kept: %v", entries)
		case keep == "true":
			if _, ok := answers[entries[0].Name()]; !ok {
				t.Errorf("kept %v, answers %v", entries, answers)
			}
		}
	}
}
