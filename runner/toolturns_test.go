package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/turn"
)

func needsNative(t *testing.T) {
	t.Helper()
	if _, err := constraint.ByteVocabulary(); errors.Is(err, constraint.ErrNotBuilt) {
		t.Skip("needs the native library")
	}
}

// shapes are the four kinds of constraint and none, with an answer to each.
var shapes = []struct{ agent, schema, source, answer string }{
	{"json", ".schema-sum.json", `{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`, `{"sum":42}`},
	{"regex", ".schema-sum.txt@regex", "is [0-9]+\n", "is 42"},
	{"lark", ".schema-sum.txt@lark", "start: \"is \" /[0-9]+/\n", "is 42"},
	{"llg", ".schema-sum.json@llg", `{"grammars":[{"json_schema":{"type":"integer"}}]}`, "42"},
	{"free", "", "", "it is 42"},
}

// An agent calls tools, thinks, and answers. With a schema the file of the
// answer is the answer, byte for byte; without one the calls follow it. Nothing
// else is in output, and neither calls nor thoughts are in the stream's file.
func TestAnswersOfTurnsWithTools(t *testing.T) {
	needsNative(t)
	for _, head := range []string{"", "mask: false\n", "constraints: none\n"} {
		t.Run(strings.TrimSpace("with "+head), func(t *testing.T) {
			var files []string
			src := "tools: true\n" + head + "replies:\n"
			settings := "tools: [read_file, list_folder]\nstream_output: ../../live\ntool_output: results\n"
			if head != "" {
				settings += "output: {enforce: validate}\n"
			}
			for _, s := range shapes {
				files = append(files, "1/"+s.agent, "first of "+s.agent, "2/"+s.agent, "second of "+s.agent, "agents/"+s.agent+"/agent.yaml", settings, "agents/"+s.agent+"/system/p.md", "You are "+s.agent+".",
					"agents/"+s.agent+"/input/q.txt", "sum of "+s.agent)
				if s.schema != "" {
					files = append(files, "agents/"+s.agent+"/system/"+s.schema, s.source)
				}
				src += fmt.Sprintf("  - {match: sum of %[1]s, reasoning: hm first, tool_calls: [{name: read_file, arguments: {path: 1/%[1]s}}]}\n"+
					"  - {tool_result: first of %[1]s, reasoning: hm second, tool_calls: [{name: read_file, arguments: {path: 2/%[1]s}}]}\n"+
					"  - {tool_result: second of %[1]s, reasoning: hm third, text: '%[2]s'}\n", s.agent, s.answer)
			}
			g := newGraph(t, files...)
			gen := byScript(t, src)
			parts := map[string]string{}
			s, log := g.once(func(ctx context.Context, req *turn.Request) *record.Record {
				rec := gen(ctx, req)
				b, err := os.ReadFile(g.path("live/" + streamName(req.TurnID)))
				genMu.Lock()
				defer genMu.Unlock()
				parts[req.Agent] = string(b)
				if err != nil {
					t.Error(err)
				}
				return rec
			})
			if s.Completed != len(shapes) {
				t.Fatalf("%+v; events:\n%s", s, log)
			}
			for _, shape := range shapes {
				want := shape.answer
				if shape.schema == "" {
					want += "\n\n" + `{"id":"call00001","name":"read_file","arguments":{"path":"1/free"}}` + "\n" +
						`{"id":"call00002","name":"read_file","arguments":{"path":"2/free"}}` + "\n"
				}
				var names []string
				entries, err := os.ReadDir(g.path("agents/" + shape.agent + "/output"))
				g.must(err)
				for _, e := range entries {
					names = append(names, e.Name())
				}
				if len(names) != 1 {
					t.Errorf("%s: output holds %q", shape.agent, names)
					continue
				}
				got, err := os.ReadFile(g.path("agents/" + shape.agent + "/output/" + names[0]))
				g.must(err)
				if string(got) != want {
					t.Errorf("%s: the file holds %q, want %q", shape.agent, got, want)
				}
				if parts[shape.agent] != shape.answer {
					t.Errorf("%s: the stream showed %q, want %q", shape.agent, parts[shape.agent], shape.answer)
				}
				if n := len(g.contents("agents/" + shape.agent + "/results")); n != 2 {
					t.Errorf("%s: tool_output holds %d files", shape.agent, n)
				}
				g.must(store.Open(g.path("agents/" + shape.agent + "/turns")).Each(func(_ string, r *record.Record) error {
					if r.Outputs[0].SHA256 != hashOf(got) || len(r.ToolCalls) != 2 || *r.ToolCalls[0].Result != "first of "+shape.agent || *r.ToolCalls[0].ResultSHA256 != hashOf([]byte("first of "+shape.agent)) {
						t.Errorf("%s: outputs %+v, calls %+v", shape.agent, r.Outputs, r.ToolCalls)
					}
					if len(r.ToolRounds) != 2 || r.ToolRounds[0].Reasoning != "hm first" || r.ToolRounds[1].Reasoning != "hm second" || r.Outcome.Reasoning != "hm third" {
						t.Errorf("%s: rounds %+v, reasoning %q", shape.agent, r.ToolRounds, r.Outcome.Reasoning)
					}
					return nil
				}))
			}
			if left, _ := os.ReadDir(g.path("live")); len(left) > 0 {
				t.Errorf("left of the streams: %v", left)
			}
		})
	}
}

// What a turn without an answer showed is gone, or stays under its unfinished
// name.
func TestStreamsOfFailedTurns(t *testing.T) {
	for _, keep := range []bool{false, true} {
		g := newGraph(t, "agents/a/agent.yaml", fmt.Sprintf("stream_output: live\nkeep_stream: %v\nretries: 0\nsampling: {max_tokens: 3}\noutput: {enforce: validate}\n", keep),
			"agents/a/system/.schema-n.txt@regex", "[0-9]+", "agents/a/input/long", "long", "agents/a/input/wrong", "wrong", "agents/a/input/error", "error")
		s, log := g.once(byScript(t, "constraints: none\nreplies:\n  - {match: wrong, text: no number}\n  - {match: long, text: '1234567812345678'}\n  - {match: error, text: '1234', error: {kind: failed, message: gone, after: 1}}\n"))
		if s.Completed != 0 || s.Failed+s.Refused != 3 {
			t.Fatalf("%+v; events:\n%s", s, log)
		}
		if out := g.outputs("agents/a/output"); len(out) > 0 {
			t.Errorf("output holds %q", out)
		}
		left := g.outputs("agents/a/live")
		if !keep && len(left) > 0 || keep && len(left) != 3 {
			t.Errorf("keep %v: left are %q", keep, left)
		}
		for name := range left {
			if filepath.Ext(name) != ".part" {
				t.Errorf("%s looks finished", name)
			}
		}
	}
}

// A runner that dies leaves an unfinished file, and the next one begins it anew:
// at the end it is gone or has the answer's name, that of a failed turn stays
// unfinished.
func TestStreamsAfterACrash(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	for _, step := range []string{"streamed:2", "generated:2", "intended:2", "named:2", "recorded:2", "waiting:1", "closed:2"} {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, keep %v", step, keep), func(t *testing.T) {
				t.Parallel()
				g := newGraph(t, "agents/a/agent.yaml", fmt.Sprintf("stream_output: live\nkeep_stream: %v\n", keep), "agents/a/system/.schema-n.txt@regex", "(.|\n)*",
					"agents/a/input/a", "1 streamed", "agents/a/input/b", "flaky streamed", "agents/a/input/c", "bad streamed")
				wait, _ := g.startChild(step)
				if !wait() {
					t.Fatal("the runner did not come to this step")
				}
				left := g.outputs("agents/a/live")
				for name := range left {
					if _, published := g.outputs("agents/a/output")[name]; !published && filepath.Ext(name) != ".part" {
						t.Errorf("%s looks finished", name)
					}
				}
				wait, _ = g.startChild("")
				if wait() {
					t.Fatal("killed without being asked to")
				}
				answers := g.outputs("agents/a/output")
				if len(answers) != 2 {
					t.Fatalf("answers: %q", answers)
				}
				var finished, parts []string
				for name, text := range g.outputs("agents/a/live") {
					if filepath.Ext(name) == ".part" {
						parts = append(parts, name)
						continue
					}
					finished = append(finished, name)
					if !strings.HasPrefix(text, "half of ") || strings.Count(text, "half of") != 1 {
						t.Errorf("%s holds %q", name, text)
					}
				}
				sort.Strings(finished)
				switch {
				case !keep && len(finished)+len(parts) > 0:
					t.Errorf("left: %q %q", finished, parts)
				case keep && (len(parts) != 1 || strings.Join(finished, " ") != "n_0.txt n_1.txt"):
					t.Errorf("kept: %q %q", finished, parts)
				}
			})
		}
	}
}

// streamInChild is what the answer of a child looks like while it grows.
func streamInChild(req *turn.Request) {
	if strings.Contains(req.User, "streamed") {
		req.Progress(model.Progress{Text: "half of " + strings.Fields(req.User)[0], Tokens: 3})
		if crashPoint != nil {
			crashPoint("streamed")
		}
	}
}

// The rule of a denied call stands in the record on disk, and who approves on
// the socket decides about that call alone.
func TestDeniedCallInTheRecord(t *testing.T) {
	g := newGraph(t, "agents/a/agent.yaml", "tools: [{tool: write_note, policy: ask}]\n", "agents/a/input/a", "note a", "agents/b/agent.yaml", "tools: [{tool: write_note, policy: deny}]\nretries: 0\n", "agents/b/input/b", "note b")
	s, log := g.once(byScript(t, "tools: true\nconstraints: none\nreplies:\n  - match: note\n    tool_calls: [{name: write_note, arguments: {name: n, text: x}}]\ndefault: {text: done}\n"))
	if s.Failed != 2 {
		t.Fatalf("%+v; events:\n%s", s, log)
	}
	for agent, rule := range map[string]string{"a": "tools.write_note: ask", "b": "tools.write_note: deny"} {
		g.must(store.Open(g.path("agents/" + agent + "/turns")).Each(func(_ string, r *record.Record) error {
			if r.Outcome.Status != record.PolicyDenied || r.Outcome.Rule != rule || r.Attempt != 1 || len(r.ToolCalls) != 1 || r.ToolCalls[0].Result != nil {
				b, _ := json.Marshal(r)
				t.Errorf("%s: %s", agent, b)
			}
			return nil
		}))
		if _, err := os.Stat(g.path("agents/" + agent + "/notes")); err == nil {
			t.Errorf("%s wrote its note", agent)
		}
		if out := g.outputs("agents/" + agent + "/output"); len(out) > 0 {
			t.Errorf("%s published %q", agent, out)
		}
	}
}
