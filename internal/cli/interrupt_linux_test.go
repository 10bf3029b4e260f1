package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// One signal ends a command that waits for what never comes: the read of a
// FIFO or of stdin ends on no context.
func TestInterruptWaiting(t *testing.T) {
	graph, model := slowGraph(t, "10m")
	for _, tt := range []struct {
		name string
		args []string // FIFO stands for one
		sig  syscall.Signal
	}{
		{"prompt", []string{"respond", "--model", model, "--file", "FIFO"}, syscall.SIGINT},
		{"prompt, terminated", []string{"respond", "--json", "--model", model, "--file", "FIFO"}, syscall.SIGTERM},
		{"prompt on stdin", []string{"respond", "--model", model}, syscall.SIGINT},
		{"schema", []string{"respond", "--model", model, "--schema", "FIFO", "x"}, syscall.SIGINT},
		{"schema on stdin", []string{"respond", "--model", model, "--schema", "-", "x"}, syscall.SIGTERM},
		{"grammar", []string{"check", "--lark", "FIFO"}, syscall.SIGINT},
		{"schema file", []string{"check", "FIFO"}, syscall.SIGINT},
		{"input", []string{"render", "--graph", graph, "slow", "FIFO", "--model", model}, syscall.SIGINT},
		{"token", []string{"mcp", "--http", "127.0.0.1:0", "--token-file", "FIFO"}, syscall.SIGINT},
		// This one waits in a goroutine that nobody can stop.
		{"script", []string{"respond", "--model", "script:FIFO", "x"}, syscall.SIGINT},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := unix.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			stdin := true
			args := make([]string, len(tt.args))
			for i, a := range tt.args {
				args[i] = strings.ReplaceAll(a, "FIFO", fifo)
				stdin = stdin && args[i] == a
			}
			cmd := program(t, args...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+cmd.Dir)
			var said, out bytes.Buffer
			cmd.Stderr, cmd.Stdout = &said, &out
			reading := func() bool {
				// Only a FIFO that somebody reads can be opened so.
				fd, err := unix.Open(fifo, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
				if err == nil {
					t.Cleanup(func() { unix.Close(fd) })
				}
				return err == nil
			}
			if stdin {
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				defer w.Close()
				cmd.Stdin = r
				if _, err := w.WriteString("{"); err != nil {
					t.Fatal(err)
				}
				reading = func() bool {
					n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
					return err == nil && n == 0
				}
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			deadline := time.After(time.Minute)
			for tick := time.NewTicker(5 * time.Millisecond); !reading(); {
				select {
				case <-tick.C:
				case err := <-ended:
					t.Fatalf("it ended by itself: %v: %s", err, said.String())
				case <-deadline:
					cmd.Process.Kill()
					t.Fatal("it reads nothing")
				}
			}
			if err := cmd.Process.Signal(tt.sig); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if exitCode(t, err) != 130 || out.Len() > 0 || !strings.Contains(said.String(), "cancelled") {
					t.Errorf("%v; it says %q and prints %q", err, said.String(), out.String())
				}
			case <-deadline:
				cmd.Process.Kill()
				t.Errorf("it does not end; it says %q", said.String())
			}
		})
	}
}

// A FIFO that somebody writes is a file like another: process substitution.
func TestProcessSubstitution(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte("constraints: none\ndefault: {text: '\"yes\"'}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	line := `"$0" respond --enforce validate --model script:s.yaml --schema <(echo '{"enum": ["yes"]}') --file <(echo 'well?')`
	cmd := exec.Command(bash, "-c", line)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "agentgraph")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	cmd.Args = append(cmd.Args, link)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "\"yes\"\n" {
		t.Errorf("%v: %s", err, out)
	}
}
