package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestListThreads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "threads")
	if list, err := ListThreads(dir); err != nil || list != nil {
		t.Fatal(list, err)
	}
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, name := range []string{"b", "a", "c"} {
		th, err := OpenThread(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := th.Append(Exchange{User: "first of " + name, Answer: "x"}); err != nil {
			t.Fatal(err)
		}
		if err := th.Append(Exchange{User: "second", Answer: "x"}); err != nil {
			t.Fatal(err)
		}
		if th.First() != "first of "+name {
			t.Errorf("%s begins with %q", name, th.First())
		}
		at := begin.Add(time.Duration(i/2) * time.Hour) // a and b at once
		if err := os.Chtimes(filepath.Join(dir, name+".jsonl"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{".x.lock": "", ".c.session.json": "torn", "empty.jsonl": "", "note.txt": "x", "..jsonl": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := ListThreads(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range list {
		names = append(names, l.Name)
	}
	if d := cmp.Diff([]string{"c", "a", "b"}, names); d != "" {
		t.Error(d)
	}
}

func TestSessionOfAThread(t *testing.T) {
	dir := t.TempDir()
	th, err := OpenThread(dir, "t")
	if err != nil {
		t.Fatal(err)
	}
	if th.First() != "" || th.Session() != (Session{}) {
		t.Errorf("nothing is there, and it says %q, %+v", th.First(), th.Session())
	}
	for _, want := range []Session{{Cwd: "/a"}, {Cwd: "/b", Mode: "rater"}} {
		if err := th.KeepSession(want); err != nil {
			t.Fatal(err)
		}
		if got := th.Session(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "t.jsonl"), []byte(`{"user":"`+strings.Repeat("x", 100<<10)+"\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if th.First() != "" {
		t.Error("a long line was read")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}
