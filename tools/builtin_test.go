package tools_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentgraph/tools"
)

// graph makes a small graph with something outside it.
func graph(t *testing.T) (root string, at tools.Place) {
	t.Helper()
	top := t.TempDir()
	root = filepath.Join(top, "g")
	for name, text := range map[string]string{
		"outside.txt": "out", "g/agents/a/system/p.md": "prompt", "g/docs/x.txt": "0123456789äz", "g/docs/bin": "\xff\x00",
		"g/.agentgraph/ledger.db": "secret", "g/.env": "KEY=1", "g/agents/b/input/.keep": "",
	} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../outside.txt", filepath.Join(root, "docs/link")); err != nil {
		t.Fatal(err)
	}
	return root, tools.Place{
		Root: root, Dir: filepath.Join(root, "agents/a"), Notes: filepath.Join(root, "agents/a/notes"),
		Peers: []tools.Peer{{Name: "b", Input: filepath.Join(root, "agents/b/input"), MaxHops: 2}},
	}
}

func TestReading(t *testing.T) {
	root, at := graph(t)
	tests := []struct{ builtin, dir, args, text, failed string }{
		{builtin: "read_file", args: `{"path":"docs/x.txt"}`, text: "0123456789äz"},
		{builtin: "read_file", args: `{"path":"./docs//x.txt"}`, text: "0123456789äz"},
		{builtin: "read_file", args: `{"path":"docs/x.txt","offset":8}`, text: "89äz"},
		{builtin: "read_file", args: `{"path":"docs/x.txt","offset":11}`, text: "z"},
		{builtin: "read_file", args: `{"path":"docs/x.txt","offset":99}`, failed: "behind its end"},
		{builtin: "read_file", args: `{"path":"../outside.txt"}`, failed: "no '..'"},
		{builtin: "read_file", args: `{"path":"/etc/passwd"}`, failed: "paths are relative"},
		{builtin: "read_file", args: `{"path":"docs/link"}`, failed: "docs/link"},
		{builtin: "read_file", args: `{"path":".agentgraph/ledger.db"}`, failed: "does not exist"},
		{builtin: "read_file", args: `{"path":".env"}`, failed: "does not exist"},
		{builtin: "read_file", args: `{"path":"docs"}`, failed: "is a folder"},
		{builtin: "read_file", args: `{"path":"docs/bin"}`, failed: "is not text"},
		{builtin: "read_file", args: `{"path":"no"}`, failed: "no does not exist"},
		{builtin: "read_file", args: `{"file":"x"}`, failed: "not as described"},
		{builtin: "read_file", dir: "docs", args: `{"path":"x.txt"}`, text: "0123456789äz"},
		{builtin: "read_file", dir: "docs", args: `{"path":"agents/a/system/p.md"}`, failed: "does not exist"},
		{builtin: "list_folder", args: `{"path":"."}`, text: "agents/\ndocs/\n"},
		{builtin: "list_folder", args: `{"path":"docs"}`, text: "bin (2 bytes)\nlink\nx.txt (13 bytes)\n"},
		{builtin: "list_folder", args: `{"path":"agents/b/input"}`, text: "the folder is empty"},
		{builtin: "list_folder", args: `{"path":".."}`, failed: "no '..'"},
	}
	for _, tt := range tests {
		c := tools.Config{Builtin: tt.builtin}
		if tt.dir != "" {
			c.Dir = filepath.Join(root, tt.dir)
		}
		r := call(open(t, c, at), tt.args)
		if tt.failed == "" && (r.Text != tt.text || r.Failed != "") || tt.failed != "" && !strings.Contains(r.Failed, tt.failed) {
			t.Errorf("%s %s in %q: %q, failed %q; want %q, failed %q", tt.builtin, tt.args, tt.dir, r.Text, r.Failed, tt.text, tt.failed)
		}
		if strings.Contains(r.Text+r.Failed, root) {
			t.Errorf("a place of this machine got out: %q", r.Failed)
		}
	}
}

func TestNotes(t *testing.T) {
	root, at := graph(t)
	o := open(t, tools.Config{Builtin: "write_note"}, at)
	for _, text := range []string{"first", "second ✓"} {
		r := call(o, `{"name":"todo.md","text":"`+text+`"}`)
		if r.Failed != "" || !strings.HasPrefix(r.Text, "saved agents/a/notes/todo.md") {
			t.Fatalf("%+v", r)
		}
		b, err := os.ReadFile(filepath.Join(root, "agents/a/notes/todo.md"))
		if err != nil || string(b) != text {
			t.Errorf("%q, %v", b, err)
		}
	}
	for _, name := range []string{"../x", ".hidden", "a/b", "", "agent.yaml/../../x"} {
		args, _ := json.Marshal(map[string]string{"name": name, "text": "x"})
		if r := call(o, string(args)); r.Failed == "" {
			t.Errorf("%q was written: %s", name, r.Text)
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, "agents/a/notes"))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestMessages(t *testing.T) {
	root, at := graph(t)
	o := open(t, tools.Config{Builtin: "send_message"}, at)
	send := func(args string, hops int) tools.Result {
		return o.Run(context.Background(), tools.Call{Arguments: json.RawMessage(args), From: tools.Caller{Agent: "a", TurnID: "0191-t1", Hops: hops}})
	}
	input := filepath.Join(root, "agents/b/input")
	files := func() []string {
		m, err := filepath.Glob(filepath.Join(input, "message-*"))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for range 2 { // the second attempt of a turn sends nothing twice
		if r := send(`{"to":"b","text":"please check"}`, 1); r.Failed != "" || r.Text != "sent to b (12 bytes)" {
			t.Fatalf("%+v", r)
		}
	}
	got := files()
	if len(got) != 1 {
		t.Fatalf("files: %q", got)
	}
	b, _ := os.ReadFile(got[0])
	if string(b) != "please check" {
		t.Errorf("%q", b)
	}
	sum := sha256.Sum256(b)
	if from, ok := tools.SentBy(filepath.Base(got[0]), hex.EncodeToString(sum[:])); !ok || from != "0191-t1" {
		t.Errorf("sent by %q, %v", from, ok)
	}
	if _, ok := tools.SentBy(filepath.Base(got[0]), strings.Repeat("0", 64)); ok {
		t.Error("another content counts as sent")
	}
	for _, tt := range []struct {
		args string
		hops int
		want string
	}{
		{`{"to":"b","text":"too far"}`, 2, "at most 2"},
		{`{"to":"c","text":"x"}`, 0, `no agent is called "c"; there are b`},
		{`{"to":"b","text":"  "}`, 0, "empty"},
	} {
		if r := send(tt.args, tt.hops); !strings.Contains(r.Failed, tt.want) {
			t.Errorf("%s at %d hops: %+v", tt.args, tt.hops, r)
		}
	}
	if n := len(files()); n != 1 {
		t.Errorf("%d files", n)
	}
	entries, _ := os.ReadDir(input)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			t.Errorf("%s is left behind", e.Name())
		}
	}
}
