package mcp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/record"
	"agentgraph/serve"
)

func TestListOfTools(t *testing.T) {
	for _, tt := range []struct {
		graph bool
		want  []string
	}{
		{true, []string{"answers", "approve", "check", "list_agents", "respond", "send"}},
		{false, []string{"approve", "check", "respond"}},
	} {
		s, _ := newServer(t, tt.graph)
		res, err := connect(t, s).ListTools(within(t), nil)
		must(t, err)
		var names []string
		for _, tool := range res.Tools {
			names = append(names, tool.Name)
			for what, schema := range map[string]any{"input": tool.InputSchema, "output": tool.OutputSchema} {
				b, err := json.Marshal(schema)
				must(t, err)
				if strings.Contains(string(b), ":true") || strings.Contains(string(b), "$ref") {
					t.Errorf("%s: the %s schema has what some clients do not read: %s", tool.Name, what, b)
				}
				var compiled jsonschema.Schema
				must(t, json.Unmarshal(b, &compiled))
				if _, err := compiled.Resolve(nil); err != nil {
					t.Errorf("%s: the %s schema: %v", tool.Name, what, err)
				}
			}
		}
		slices.Sort(names)
		if d := cmp.Diff(tt.want, names); d != "" {
			t.Error(d)
		}
	}
}

func TestRespondFree(t *testing.T) {
	s, _ := newServer(t, false)
	r := connect(t, s).call(within(t), "respond", `{"prompt": "hello", "system": "Be kind."}`)
	if r.failed || r.text != "good morning" || string(r.raw["output"]) != "null" {
		t.Errorf("%+v", r)
	}
	if r.task.Request.Messages[0].Content != "Be kind." {
		t.Errorf("messages: %+v", r.task.Request.Messages)
	}
}

func TestRespondShaped(t *testing.T) {
	needNative(t)
	s, _ := newServer(t, true)
	c := connect(t, s)
	for _, tt := range []struct{ name, args, text, output string }{
		{"schema", `{"prompt":"Rate it","schema":` + rating + `}`, `{"rating":4}`, `{"rating":4}`},
		{"regex that is no JSON", `{"prompt":"hello","regex":"good (morning|evening)"}`, "good morning", "null"},
		{"lark", `{"prompt":"hello","lark":"start: \"good \" (\"morning\" | \"evening\")"}`, "good morning", "null"},
		{"llg", `{"prompt":"hello","llg":{"grammars":[{"json_schema":{"enum":["good morning"]}}]}}`, `"good morning"`, `"good morning"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := c.call(within(t), "respond", tt.args)
			if r.failed || r.text != tt.text || string(r.raw["output"]) != tt.output {
				t.Errorf("failed %v, text %q, output %s", r.failed, r.text, r.raw["output"])
			}
			if by := r.task.OutputValidation.EnforcedBy; by == nil || *by != "mask" {
				t.Errorf("enforced by %v", by)
			}
		})
	}
}

// What format does is a matter of the call, as for prompts over ACP.
func TestFormats(t *testing.T) {
	needNative(t)
	s, _ := newServer(t, true)
	c := connect(t, s)
	for formats, fails := range map[string]bool{"": false, `,"formats":"mask"`: false, `,"formats":"ignore"`: false, `,"formats":"assert"`: true} {
		r := c.call(within(t), "respond", `{"prompt":"day","model":"loose","enforce":"validate","schema":{"type":"object","properties":{"day":{"type":"string","format":"date"}}}`+formats+`}`)
		if r.failed != fails || r.task == nil || (r.task.OutputValidation.Status == record.Invalid) != fails {
			t.Errorf("%s: failed %v, %s", formats, r.failed, r.text)
		}
	}
	has(t, c.call(within(t), "check", `{"regex":"a+","enforce":"validate","formats":"assert"}`).text, `"engine":"validate assert"`)
}

// The schema's bytes are kept, its members in their order; a number keeps its
// digits on the way back.
func TestBytesAreKept(t *testing.T) {
	needNative(t)
	s, _ := newServer(t, true)
	schema := `{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"}},"required":["z","a"]}`
	ctx := within(t)
	c := connect(t, s)
	res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "respond", Arguments: json.RawMessage(`{"prompt":"x","model":"loose","enforce":"validate","schema":` + schema + `}`)})
	must(t, err)
	r := takeApart(t, res)
	if r.failed {
		t.Fatal(r.text)
	}
	if got := r.task.Request.Constraint.Source; got != schema {
		t.Errorf("the schema became %s", got)
	}
	has(t, r.text, `{"z":12345678901234567890,"a":1}`)
}

func TestRefusalNamesConstructAndPath(t *testing.T) {
	needNative(t)
	s, _ := newServer(t, true)
	c := connect(t, s)
	r := c.call(within(t), "respond", `{"prompt":"List","schema":{"type":"object","properties":{"tags":{"type":"array","uniqueItems":true}}}}`)
	if !r.failed || r.task == nil || r.task.Outcome != nil {
		t.Fatalf("%+v", r)
	}
	has(t, r.text, "/properties/tags", "uniqueItems", "capability_missing")
	if e := r.task.Error; e.Construct != "uniqueItems" || e.Path != "/properties/tags" {
		t.Errorf("error: %+v", e)
	}
	if _, ok := r.raw["output"]; ok {
		t.Error("a refusal has an output")
	}
}

func TestArguments(t *testing.T) {
	s, _ := newServer(t, true)
	c := connect(t, s)
	for _, tt := range []struct{ name, args, says string }{
		{"none", `{}`, "prompt"},
		{"unknown", `{"prompt":"x","shema":{}}`, "shema"},
		{"type", `{"prompt":7}`, "prompt"},
		{"type of a promise", `{"prompt":"x","regex":7}`, "arguments_invalid: regex: a JSON number"},
		{"two promises", `{"prompt":"x","schema":{},"regex":"a"}`, "together"},
		{"schema that is no object", `{"prompt":"x","schema":"{}"}`, "schema"},
		{"empty regex", `{"prompt":"x","regex":""}`, "regex"},
		{"enforce", `{"prompt":"x","enforce":"never"}`, "enforce"},
		{"formats", `{"prompt":"x","formats":"never"}`, "formats"},
		{"tokens", `{"prompt":"x","max_output_tokens":0}`, "max_output_tokens"},
		{"thread", `{"prompt":"x","thread":"../x"}`, "thread"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := c.call(within(t), "respond", tt.args)
			if !r.failed || r.task == nil || r.task.Error.Code != record.ArgumentsInvalid {
				t.Fatalf("%+v", r)
			}
			has(t, r.text, tt.says)
		})
	}
	for _, tt := range []struct{ tool, args string }{
		{"send", `{"agent":"greeter","text":"x","name":"../x"}`},
		{"send", `{"agent":"greeter","text":"x","timeout_seconds":0}`},
		{"answers", `{"limit":1000}`},
		{"answers", `{"agent":"nobody"}`},
		{"answers", `{"agent":"greeter","turn":"../../x"}`},
		{"check", `{"agent":"a","regex":"b"}`},
		{"check", `{"regex":"b","formats":"never"}`},
		{"approve", `{"deny":true}`},
		{"approve", `{"id":"nothing"}`},
		{"list_agents", `{"all":true}`},
	} {
		if r := c.call(within(t), tt.tool, tt.args); !r.failed || r.text == "" {
			t.Errorf("%s %s: %+v", tt.tool, tt.args, r)
		}
	}
}

func TestProgress(t *testing.T) {
	s, _ := newServer(t, false)
	c := connect(t, s)
	params := &sdk.CallToolParams{Name: "respond", Arguments: json.RawMessage(`{"prompt":"slow"}`)}
	params.SetProgressToken("p1")
	res, err := c.CallTool(within(t), params)
	must(t, err)
	if res.IsError {
		t.Fatal(takeApart(t, res).text)
	}
	// They were sent before the result.
	last := 0.0
	for range len(c.progress) {
		p := <-c.progress
		if p.ProgressToken != "p1" || p.Progress <= last {
			t.Errorf("progress %v of %v after %v", p.Progress, p.ProgressToken, last)
		}
		last = p.Progress
	}
	if last == 0 {
		t.Error("no progress was told")
	}
}

// Cancellation ends generation: the model is asked no further.
func TestCancel(t *testing.T) {
	s, svc := newServer(t, false)
	c := connect(t, s)
	ctx, cancel := context.WithCancel(within(t))
	params := &sdk.CallToolParams{Name: "respond", Arguments: json.RawMessage(`{"prompt":"forever","thread":"t"}`)}
	params.SetProgressToken(1)
	go func() {
		<-c.progress
		cancel()
	}()
	if _, err := c.CallTool(ctx, params); err == nil {
		t.Fatal("the call ended by itself")
	}
	// Its thread is free again at once, and did not keep the torn answer.
	start := time.Now()
	r := c.call(within(t), "respond", `{"prompt":"hello","thread":"t"}`)
	if took := time.Since(start); r.failed || took > 20*time.Second {
		t.Errorf("after %s: %+v", took, r)
	}
	list, err := svc.Exchanges("t", 0)
	must(t, err)
	if len(list) != 1 {
		t.Errorf("thread: %+v", list)
	}
}

func TestSendAndAnswers(t *testing.T) {
	s, svc := newServer(t, true)
	c := connect(t, s)
	r := c.call(within(t), "send", `{"agent":"greeter","text":"hello","name":"a.txt","wait":true}`)
	if r.failed || r.text != "good morning" || r.task == nil || len(r.task.Outputs) != 1 {
		t.Fatalf("%+v", r)
	}
	file := r.task.Outputs[0].Path
	if string(r.raw["file"]) != `"`+file+`"` {
		t.Errorf("file %s, want %s", r.raw["file"], file)
	}
	if b, err := os.ReadFile(filepath.Join(svc.Root(), file)); err != nil || string(b) != r.text {
		t.Errorf("the file holds %q, %v", b, err)
	}
	// The name is taken now.
	again := c.call(within(t), "send", `{"agent":"greeter","text":"hello again","name":"a.txt"}`)
	if !again.failed {
		t.Error("an input was replaced")
	}
	has(t, again.text, "never replaced")

	var list struct{ Answers []answerEntry }
	decode(t, c.call(within(t), "answers", `{"agent":"greeter"}`), &list)
	if len(list.Answers) != 1 || list.Answers[0].Text != "good morning" || list.Answers[0].Inputs[0] != "agents/greeter/input/a.txt" {
		t.Errorf("answers: %+v", list)
	}
	one := c.call(within(t), "answers", `{"agent":"greeter","turn":"`+list.Answers[0].Turn+`"}`)
	if one.task == nil || *one.task.TurnID != list.Answers[0].Turn {
		t.Errorf("%+v", one)
	}

	var agents struct {
		Agents []struct {
			Name, State string
			Answers_uri string
			Done        int
		}
	}
	decode(t, c.call(within(t), "list_agents", `{}`), &agents)
	if len(agents.Agents) != 2 || agents.Agents[0].Name != "greeter" || agents.Agents[0].Done != 1 || agents.Agents[1].Answers_uri != "agentgraph:///agents/name%20with/answers" {
		t.Errorf("agents: %+v", agents)
	}
}

func decode(t *testing.T, r result, into any) {
	t.Helper()
	if r.failed {
		t.Fatal(r.text)
	}
	// The text is the same value.
	must(t, json.Unmarshal([]byte(r.text), into))
}

func TestCheckIsHandedOn(t *testing.T) {
	s, _ := newServer(t, true)
	c := connect(t, s)
	has(t, c.call(within(t), "check", `{"agent":"greeter"}`).text, "looked at greeter")
	has(t, c.call(within(t), "check", `{"regex":"a+","enforce":"validate"}`).text, `"model":"regex"`, `"engine":"validate"`)
	has(t, c.call(within(t), "check", `{}`).text, `"findings":[]`)
}

// lookingServer is one whose model looks into folders, and asks before.
func lookingServer(t *testing.T) (*Server, *serve.Service) {
	t.Helper()
	s, svc := newServer(t, true)
	must(t, os.WriteFile(filepath.Join(svc.Root(), "agentgraph.yaml"),
		[]byte("models:\n  fake: {script: tools.yaml}\ndefaults: {model: fake, tools: [{tool: list_folder, policy: ask}]}\n"), 0o666))
	must(t, os.WriteFile(filepath.Join(svc.Root(), "tools.yaml"),
		[]byte("constraints: none\ntools: true\nreplies:\n  - {match: look, tool_calls: [{name: list_folder, arguments: {path: .}}]}\n  - {tool_result: agents, text: I looked}\n"), 0o666))
	return s, svc
}

// A tool call of respond waits until approve decides about it.
func TestApprove(t *testing.T) {
	s, _ := lookingServer(t)
	c := connect(t, s)
	for _, tt := range []struct{ args, decided, text string }{
		{`"deny":false`, "approved", "I looked"},
		{`"deny":true`, "denied", "policy_denied"},
	} {
		ctx := within(t)
		answered := c.later(ctx, "respond", `{"prompt":"look"}`)
		waits := c.waiting(ctx)
		if waits.Tool != "list_folder" {
			t.Errorf("waiting: %+v", waits)
		}
		has(t, c.call(ctx, "approve", `{"id":"`+waits.ID+`",`+tt.args+`}`).text, `"decided":"`+tt.decided+`"`, `"waiting":[]`)
		has(t, (<-answered).text, tt.text)
	}
}

func TestModelsOfTheGraphAlone(t *testing.T) {
	s, _ := newServer(t, true)
	r := connect(t, s).call(within(t), "respond", `{"prompt":"x","model":"script:/etc/passwd"}`)
	if !r.failed || r.task.Error.Code != record.ArgumentsInvalid {
		t.Errorf("%+v", r)
	}
	has(t, r.text, "model", "fake, loose")
}
