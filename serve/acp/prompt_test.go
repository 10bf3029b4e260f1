package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/record"
	"agentgraph/serve/acp"
)

const talker = `
constraints: none
token_bytes: 1
replies:
  - match: who
    reasoning: "They ask who I am."
    text: "I am a script."
  - match: rate
    text: '{"z": 1, "a": 12345678901234567890.125}'
  - match: wrong
    text: '{"z": 1}'
  - match: long
    prefer: "x"
  - match: stuck
    text: late
    delay: 10m
  - match: broken
    error: {kind: failed, message: the line broke}
default: {text: "What?"}
`

// validateOnly lets a script without masks answer under a schema.
var validateOnly = map[string]string{
	"agentgraph.yaml":                         "models: {fake: {script: answers.yaml}}\ndefaults: {model: fake, output: {enforce: validate}}\n",
	"answers.yaml":                            "default: {text: x}\n",
	"agents/rater/system/role.md":             "You rate.",
	"agents/rater/system/.schema-r.json":      `{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"number"}},"required":["z","a"],"additionalProperties":false}`,
	"agents/talker/system/role.md":            "You talk.",
	"agents/lost/system/.schema-a.unknown":    "x",
	"agents/lost/system/role.md":              "You are lost.",
	"agents/writer/system/0.md":               "You write.",
	"agents/writer/agent.yaml":                "sampling: {max_tokens: 40}\n",
	"agents/writer/system/.schema-w.txt@lark": "start: /[a-z]+/\n",
}

func TestInitialize(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", talker), Version: "1.2.3"})
	f := c.call("initialize", `{"protocolVersion":7,"clientCapabilities":{}}`)
	var r struct {
		ProtocolVersion   int
		AgentInfo         struct{ Name, Version string }
		AgentCapabilities struct {
			LoadSession bool
			Meta        map[string]struct {
				Task   map[string]string
				Prompt []string
			} `json:"_meta"`
		}
	}
	if err := json.Unmarshal(f.Result, &r); err != nil {
		t.Fatal(err)
	}
	ours := r.AgentCapabilities.Meta["agentgraph/v1"]
	if r.ProtocolVersion != 1 || r.AgentInfo.Name != "agentgraph" || r.AgentInfo.Version != "1.2.3" || !r.AgentCapabilities.LoadSession ||
		ours.Task["schema_version"] != record.SchemaVersion || !strings.Contains(strings.Join(ours.Prompt, " "), "schema regex lark llg") {
		t.Errorf("%s", f.raw)
	}
}

func TestFreeText(t *testing.T) {
	for _, announced := range []bool{false, true} {
		t.Run(fmt.Sprintf("announced %v", announced), func(t *testing.T) {
			c := connect(t, acp.Config{Service: service(t, "", talker)})
			capabilities := `{}`
			if announced {
				capabilities = announcing
			}
			id := c.start(capabilities)
			p := readPrompted(t, c.call("session/prompt", text(id, "who are you?", "")))
			if p.StopReason != "end_turn" {
				t.Errorf("stop reason %s", p.StopReason)
			}
			list := c.updates(id)
			if said(list, "agent_message_chunk") != "I am a script." || said(list, "agent_thought_chunk") != "They ask who I am." {
				t.Errorf("said %s", c.dump())
			}
			if list[0].Update.SessionUpdate != "agent_thought_chunk" {
				t.Errorf("the answer came before the thought")
			}
			if !announced {
				if strings.Contains(strings.Join(strings.Split(c.dump(), "\n")[1:], "\n"), "agentgraph/v1") {
					t.Errorf("metadata for a client that did not ask:\n%s", c.dump())
				}
				return
			}
			if err := record.Check(p.Meta.Ours.Task); err != nil {
				t.Error(err)
			}
			rec := readRecord(t, p)
			answer, ok := rec.Answer()
			if !ok || answer != "I am a script." || *rec.SessionID != id {
				t.Errorf("the record has %q, session %v", answer, rec.SessionID)
			}
			last := 0
			for _, u := range list {
				if u.Meta.Ours == nil || u.Meta.Ours.TurnID != *rec.TurnID || u.Meta.Ours.Tokens < last {
					t.Errorf("metadata %+v after %d tokens of %s", u.Meta.Ours, last, *rec.TurnID)
					break
				}
				last = u.Meta.Ours.Tokens
			}
			if last != 14+18 && last != 14 {
				t.Errorf("%d tokens were told", last)
			}
		})
	}
}

func readRecord(t *testing.T, p prompted) *record.Record {
	t.Helper()
	if p.Meta.Ours == nil {
		t.Fatal("the response has no record")
	}
	var rec record.Record
	if err := json.Unmarshal(p.Meta.Ours.Task, &rec); err != nil {
		t.Fatal(err)
	}
	return &rec
}

// A prompt's metadata shapes its answer. The schema's bytes are kept as they
// came, the text is sent whole, and nothing of it stays in the session.
func TestSchemaOfAPrompt(t *testing.T) {
	const schema = `{"type": "object", "properties": {"z": {"type": "integer"}, "a": {"type": "number"}}, "required": ["z", "a"]}`
	c := connect(t, acp.Config{Service: service(t, "", talker)})
	id := c.start(announcing)
	p := readPrompted(t, c.call("session/prompt", text(id, "rate it", `{"other":1,"agentgraph/v1":{"schema":`+schema+`,"enforce":"validate"}}`)))
	rec := readRecord(t, p)
	const answer = `{"z": 1, "a": 12345678901234567890.125}`
	if got, _ := rec.Answer(); got != answer || rec.OutputValidation.Status != record.Valid || p.StopReason != "end_turn" {
		t.Errorf("%s: %v %q", p.StopReason, rec.OutputValidation, got)
	}
	if rec.Request.Constraint.Source != schema {
		t.Errorf("the schema became %s", rec.Request.Constraint.Source)
	}
	chunks := 0
	for _, u := range c.updates(id) {
		switch u.Update.SessionUpdate {
		case "agent_message_chunk":
			chunks++
		case "session_info_update":
		default:
			t.Errorf("a %s", u.Update.SessionUpdate)
		}
	}
	if chunks != 1 || said(c.updates(id), "agent_message_chunk") != answer {
		t.Errorf("%d chunks:\n%s", chunks, c.dump())
	}

	// The next prompt is free, and knows what was said.
	rec = readRecord(t, readPrompted(t, c.call("session/prompt", text(id, "who?", ""))))
	var roles []string
	for _, m := range rec.Request.Messages {
		roles = append(roles, string(m.Role)+": "+m.Content)
	}
	if diff := cmp.Diff([]string{"user: rate it", "assistant: " + answer, "user: who?"}, roles); diff != "" || rec.Request.Constraint != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What keeps a turn from an answer: with our metadata it is in the record,
// otherwise it is the error of the request.
func TestNoAnswer(t *testing.T) {
	const order = `{"agentgraph/v1":{"schema":{"type":"object","required":["a"]},"enforce":"validate"}}`
	tests := []struct {
		name, prompt, meta string
		stop               string
		code               record.Code
		errorCode          int // for others; 0 is none
	}{
		{"refused schema", "rate", `{"agentgraph/v1":{"schema":{"properties":{"a":{"$ref":"https://example.org/x"}}}}}`, "refusal", record.SchemaRefused, -32602},
		{"invalid answer", "wrong", order, "refusal", record.OutputValidationFailed, -32603},
		{"cut off", "long", `{"agentgraph/v1":{"max_output_tokens":5}}`, "max_tokens", record.Truncated, 0},
		{"model fails", "broken", "", "refusal", record.ModelError, -32603},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t, acp.Config{Service: service(t, "", talker)})
			id := c.start(announcing)
			p := readPrompted(t, c.call("session/prompt", text(id, tt.prompt, tt.meta)))
			if rec := readRecord(t, p); p.StopReason != tt.stop || rec.Error == nil || rec.Error.Code != tt.code {
				t.Errorf("%s: %v", p.StopReason, rec.Error)
			}

			c = connect(t, acp.Config{Service: service(t, "", talker)})
			id = c.start(`{}`)
			f := c.call("session/prompt", text(id, tt.prompt, tt.meta))
			if tt.errorCode == 0 {
				if p := readPrompted(t, f); p.StopReason != tt.stop || p.Meta.Ours != nil {
					t.Errorf("%s", f.raw)
				}
				return
			}
			var e record.Error
			if f.Error == nil || f.Error.Code != tt.errorCode || json.Unmarshal(f.Error.Data, &e) != nil || e.Code != tt.code || f.Error.Message != e.Error() {
				t.Errorf("%s", f.raw)
			}
			if said(c.updates(id), "agent_message_chunk") != "" {
				t.Errorf("text of a turn without an answer:\n%s", c.dump())
			}
			if f := c.call("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":"/tmp","mcpServers":[]}`, id)); f.Error != nil || len(c.updates(id)) > 0 {
				t.Errorf("the session keeps what was no answer: %s", c.dump())
			}
		})
	}
}

func TestWrongPrompts(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", talker)})
	id := c.start(announcing)
	block := func(b string) string { return fmt.Sprintf(`{"sessionId":%q,"prompt":[%s]}`, id, b) }
	tests := []struct {
		name, params, says string
		code               int
	}{
		{"no session", text("nobody", "x", ""), "there is no session", -32002},
		{"no prompt", fmt.Sprintf(`{"sessionId":%q}`, id), "Invalid params", -32602},
		{"nothing", `[]`, "Invalid params", -32602},
		{"empty", text(id, " \n", ""), "prompt: it is empty", -32602},
		{"image", block(`{"type":"image","data":"AA==","mimeType":"image/png"}`), "block 1 is not text", -32602},
		{"blob", block(`{"type":"text","text":"x"},{"type":"resource","resource":{"uri":"file:///x","blob":"AA=="}}`), "block 2 is not text", -32602},
		{"unknown block", block(`{"type":"song","text":"x"}`), "block 1 is not text", -32602},
		{"unknown member", text(id, "x", `{"agentgraph/v1":{"shema":{}}}`), "shema", -32602},
		{"not an object", text(id, "x", `{"agentgraph/v1":"schema"}`), "_meta", -32602},
		{"schema as text", text(id, "x", `{"agentgraph/v1":{"schema":"{}"}}`), "schema: give a JSON object", -32602},
		{"two promises", text(id, "x", `{"agentgraph/v1":{"schema":{},"regex":"a"}}`), "schema, regex", -32602},
		{"empty regex", text(id, "x", `{"agentgraph/v1":{"regex":""}}`), "regex: it is empty", -32602},
		{"regex of another type", text(id, "x", `{"agentgraph/v1":{"regex":7}}`), "_meta: agentgraph/v1: regex: a JSON number", -32602},
		{"enforce", text(id, "x", `{"agentgraph/v1":{"enforce":"maybe"}}`), "enforce", -32602},
	}
	for _, tt := range tests {
		f := c.call("session/prompt", tt.params)
		if f.Error == nil || f.Error.Code != tt.code || !strings.Contains(f.Error.Message, tt.says) {
			t.Errorf("%s: %s", tt.name, f.raw)
		}
	}
	if f := c.call("session/dance", `{}`); f.Error == nil || f.Error.Code != -32601 {
		t.Errorf("an unknown method: %s", f.raw)
	}
	if got := c.updates(id); len(got) > 0 {
		t.Errorf("wrong prompts brought updates: %s", c.dump())
	}
}

// Links stand in the text, embedded texts after it.
func TestPromptBlocks(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", talker)})
	id := c.start(announcing)
	f := c.call("session/prompt", strings.ReplaceAll(fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"who wrote "},
		{"type":"resource_link","name":"a.go","uri":"file:///x/a.go"},{"type":"text","text":" and "},
		{"type":"resource","resource":{"uri":"file:///x/b.go","mimeType":"text/plain","text":"package b\n\n"}},{"type":"text","text":"?"}]}`, id), "\n", ""))
	messages := readRecord(t, readPrompted(t, f)).Request.Messages
	const want = "who wrote [a.go](file:///x/a.go) and [b.go](file:///x/b.go)?\n\n## file:///x/b.go\n\npackage b"
	if got := messages[len(messages)-1].Content; got != want {
		t.Errorf("the prompt is %q, want %q", got, want)
	}
}
