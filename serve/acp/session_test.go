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

type modes struct {
	Modes *struct {
		CurrentModeID  string
		AvailableModes []struct{ ID, Name, Description string }
	}
}

// The agents of the graph are the session's modes. An agent that cannot run
// says so, and answers with a refusal.
func TestModes(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, graph(t, validateOnly), talker), Agent: "talker"})
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
	f := c.call("session/new", `{"cwd":"/tmp","mcpServers":[]}`)
	var made struct {
		SessionID string
		modes
	}
	if err := json.Unmarshal(f.Result, &made); err != nil || made.Modes == nil {
		t.Fatalf("%v: %s", err, f.raw)
	}
	var ids []string
	about := map[string]string{}
	for _, m := range made.Modes.AvailableModes {
		ids = append(ids, m.ID)
		about[m.ID] = m.Description
	}
	if diff := cmp.Diff([]string{"/", "lost", "rater", "talker", "writer"}, ids); diff != "" || made.Modes.CurrentModeID != "talker" {
		t.Errorf("current %s, modes (-want +got):\n%s", made.Modes.CurrentModeID, diff)
	}
	if !strings.Contains(about["rater"], ".schema-r.json") || !strings.Contains(about["lost"], "cannot run") || about["talker"] != "free text" {
		t.Errorf("%v", about)
	}
	ask := func(mode, prompt string) *record.Record {
		t.Helper()
		if f := c.call("session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":%q}`, made.SessionID, mode)); f.Error != nil {
			t.Fatal(f.raw)
		}
		return readRecord(t, readPrompted(t, c.call("session/prompt", text(made.SessionID, prompt, ""))))
	}
	if rec := ask("rater", "rate it"); rec.OutputValidation.Status != record.Valid || *rec.Agent != "rater" || rec.Request.Messages[0].Content[:9] != "You rate." {
		t.Errorf("rater: %+v", rec.OutputValidation)
	}
	if rec := ask("/", "who?"); rec.Agent != nil || rec.Request.Messages[0].Role == "system" {
		t.Errorf("no agent: %+v", rec.Request.Messages)
	}
	if rec := ask("lost", "who?"); rec.Outcome != nil || rec.Error == nil {
		t.Errorf("lost: %+v", rec.Error)
	}
	for _, wrong := range []string{"nobody", "", "../rater"} {
		if f := c.call("session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":%q}`, made.SessionID, wrong)); f.Error == nil || f.Error.Code != -32602 {
			t.Errorf("mode %q: %s", wrong, f.raw)
		}
	}
	if f := c.call("session/set_mode", `{"sessionId":"nobody","modeId":"/"}`); f.Error == nil || f.Error.Code != -32002 {
		t.Errorf("no session: %s", f.raw)
	}
}

func TestNoSuchAgent(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, graph(t, validateOnly), talker), Agent: "nobody"})
	if err := <-c.ended; err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("%v", err)
	} else {
		c.ended <- err
	}
}

// A session is a thread: another connection finds what was said, in order, and
// goes on with it.
func TestLoadSession(t *testing.T) {
	svc := service(t, graph(t, validateOnly), talker)
	first := connect(t, acp.Config{Service: svc})
	id := first.start(`{}`)
	for _, q := range []string{"who are you?", "rate it"} {
		readPrompted(t, first.call("session/prompt", text(id, q, "")))
	}
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	c := connect(t, acp.Config{Service: svc})
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
	load := fmt.Sprintf(`{"sessionId":%q,"cwd":"/tmp","mcpServers":[]}`, id)
	f := c.call("session/load", load)
	var m modes
	if err := json.Unmarshal(f.Result, &m); err != nil || m.Modes == nil || m.Modes.CurrentModeID != "/" {
		t.Errorf("%v: %s", err, f.raw)
	}
	var heard []string
	for _, u := range c.updates(id) {
		heard = append(heard, strings.TrimSuffix(u.Update.SessionUpdate, "_message_chunk")+": "+u.text())
	}
	want := []string{"user: who are you?", "agent: I am a script.", "user: rate it", `agent: {"z": 1, "a": 12345678901234567890.125}`}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rec := readRecord(t, readPrompted(t, c.call("session/prompt", text(id, "who?", ""))))
	if n := len(rec.Request.Messages); n != 5 {
		t.Errorf("the next prompt has %d messages", n)
	}
	past, err := svc.Exchanges(id, 0)
	if err != nil || len(past) != 3 {
		t.Errorf("the thread has %d exchanges, %v", len(past), err)
	}
	for _, wrong := range []string{"nobody", "../threads/x", "", strings.Repeat("x", 200)} {
		f := c.call("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":"/tmp","mcpServers":[]}`, wrong))
		if f.Error == nil || f.Error.Code != -32002 {
			t.Errorf("session %q: %s", wrong, f.raw)
		}
	}
}
