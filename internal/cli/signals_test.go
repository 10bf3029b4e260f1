package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// program starts this test binary as agentgraph.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Args = append([]string{"agentgraph"}, args...)
	return cmd
}

// slowGraph is a graph with one input and a script whose answer takes its time.
func slowGraph(t *testing.T, delay string) (graph, model string) {
	t.Helper()
	graph = t.TempDir()
	in := filepath.Join(graph, "agents", "slow", "input")
	if err := os.MkdirAll(in, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(in, "a.txt"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "model.yaml")
	if err := os.WriteFile(file, []byte("default: {text: done at last, delay: "+delay+"}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return graph, "script:" + file
}

// heldGraph is a graph with one input and a model that answers when the file
// go is there.
func heldGraph(t *testing.T) (graph, release string) {
	t.Helper()
	graph, _ = slowGraph(t, "0s")
	release = filepath.Join(t.TempDir(), "go")
	src := "#!/bin/sh\ntest \"$1\" = --describe && exit\ncat >/dev/null\nuntil test -e '" + release + "'; do sleep 0.02; done\nprintf 'T:done at last\\nD\\n'\n"
	if err := os.WriteFile(filepath.Join(graph, "held"), []byte(src), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(graph, "agentgraph.yaml"), []byte("models: {held: {plugin: ./held}}\ndefaults: {model: held}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return graph, release
}

func TestInterrupt(t *testing.T) {
	for _, tt := range []struct {
		name    string
		args    []string
		signals int
		want    int
		answers int
		inputs  int
		says    string
	}{
		{"the first finishes the turn", []string{"run"}, 1, 0, 1, 1, ""},
		{"the second stops at once", []string{"run"}, 2, 130, 0, 1, "1 turn left for the next run"},
		{"the first leaves what has not begun", []string{"run"}, 1, 130, 1, 3, "2 turns left for the next run"},
		{"once, nothing left", []string{"run", "--once"}, 1, 0, 1, 1, "1 completed"},
		{"once, finished early", []string{"run", "--once"}, 1, 130, 1, 2, "1 turn left for the next run"},
		{"once, stopped at once", []string{"run", "--once"}, 2, 130, 0, 1, "1 turn left for the next run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			graph, release := heldGraph(t)
			for i := 1; i < tt.inputs; i++ {
				name := filepath.Join(graph, "agents", "slow", "input", "b"+strconv.Itoa(i)+".txt")
				if err := os.WriteFile(name, []byte(name), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			cmd := program(t, append(tt.args, "--json", graph)...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, out, `"event":"started"`)
			cmd.Process.Signal(os.Interrupt)
			// It says what it waits for, and what to do about that.
			lines := bufio.NewScanner(stderr)
			var said strings.Builder
			for lines.Scan() {
				fmt.Fprintln(&said, lines.Text())
				if strings.Contains(lines.Text(), "finishing slow  ") && strings.Contains(lines.Text(), ".txt") && strings.HasSuffix(lines.Text(), "; Ctrl-C again stops at once") {
					break
				}
			}
			if tt.signals == 2 {
				cmd.Process.Signal(os.Interrupt)
			} else if err := os.WriteFile(release, nil, 0o666); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() {
				fmt.Fprintln(&said, lines.Text())
			}
			code := exitCode(t, cmd.Wait())
			if !strings.Contains(said.String(), tt.says) || strings.Contains(said.String(), "again in") {
				t.Errorf("it says %q, want %q", said.String(), tt.says)
			}
			if code != tt.want {
				t.Errorf("exit code %d, want %d", code, tt.want)
			}
			entries, err := os.ReadDir(filepath.Join(graph, "agents", "slow", "output"))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if len(entries) != tt.answers {
				t.Errorf("%d answers, want %d: %v", len(entries), tt.answers, entries)
			}
			if tt.want == 0 {
				return
			}
			// What was stopped is done the next time.
			again := filepath.Join(t.TempDir(), "model.yaml")
			if err := os.WriteFile(again, []byte("default: {text: done}\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			b, err := program(t, "run", "--once", "--model", "script:"+again, graph).CombinedOutput()
			if err != nil || !bytes.Contains(b, []byte(strconv.Itoa(tt.inputs-tt.answers)+" completed")) {
				t.Errorf("the next run: %v\n%s", err, b)
			}
		})
	}
}

func TestInterruptRespond(t *testing.T) {
	graph, model := slowGraph(t, "10m")
	cmd := program(t, "respond", "--json", "--model", model, "hello")
	cmd.Dir = graph
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+graph)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The prompt is in the audit log when the model has it.
	waitForFile(t, filepath.Join(graph, "agentgraph", "log", "audit.jsonl"))
	cmd.Process.Signal(os.Interrupt)
	if code := exitCode(t, cmd.Wait()); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if !strings.Contains(out.String(), `"status":"cancelled"`) {
		t.Errorf("the record: %s", out.String())
	}
}

// waitFor reads lines until one holds text.
func waitFor(t *testing.T, r interface{ Read([]byte) (int, error) }, text string) {
	t.Helper()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			go func() { // so that the process never blocks on a full pipe
				for lines.Scan() {
				}
			}()
			return
		}
	}
	t.Fatalf("no line with %q", text)
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			return
		}
	}
}

// The opening of a FIFO that nobody writes to ends on no context.
func TestInterruptWhatHangs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs FIFOs")
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	cmd := program(t, "respond", "--model", "script:none.yaml", "--file", fifo)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for {
		select {
		case <-ended: // by the signal itself where it came before anybody watched
			return
		case <-tick.C:
			cmd.Process.Signal(os.Interrupt)
		case <-late:
			cmd.Process.Kill()
			t.Fatal("it does not end")
		}
	}
}
