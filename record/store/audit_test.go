package store_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentgraph/record/store"
)

type event struct {
	Event string `json:"event"`
	Who   string `json:"who"`
	N     int    `json:"n"`
	Text  string `json:"text"`
}

func lines(t *testing.T, dir string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 2*store.MaxAuditLine)
	for sc.Scan() {
		out = append(out, sc.Text())
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAudit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	a := store.OpenAudit(dir, store.WithSync(), store.WithSecrets(`key-"12345678"`, "short"))
	for _, text := range []string{"a\nb <&>", `my key-"12345678" is short`} {
		if err := a.Append(event{Event: "prompt", Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	got := lines(t, dir)
	want := []string{
		`{"event":"prompt","who":"","n":0,"text":"a\nb <&>"}`,
		`{"event":"prompt","who":"","n":0,"text":"my [secret] is short"}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
	info, err := os.Stat(filepath.Join(dir, "audit.jsonl"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others can read it", info.Mode(), err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := a.Append(event{Event: "again"}); err != nil || len(lines(t, dir)) != 3 {
		t.Errorf("after Close: %v", err)
	}
}

func TestAuditLineIsBounded(t *testing.T) {
	dir := t.TempDir()
	a := store.OpenAudit(dir)
	defer a.Close()
	err := a.Append(event{Event: "prompt", Text: strings.Repeat("x", store.MaxAuditLine)})
	if !errors.Is(err, store.ErrAuditLine) {
		t.Errorf("got %v", err)
	}
	got := lines(t, dir)
	if len(got) != 1 || !strings.Contains(got[0], `"event":"oversized"`) || len(got[0]) > 200 {
		t.Errorf("got %.300q", got)
	}
}

// A line that a crash cut off does not swallow the next one, and a log that
// was moved away is begun anew.
func TestAuditAfterATornLine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	if err := os.WriteFile(path, []byte(`{"event":"pro`), 0o600); err != nil {
		t.Fatal(err)
	}
	a := store.OpenAudit(dir)
	defer a.Close()
	if err := a.Append(event{Event: "next"}); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, dir); len(got) != 2 || !json.Valid([]byte(got[1])) {
		t.Errorf("got %q", got)
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := a.Append(event{Event: "new"}); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, dir); len(got) != 1 || !strings.Contains(got[0], "new") {
		t.Errorf("got %q", got)
	}
}

// Several goroutines of several processes append; every line is whole and
// each writer's lines are in its order.
func TestAuditFromSeveralProcesses(t *testing.T) {
	const env, events, writers = "AGENTGRAPH_TEST_AUDIT", 200, 4
	appendAll := func(dir, who string) {
		a := store.OpenAudit(dir)
		defer a.Close()
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for n := range events {
					e := event{Event: "prompt", Who: fmt.Sprint(who, w), N: n, Text: strings.Repeat(who, 50*n)}
					if err := a.Append(e); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	if v := os.Getenv(env); v != "" {
		dir, who, _ := strings.Cut(v, "|")
		appendAll(dir, who)
		return
	}
	dir := t.TempDir()
	var children []*exec.Cmd
	for _, who := range []string{"p", "q"} {
		c := exec.Command(os.Args[0], "-test.run=^TestAuditFromSeveralProcesses$")
		c.Env = append(os.Environ(), env+"="+dir+"|"+who)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, c)
	}
	appendAll(dir, "r")
	for _, c := range children {
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	next := map[string]int{}
	all := lines(t, dir)
	for _, line := range all {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %.100q", err, line)
		}
		if e.N != next[e.Who] {
			t.Fatalf("%s: event %d after %d", e.Who, e.N, next[e.Who])
		}
		next[e.Who]++
	}
	if len(all) != 3*writers*events {
		t.Errorf("%d lines", len(all))
	}
}
