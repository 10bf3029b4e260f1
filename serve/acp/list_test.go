package acp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/serve/acp"
)

type listed struct {
	Sessions []struct {
		SessionID, Cwd, Title string
		UpdatedAt             time.Time
	}
	NextCursor string
}

func (c *client) list(params string) listed {
	c.t.Helper()
	var l listed
	f := c.call("session/list", params)
	if err := json.Unmarshal(f.Result, &l); err != nil {
		c.t.Fatalf("%v: %s", err, f.raw)
	}
	return l
}

// Sessions that had an answer are listed, by every connection; so are threads
// that "respond" began.
func TestListSessions(t *testing.T) {
	root := graph(t, validateOnly)
	svc := service(t, root, talker)
	c := connect(t, acp.Config{Service: svc})
	if l := func() listed { c.start(`{}`); return c.list(`{}`) }(); len(l.Sessions) != 0 || l.Sessions == nil {
		t.Errorf("no session had an answer, and listed are %+v", l)
	}
	dir := t.TempDir()
	id, _ := c.sessionWith(dir)
	question := "who are you,\n  " + strings.Repeat("really ", 20) + "?"
	readPrompted(t, c.call("session/prompt", text(id, question, "")))
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 60 {
		path := filepath.Join(root, "threads", fmt.Sprintf("t%02d.jsonl", i))
		if err := os.WriteFile(path, []byte(`{"user":"hello","answer":"x"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := began.Add(time.Duration(i/2) * time.Minute)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	other := connect(t, acp.Config{Service: svc})
	other.call("initialize", `{"protocolVersion":1}`)
	all := other.list(`{}`)
	if len(all.Sessions) != 50 || all.NextCursor == "" {
		t.Fatalf("%d sessions, cursor %q", len(all.Sessions), all.NextCursor)
	}
	first := all.Sessions[0]
	if first.SessionID != id || first.Cwd != dir || !strings.HasPrefix(first.Title, "who are you, really really") || len(first.Title) > 90 || time.Since(first.UpdatedAt) > time.Minute {
		t.Errorf("%+v", first)
	}
	rest := other.list(fmt.Sprintf(`{"cursor":%q}`, all.NextCursor))
	seen := map[string]bool{}
	for _, s := range append(all.Sessions, rest.Sessions...) {
		if s.SessionID != id && (s.Cwd != svc.Root() || s.Title != "hello") {
			t.Errorf("%+v", s)
		}
		seen[s.SessionID] = true
	}
	if len(seen) != 61 || len(rest.Sessions) != 11 || rest.NextCursor != "" {
		t.Errorf("%d of 61 sessions, %d on the second page", len(seen), len(rest.Sessions))
	}
	if mine := other.list(fmt.Sprintf(`{"cwd":%q}`, dir)); len(mine.Sessions) != 1 || mine.Sessions[0].SessionID != id {
		t.Errorf("%+v", mine)
	}
	if none := other.list(`{"cwd":"/nowhere"}`); len(none.Sessions) != 0 {
		t.Errorf("%+v", none)
	}
	for _, wrong := range []string{`"x"`, `"MTIz"`, `"!"`, `17`} {
		if f := other.call("session/list", `{"cursor":`+wrong+`}`); f.Error == nil || f.Error.Code != -32602 {
			t.Errorf("cursor %s: %s", wrong, f.raw)
		}
	}
}

// A session is resumed in its mode and told nothing of; closed, it is gone from
// the connection and not from the disk.
func TestResumeAndClose(t *testing.T) {
	svc := service(t, graph(t, validateOnly), talker)
	c := connect(t, acp.Config{Service: svc})
	id := c.start(announcing)
	if f := c.call("session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":"talker"}`, id)); f.Error != nil {
		t.Fatal(f.raw)
	}
	readPrompted(t, c.call("session/prompt", text(id, "who?", "")))
	n, line := c.request("session/prompt", text(id, "stuck", ""))
	m, closing := c.request("session/close", fmt.Sprintf(`{"sessionId":%q}`, id))
	c.write(line, closing)
	if p := readPrompted(t, c.response(n)); p.StopReason != "cancelled" {
		t.Errorf("%+v", p)
	}
	if f := c.response(m); f.Error != nil {
		t.Error(f.raw)
	}
	for _, gone := range []string{"session/close", "session/prompt", "session/set_mode"} {
		params := text(id, "x", "")
		if gone == "session/set_mode" {
			params = fmt.Sprintf(`{"sessionId":%q,"modeId":"/"}`, id)
		}
		if f := c.call(gone, params); f.Error == nil || f.Error.Code != -32002 {
			t.Errorf("%s: %s", gone, f.raw)
		}
	}
	before := len(c.updates(id))
	f := c.call("session/resume", fmt.Sprintf(`{"sessionId":%q,"cwd":"/tmp"}`, id))
	var got modes
	if err := json.Unmarshal(f.Result, &got); err != nil || got.Modes == nil || got.Modes.CurrentModeID != "talker" {
		t.Errorf("%v: %s", err, f.raw)
	}
	if more := c.updates(id)[before:]; len(more) != 0 {
		t.Errorf("told %+v", more)
	}
	rec := readRecord(t, readPrompted(t, c.call("session/prompt", text(id, "who?", ""))))
	if d := cmp.Diff(4, len(rec.Request.Messages)); d != "" || *rec.Agent != "talker" {
		t.Errorf("messages: %s, agent %s", d, *rec.Agent)
	}
	if l := c.list(`{}`); len(l.Sessions) != 1 || l.Sessions[0].Cwd != "/tmp" {
		t.Errorf("%+v", l)
	}
	if f := c.call("session/resume", `{"sessionId":"nobody","cwd":"/tmp"}`); f.Error == nil || f.Error.Code != -32002 {
		t.Errorf("%s", f.raw)
	}
}
