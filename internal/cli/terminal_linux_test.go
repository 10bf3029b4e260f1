package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentgraph/record"
)

// terminal opens a pseudo-terminal: what is typed into person is read from tty,
// and what is written there a person sees.
func terminal(t *testing.T) (person, tty *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("this system gives no pseudo-terminal: ", err)
	}
	t.Cleanup(func() { person.Close() })
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skip("this system gives no pseudo-terminal: ", err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skip("this system gives no pseudo-terminal: ", err)
	}
	t.Cleanup(func() { tty.Close() })
	return person, tty
}

// respond asks the person at the terminal about a tool with policy: ask. The
// question shows what the model wrote, and none of it moves the cursor.
func TestRespondAsksAtTheTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"g/agentgraph.yaml":       "models: {m: {script: ../m.yaml}}\ndefaults: {model: m, tools: [{tool: read_file, policy: ask}]}\n",
		"g/note.txt":              "remember",
		"g/agents/a/system/p.txt": "x",
		"m.yaml":                  "tools: true\nconstraints: none\nreplies:\n  - {match: look, tool_calls: [{name: read_file, arguments: {path: \"note.txt\"}}]}\n  - {match: odd, tool_calls: [{name: read_file, arguments: {path: \"\\e[2Jx\\u202e\"}}]}\n  - {tool_result: remember, text: I looked}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		prompt, typed string
		code          int
		answer        string
	}{
		{"look", "y\n", 0, "I looked\n"},
		{"look", " YES \n", 0, "I looked\n"},
		{"look", "n\n", 1, ""},
		{"look", "\n", 1, ""},
		{"look", "yesterday\n", 1, ""},
		{"odd", "n\n", 1, ""},
	} {
		person, tty := terminal(t)
		var stdout bytes.Buffer
		done := make(chan int, 1)
		go func() {
			done <- Main(t.Context(), []string{"respond", "--graph", filepath.Join(dir, "g"), tt.prompt}, tty, &stdout, tty)
		}()
		seen := ""
		deadline := time.Now().Add(time.Minute)
		read := make([]byte, 4096)
		for !strings.Contains(seen, "[y/N]") {
			_ = person.SetReadDeadline(deadline)
			n, err := person.Read(read)
			if err != nil {
				t.Fatalf("%q: no question, but %q: %v", tt.prompt, seen, err)
			}
			seen += string(read[:n])
		}
		if _, err := person.WriteString(tt.typed); err != nil {
			t.Fatal(err)
		}
		code := <-done
		if code != tt.code || stdout.String() != tt.answer {
			t.Errorf("%q, %q: exit %d, %q; want %d, %q", tt.prompt, tt.typed, code, stdout.String(), tt.code, tt.answer)
		}
		if tt.prompt == "look" && !strings.Contains(seen, `run the tool read_file with {"path":"note.txt"}? [y/N]`) && !strings.Contains(seen, `run the tool read_file with {"path": "note.txt"}? [y/N]`) {
			t.Errorf("asked %q", seen)
		}
		if tt.prompt == "odd" && (strings.Contains(seen, "\x1b") || strings.Contains(seen, "\u202e")) {
			t.Errorf("raw on the terminal: %q", seen)
		}
		tty.Close()
		rest, _ := readAll(person)
		if tt.code == 1 && !strings.Contains(rest, string(record.CodePolicyDenied)) && !strings.Contains(rest, "not approved") {
			t.Errorf("%q: %q", tt.prompt, rest)
		}
	}
}

// readAll reads a pseudo-terminal to its end, which is an error there.
func readAll(f *os.File) (string, error) {
	var b bytes.Buffer
	_ = f.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := b.ReadFrom(f)
	return b.String(), err
}
