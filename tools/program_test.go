package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentgraph/tools"
)

// tool writes an executable in the plug-in form whose body runs on a call.
func tool(t *testing.T, dir, name, body string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	src := `#!/bin/sh
case "$1" in
--describe) echo '{"name":"` + strings.TrimPrefix(name, "ag-tool-") + `","description":"d","parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}'; exit 0;;
--help) printf 'Use it well.\n\n'; exit 0;;
esac
` + body + "\n"
	if err := os.WriteFile(path, []byte(src), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, c tools.Config, at tools.Place) *tools.Offer {
	t.Helper()
	box := &tools.Box{}
	t.Cleanup(func() { box.Close() })
	offers, err := box.Open(t.Context(), []tools.Config{c}, at)
	if err != nil {
		t.Fatal(err)
	}
	return offers[0]
}

func call(o *tools.Offer, args string) tools.Result {
	return o.Run(context.Background(), tools.Call{ID: "1", Arguments: json.RawMessage(args)})
}

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TOOL_KEY", "s3cret-value")
	t.Setenv("OTHER_KEY", "not-for-tools")
	tests := []struct {
		name, body string
		config     tools.Config
		text       string // what the model reads
		failed     string // part of it; "" is no failure
		exit       int    // -1: none
	}{
		{name: "arguments on stdin", body: `cat; printf done`, text: `{"a":1}done`},
		{name: "no output", body: `cat >/dev/null`, text: ""},
		{name: "it does not read stdin", body: `echo hi`, text: "hi\n"},
		{name: "exit status", body: `echo out; echo "no such city" >&2; exit 3`, failed: "exit status 3: no such city", exit: 3},
		{name: "exit status, only stdout", body: `echo "sorry"; exit 1`, failed: "exit status 1: sorry", exit: 1},
		{name: "killed by itself", body: `kill -9 $$`, failed: "killed", exit: -1},
		{name: "time-out", body: `echo early; sleep 60`, config: tools.Config{Timeout: 300 * time.Millisecond}, failed: "ran longer than 300ms", exit: -1},
		{name: "cut", body: `printf '0123456789äöü'`, config: tools.Config{OutputBytes: 11}, text: "0123456789\n[cut after 10 of 16 bytes]"},
		{name: "not UTF-8", body: `printf 'a\377b\000c'`, text: "a\uFFFDb\uFFFDc"},
		{name: "working folder", body: `basename "$PWD"`, config: tools.Config{Dir: filepath.Join(dir, "work")}, text: "work\n"},
		{name: "environment", body: `echo "[$OTHER_KEY]"`, text: "[]\n"},
		{name: "listed variables are no part of results", body: `echo "key $TOOL_KEY"; echo "$TOOL_KEY" >&2; exit 2`, config: tools.Config{Env: []string{"TOOL_KEY"}},
			failed: "[TOOL_KEY]", exit: 2},
		{name: "listed variables reach the program", body: `echo "${#TOOL_KEY} $TOOL_KEY"`, config: tools.Config{Env: []string{"TOOL_KEY"}}, text: "12 [TOOL_KEY]\n"},
		{name: "endless output", body: `yes 0123456789012345678901234567890123456789`, failed: "more than 64 MiB", exit: -1},
	}
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name := "t" + strconv.Itoa(i)
			tool(t, dir, "ag-tool-"+name, tt.body)
			c := tt.config
			c.Command = []string{name}
			o := open(t, c, tools.Place{Dir: dir})
			if o.Name() != name || o.Guidance() != "Use it well." {
				t.Errorf("name %q, guidance %q", o.Name(), o.Guidance())
			}
			r := call(o, `{"a":1}`)
			if tt.failed == "" {
				if r.Failed != "" || r.Text != tt.text {
					t.Errorf("got %q, failed %q; want %q", r.Text, r.Failed, tt.text)
				}
				if r.Bytes == nil || len(r.SHA256) != 64 {
					t.Errorf("no size and hash of the whole: %+v", r)
				}
			} else if !strings.Contains(r.Failed, tt.failed) || !strings.HasPrefix(r.Text, "error: ") {
				t.Errorf("failed %q, text %q; want %q", r.Failed, r.Text, tt.failed)
			}
			if strings.Contains(r.Text+r.Failed, "s3cret") {
				t.Errorf("the secret got out: %+v", r)
			}
			switch {
			case tt.exit < 0 && r.ExitStatus != nil, tt.exit >= 0 && (r.ExitStatus == nil || *r.ExitStatus != tt.exit):
				t.Errorf("exit status %v, want %d", r.ExitStatus, tt.exit)
			}
		})
	}
}

// What a program starts ends with it, also when it holds the pipes.
func TestProgramLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	path := tool(t, dir, "spawn", `sleep 300 & echo $! >`+pid+`; echo started`)
	begin := time.Now()
	r := call(open(t, tools.Config{Command: []string{path}}, tools.Place{Dir: dir}), `{}`)
	if r.Failed != "" || r.Text != "started\n" {
		t.Errorf("%+v", r)
	}
	if d := time.Since(begin); d > 30*time.Second {
		t.Errorf("it took %v", d)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	for range 1500 {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(n) + "/stat")
		if errors.Is(err, os.ErrNotExist) && syscall.Kill(n, 0) != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d still runs", n)
}

func TestProgramsThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	write := func(name, src string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(src), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := tool(t, dir, "good", "true")
	tests := []struct {
		name    string
		configs []tools.Config
		want    string
	}{
		{"missing", []tools.Config{{Command: []string{"no-such-tool-here"}}}, "no program ag-tool-no-such-tool-here"},
		{"no JSON", []tools.Config{{Command: []string{write("a", "#!/bin/sh\necho hello\n")}}}, "--describe: not the JSON of a tool"},
		{"no name", []tools.Config{{Command: []string{write("b", "#!/bin/sh\necho '{}'\n")}}}, "gives no name"},
		{"a bad name", []tools.Config{{Command: []string{write("c", "#!/bin/sh\necho '{\"name\":\"a b\"}'\n")}}}, "no name for a tool"},
		{"parameters of another type", []tools.Config{{Command: []string{write("d", "#!/bin/sh\necho '{\"name\":\"a\",\"parameters\":{\"type\":\"string\"}}'\n")}}}, "arguments are an object"},
		{"describe fails", []tools.Config{{Command: []string{write("e", "#!/bin/sh\necho broken >&2; exit 1\n")}}}, "exit status 1: broken"},
		{"the same name twice", []tools.Config{{Command: []string{good}}, {Command: []string{good}}}, "already that of a tool"},
		{"no such built-in", []tools.Config{{Builtin: "reed_file"}}, "no such built-in"},
		{"outside a graph", []tools.Config{{Builtin: "read_file"}}, "outside one"},
		{"two kinds at once", []tools.Config{{Builtin: "read_file", Command: []string{good}}}, "one of a built-in, a command"},
		{"a policy that is none", []tools.Config{{Command: []string{good}, Policy: "maybe"}}, "allow, ask or deny"},
		{"a server that does not start", []tools.Config{{MCP: &tools.Server{Command: []string{write("f", "#!/bin/sh\necho 'no config' >&2; exit 1\n")}}}}, "no config"},
		{"an address that is none", []tools.Config{{MCP: &tools.Server{URL: "ftp://u:p@x/?k=v"}}}, "ftp://x/ is no http address"},
		{"a header without its variable", []tools.Config{{MCP: &tools.Server{URL: "http://127.0.0.1:1/", Headers: map[string]string{"Authorization": "NO_SUCH_VARIABLE"}}}}, "NO_SUCH_VARIABLE, which is not set"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			box := &tools.Box{}
			defer box.Close()
			_, err := box.Open(t.Context(), tt.configs, tools.Place{Dir: dir})
			var oe *tools.OpenError
			if !errors.As(err, &oe) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A program is asked what it is once, until it changes.
func TestDescriptionsAreKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "counted")
	src := "#!/bin/sh\n[ \"$1\" = --describe ] && echo x >>" + filepath.Join(dir, "count") + " && echo '{\"name\":\"counted\"}'\n"
	if err := os.WriteFile(path, []byte(src), 0o755); err != nil {
		t.Fatal(err)
	}
	box := &tools.Box{}
	defer box.Close()
	asked := func() int {
		if _, err := box.Open(t.Context(), []tools.Config{{Command: []string{path}}}, tools.Place{Dir: dir}); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(filepath.Join(dir, "count"))
		return strings.Count(string(b), "x")
	}
	if asked() != 1 || asked() != 1 {
		t.Error("it was asked twice")
	}
	if err := os.WriteFile(path, []byte(src+"# changed\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if n := asked(); n != 2 {
		t.Errorf("asked %d times after a change, want 2", n)
	}
}
