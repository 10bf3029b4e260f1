package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/tools"
	"agentgraph/turn"
)

// program writes a tool in the plug-in form.
func program(t *testing.T, name, parameters, body string) tools.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	src := "#!/bin/sh\ncase \"$1\" in\n--describe) echo '{\"name\":\"" + name + "\",\"description\":\"does " + name + "\",\"parameters\":" + parameters + "}'; exit;;\n" +
		"--help) echo 'How to use " + name + ".'; exit;;\nesac\nargs=$(cat)\n" + body + "\n"
	if err := os.WriteFile(path, []byte(src), 0o755); err != nil {
		t.Fatal(err)
	}
	return tools.Config{Command: []string{path}}
}

const addParameters = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`

func adder(t *testing.T) tools.Config {
	return program(t, "add", addParameters, `a=$(echo "$args" | sed 's/.*"a": *\([0-9]*\).*/\1/'); b=$(echo "$args" | sed 's/.*"b": *\([0-9]*\).*/\1/'); printf %s $((a+b))`)
}

const sumSchema = `{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`

const calling = `
replies:
  - match: sum
    tool_calls: [{name: add, arguments: {a: 20, b: 22}}]
  - tool_result: "42"
    text: '{"sum": 42}'
  - tool_result: "error"
    text: '{"sum": 0}'
`

// The bug of many servers: a schema switches tools off, or their text gets
// into the answer. Here the tool runs and the answer is the constrained text.
func TestToolsAndSchemaTogether(t *testing.T) {
	for _, tt := range []struct {
		name, head string
		opt        constraint.Options
		calls      string
		native     bool
	}{
		{"masked", "tools: true\n", constraint.Options{}, "2", true},
		{"like a server", "tools: true\nmask: false\n", constraint.Options{}, "3", false},
		{"validated only", "tools: true\nconstraints: none\n", validate, "3", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.native {
				native(t)
			}
			m := scripted(t, tt.head+calling+"  - tool_result: \"42\"\n")
			var events []turn.EventType
			rec := run(t, t.Context(), &turn.Request{User: "the sum, please", Model: m, Tools: []tools.Config{adder(t)},
				Spec: spec(constraint.JSON, sumSchema), ConstraintOptions: tt.opt, TurnID: "t1",
				Audit: func(e turn.Event) { events = append(events, e.Type) }})
			text, ok := rec.Answer()
			file, _ := rec.FileText()
			if !ok || strings.ReplaceAll(text, " ", "") != `{"sum":42}` || file != text {
				t.Fatalf("answer %q, file %q, error %v", text, file, rec.Error)
			}
			if rec.Accounting.ModelCalls != tt.calls || rec.Accounting.ToolCalls != "1" {
				t.Errorf("%s model calls, want %s; %s tool calls", rec.Accounting.ModelCalls, tt.calls, rec.Accounting.ToolCalls)
			}
			c := rec.ToolCalls[0]
			if c.Name != "add" || *c.Result != "42" || *c.ResultBytes != 2 || *c.ExitStatus != 0 || c.Error != "" || len(*c.ResultSHA256) != 64 {
				t.Errorf("%+v", c)
			}
			if len(rec.ToolRounds) != 1 || rec.ToolRounds[0].Calls != 1 {
				t.Errorf("rounds: %+v", rec.ToolRounds)
			}
			n := 0
			for _, e := range events {
				if e == turn.EventToolCall {
					n++
				}
			}
			if n != 1 {
				t.Errorf("events: %v", events)
			}
		})
	}
}

// Without a schema the calls stand in the file after a blank line.
func TestToolCallsJoinFreeText(t *testing.T) {
	for _, head := range []string{"tools: true\n", "tools: true\nconstraints: none\n"} {
		var shown strings.Builder
		m := scripted(t, head+"replies:\n  - match: sum\n    tool_calls: [{name: add, arguments: {a: 1, b: 2}}]\n  - tool_result: '3'\n    text: \"It is 3 <3.\"\n")
		rec := run(t, t.Context(), &turn.Request{User: "sum", Model: m, Tools: []tools.Config{adder(t)}, System: []string{"Be kind."},
			Progress: func(p model.Progress) { shown.WriteString(p.Text) }})
		if text, ok := rec.Answer(); !ok || text != "It is 3 <3." {
			t.Fatalf("%q, %v, %v", text, ok, rec.Error)
		}
		file, _ := rec.FileText()
		want := "It is 3 <3.\n\n" + `{"id":"call00001","name":"add","arguments":{"a":1,"b":2}}` + "\n"
		if file != want {
			t.Errorf("the file holds %q, want %q", file, want)
		}
		if shown.String() != "It is 3 <3." {
			t.Errorf("shown while it grew: %q", shown.String())
		}
		if got := rec.Request.Messages[0].Content; got != "Be kind.\n\nHow to use add." {
			t.Errorf("system message %q", got)
		}
		if len(rec.Request.Tools) != 1 || rec.Request.Tools[0].Description != "does add" {
			t.Errorf("tools: %+v", rec.Request.Tools)
		}
	}
}

func TestEndlessToolLoops(t *testing.T) {
	loop := "default:\n  tool_calls: [{name: add, arguments: {a: 1, b: 2}}]\n"
	// A mask leaves only the answer when the rounds are used up.
	t.Run("masked", func(t *testing.T) {
		native(t)
		for rounds, want := range map[int]string{1: "2", 3: "4", 0: "9", -1: "1"} {
			rec := run(t, t.Context(), &turn.Request{User: "x", Model: scripted(t, "tools: true\n"+loop), Tools: []tools.Config{adder(t)},
				Spec: spec(constraint.JSON, sumSchema), MaxToolRounds: rounds})
			if _, ok := rec.Answer(); !ok || rec.Accounting.ModelCalls != want {
				t.Errorf("%d rounds: %v, %s calls, want %s", rounds, rec.Error, rec.Accounting.ModelCalls, want)
			}
		}
	})
	t.Run("unmasked", func(t *testing.T) {
		for rounds, calls := range map[int]string{2: "3", 0: "9"} {
			rec := run(t, t.Context(), &turn.Request{User: "x", Model: scripted(t, "tools: true\nconstraints: none\n"+loop), Tools: []tools.Config{adder(t)}, MaxToolRounds: rounds})
			if rec.Outcome.Status != record.LimitExceeded || rec.Outcome.Limit != "tool_rounds" || rec.Accounting.ModelCalls != calls {
				t.Errorf("%d rounds: %+v, %s calls", rounds, rec.Outcome, rec.Accounting.ModelCalls)
			}
		}
	})
	t.Run("model calls", func(t *testing.T) {
		rec := run(t, t.Context(), &turn.Request{User: "x", Model: scripted(t, "tools: true\nconstraints: none\n"+loop), Tools: []tools.Config{adder(t)}, ModelCalls: 3})
		if rec.Outcome.Limit != "model_calls" || rec.Accounting.ModelCalls != "3" {
			t.Errorf("%+v", rec.Outcome)
		}
	})
	t.Run("output tokens", func(t *testing.T) {
		native(t)
		rec := run(t, t.Context(), &turn.Request{User: "x", Model: scripted(t, "tools: true\n"+loop), Tools: []tools.Config{adder(t)}, Sampling: model.Sampling{MaxTokens: 40}})
		if rec.Outcome.Limit != "output_tokens" || rec.Error.Code != record.Truncated {
			t.Errorf("%+v", rec.Outcome)
		}
	})
}

func TestFailingToolsAreToldToTheModel(t *testing.T) {
	bad := program(t, "add", addParameters, `echo "out of numbers" >&2; exit 7`)
	slow := program(t, "add", addParameters, `sleep 60`)
	slow.Timeout = 200 * time.Millisecond
	for _, tt := range []struct {
		name string
		tool tools.Config
		call string
		want string
		exit int
	}{
		{"exit status", bad, `{name: add, arguments: {a: 20, b: 22}}`, "exit status 7: out of numbers", 7},
		{"time-out", slow, `{name: add, arguments: {a: 20, b: 22}}`, "ran longer than 200ms", -1},
		{"arguments", adder(t), `{name: add, arguments: {a: x, b: 22}}`, `schema_violation at "/a"`, -1},
		{"unknown tool", adder(t), `{name: sub, arguments: {}}`, `there is no tool "sub"; there are add`, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := scripted(t, "tools: true\nconstraints: none\nreplies:\n  - match: sum\n    tool_calls: ["+tt.call+"]\n  - tool_result: 'error: '\n    text: sorry\n")
			rec := run(t, t.Context(), &turn.Request{User: "sum", Model: m, Tools: []tools.Config{tt.tool}})
			if text, ok := rec.Answer(); !ok || text != "sorry" {
				t.Fatalf("%q, %v", text, rec.Error)
			}
			c := rec.ToolCalls[0]
			if !strings.Contains(c.Error, tt.want) || !strings.HasPrefix(*c.Result, "error: ") {
				t.Errorf("error %q, result %q", c.Error, *c.Result)
			}
			if tt.exit >= 0 && (c.ExitStatus == nil || *c.ExitStatus != tt.exit) {
				t.Errorf("exit status %v", c.ExitStatus)
			}
		})
	}
}

type approver struct {
	ok  bool
	err error
	got tools.Question
}

func (a *approver) Approve(_ context.Context, q tools.Question) (bool, error) {
	a.got = q
	return a.ok, a.err
}

func TestPolicies(t *testing.T) {
	const script = "tools: true\nconstraints: none\nreplies:\n  - match: sum\n    tool_calls: [{name: add, arguments: {a: 1, b: 2}}]\n  - tool_result: '3'\n    text: three\n"
	for _, tt := range []struct {
		name     string
		policy   tools.Policy
		approver *approver
		rule     string // "": completed
		message  string
	}{
		{"allow", tools.Allow, nil, "", ""},
		{"deny", tools.Deny, nil, "tools.add: deny", "policy is deny"},
		{"ask nobody", tools.Ask, nil, "tools.add: ask", "nobody to ask"},
		{"ask, yes", tools.Ask, &approver{ok: true}, "", ""},
		{"ask, no", tools.Ask, &approver{}, "tools.add: ask", "not approved"},
		{"ask, gone", tools.Ask, &approver{err: errors.New("hung up")}, "tools.add: ask", "hung up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := adder(t)
			c.Policy = tt.policy
			req := &turn.Request{User: "sum", Agent: "a", TurnID: "t9", Model: scripted(t, script), Tools: []tools.Config{c}}
			if tt.approver != nil {
				req.Approver = tt.approver
			}
			rec := run(t, t.Context(), req)
			if tt.rule == "" {
				if text, ok := rec.Answer(); !ok || text != "three" {
					t.Fatalf("%q, %v", text, rec.Error)
				}
			} else if rec.Outcome.Status != record.PolicyDenied || rec.Outcome.Rule != tt.rule || !strings.Contains(rec.Error.Message, tt.message) || record.ExitCode(rec) != 1 {
				t.Errorf("%+v, %v", rec.Outcome, rec.Error)
			} else if c := rec.ToolCalls[0]; c.Result != nil || c.Error == "" {
				t.Errorf("%+v", c)
			}
			if a := tt.approver; a != nil && (a.got.Tool != "add" || a.got.Agent != "a" || a.got.TurnID != "t9" || string(a.got.Arguments) != `{"a":1,"b":2}`) {
				t.Errorf("asked about %+v", a.got)
			}
			if tt.policy == tools.Deny && len(rec.Request.Tools) != 0 {
				t.Error("a denied tool is offered")
			}
		})
	}
}

// A schema that cannot be held disables its tool, not the turn.
func TestDisabledTools(t *testing.T) {
	native(t)
	odd := program(t, "odd", `{"type":"object","properties":{"l":{"type":"array","uniqueItems":true,"items":{"type":"integer"}}},"required":["l"]}`, "echo 1")
	broken := program(t, "broken", `{"type":"object","properties":{"l":{"type":"strng"}}}`, "echo 1")
	m := func() model.Model {
		return scripted(t, "tools: true\nreplies:\n  - match: sum\n    tool_calls: [{name: add, arguments: {a: 20, b: 22}}]\n  - tool_result: '42'\n    text: '{\"sum\": 42}'\n")
	}
	rec := run(t, t.Context(), &turn.Request{User: "sum", Model: m(), Tools: []tools.Config{odd, broken, adder(t)}, Spec: spec(constraint.JSON, sumSchema)})
	if _, ok := rec.Answer(); !ok || len(rec.ToolCalls) != 1 {
		t.Fatalf("%v, %+v", rec.Error, rec.ToolCalls)
	}
	var names []string
	for _, d := range rec.Request.DisabledTools {
		names = append(names, d.Name)
		if d.Name == "odd" && !strings.Contains(d.Reason, "uniqueItems") || d.Name == "broken" && !strings.Contains(d.Reason, "strng") && !strings.Contains(d.Reason, "type") {
			t.Errorf("%+v", d)
		}
	}
	if strings.Join(names, " ") != "odd broken" || len(rec.Request.Tools) != 1 || strings.Contains(rec.Request.Messages[0].Content, "odd") {
		t.Errorf("disabled %q, offered %+v, prompt %q", names, rec.Request.Tools, rec.Request.Messages[0].Content)
	}
	// What validation decides is held by validation where that is allowed.
	rec = run(t, t.Context(), &turn.Request{User: "sum", Model: m(), Tools: []tools.Config{odd, adder(t)}, Spec: spec(constraint.JSON, sumSchema), ConstraintOptions: validate})
	if _, ok := rec.Answer(); !ok || len(rec.Request.Tools) != 2 {
		t.Errorf("%v, %+v", rec.Error, rec.Request.Tools)
	}
}

func TestToolsThatCannotBeHad(t *testing.T) {
	missing := tools.Config{Command: []string{"no-such-tool-anywhere"}}
	rec := run(t, t.Context(), &turn.Request{User: "x", Model: scripted(t, "tools: true\nreplies: [{text: a}]"), Tools: []tools.Config{missing}})
	if rec.Outcome == nil || rec.Outcome.Code != record.ToolFailed || rec.Outcome.Delivery != model.NotSent || rec.Error.Hint == "" {
		t.Errorf("%+v, %+v", rec.Outcome, rec.Error)
	}
	rec = run(t, t.Context(), &turn.Request{User: "x", Model: scripted(t, "replies: [{text: a}]"), Tools: []tools.Config{adder(t)}})
	if rec.Outcome != nil || rec.Error.Code != record.CapabilityMissing || !strings.Contains(rec.Error.Message, "declares no tools") {
		t.Errorf("%+v, %+v", rec.Outcome, rec.Error)
	}
}

// Broken calls in free text: what begins like a call is held to one.
func TestBrokenCallsInFreeText(t *testing.T) {
	native(t)
	m := scripted(t, "tools: true\nreplies:\n  - text: '<tool_call>{\"name\": and so on'\n  - text: done\n")
	rec := run(t, t.Context(), &turn.Request{User: "sum", Model: m, Tools: []tools.Config{adder(t)}, Sampling: model.Sampling{MaxTokens: 200}})
	if text, ok := rec.Answer(); !ok || text != "done" || len(rec.ToolCalls) != 1 || !json.Valid(rec.ToolCalls[0].Arguments) {
		t.Errorf("%q, %v, %+v", text, rec.Error, rec.ToolCalls)
	}
}

func TestToolsOfEveryKindAndFormat(t *testing.T) {
	native(t)
	for _, tt := range []struct {
		kind        constraint.Kind
		src, answer string
	}{
		{constraint.JSON, sumSchema, `{"sum":42}`},
		{constraint.Regex, `is [0-9]+`, "is 42"},
		{constraint.Lark, "start: \"is \" /[0-9]+/\n", "is 42"},
		{constraint.LLG, `{"grammars":[{"json_schema":{"type":"integer"}}]}`, "42"},
		{"", "", "it is 42"},
	} {
		for _, f := range constraint.CallFormats {
			m := scripted(t, "tools: true\nreplies:\n  - match: sum\n    tool_calls: [{name: add, arguments: {a: 20, b: 22}}]\n  - tool_result: '42'\n    text: '"+tt.answer+"'\n")
			req := &turn.Request{User: "sum", Model: m, Tools: []tools.Config{adder(t)}, ToolFormat: f}
			if tt.kind != "" {
				req.Spec = spec(tt.kind, tt.src)
			}
			rec := run(t, t.Context(), req)
			if text, ok := rec.Answer(); !ok || text != tt.answer || len(rec.ToolCalls) != 1 || *rec.ToolCalls[0].Result != "42" {
				t.Errorf("%s, %s: %q, %v, %+v", tt.kind, f, text, rec.Error, rec.ToolCalls)
			}
		}
	}
}

// A repair goes on in the conversation with the tools, and calls none.
func TestRepairAfterTools(t *testing.T) {
	m := scripted(t, "tools: true\nconstraints: none\nreplies:\n  - match: sum\n    times: 1\n    tool_calls: [{name: add, arguments: {a: 20, b: 22}}]\n  - text: thinking\n  - text: '{\"sum\": \"x\"}'\n  - text: '{\"sum\": 42}'\n")
	rec := run(t, t.Context(), &turn.Request{User: "sum", Model: m, Tools: []tools.Config{adder(t)}, Spec: spec(constraint.JSON, sumSchema),
		ConstraintOptions: validate, Repair: turn.RepairOptions{Enabled: true}})
	if text, ok := rec.Answer(); !ok || text != `{"sum": 42}` || rec.Repair.Status != record.RepairSucceeded || rec.Accounting.ModelCalls != "4" {
		t.Errorf("%q, %v, %+v", text, rec.Error, rec.Repair)
	}
}
