//go:build unix

package server

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentgraph/internal/clienttest"
)

// setup is a server that is not started yet.
type setup struct {
	t     *testing.T
	cfg   Config
	port  string
	notes string
}

func prepare(t *testing.T, mode string) *setup {
	t.Helper()
	dir := t.TempDir()
	port := strconv.Itoa(clienttest.Port(t))
	s := &setup{t: t, port: port, notes: filepath.Join(dir, "notes")}
	s.cfg = Config{
		Model: "m", Command: []string{os.Args[0], "serve", mode, port, s.notes}, Env: []string{"GORACE", "SERVER_TEST_KEY"},
		URL: "http://127.0.0.1:" + port + "/v1", Startup: time.Minute, StateDir: filepath.Join(dir, "servers"),
		Supervisor: []string{os.Args[0], SupervisorCommand},
		grace:      time.Second, pause: func(int) time.Duration { return 10 * time.Millisecond },
	}
	return s
}

func (s *setup) open() *Server {
	s.t.Helper()
	srv, err := New(s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		srv.Close()
		for _, pid := range s.pids() {
			gone(s.t, pid)
		}
	})
	return srv
}

func (s *setup) noted() string {
	data, _ := os.ReadFile(s.notes)
	return string(data)
}

// pids are all processes that the server noted.
func (s *setup) pids() []int {
	var pids []int
	for line := range strings.Lines(s.noted()) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "pid "); ok {
			pid, _ := strconv.Atoi(p)
			pids = append(pids, pid)
		}
	}
	return pids
}

func (s *setup) die() {
	resp, err := http.Post("http://127.0.0.1:"+s.port+"/die", "", nil)
	if err == nil {
		resp.Body.Close()
	}
}

func alive(pid int) bool {
	if runtime.GOOS != "linux" {
		return syscall.Kill(pid, 0) == nil
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if !alive(pid) {
			return
		}
	}
	t.Errorf("process %d is still there", pid)
	syscall.Kill(pid, syscall.SIGKILL)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came: %s", what)
		}
	}
}

func TestStartAndStop(t *testing.T) {
	for _, mode := range []string{"plain", "loading", "models only", "key", "children", "deaf", "polite"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, mode)
			if mode == "polite" {
				s.cfg.grace = 30 * time.Second // it ends long before, but a busy machine takes its time
			}
			srv := s.open()
			if err := srv.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := srv.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := 1
			if mode == "children" && runtime.GOOS == "linux" {
				want = 3
			}
			pids := s.pids()
			if len(pids) != want {
				t.Errorf("%d processes were started, want %d", len(pids), want)
			}
			if err := srv.Close(); err != nil {
				t.Fatal(err)
			}
			for _, pid := range pids {
				if alive(pid) {
					t.Errorf("process %d outlived Close", pid)
				}
			}
			if polite := strings.Contains(s.noted(), "asked to end"); polite != (mode == "polite") {
				t.Errorf("asked to end: %v", polite)
			}
			if err := srv.Ready(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNothingIsStartedBeforeItIsAsked(t *testing.T) {
	s := prepare(t, "plain")
	if err := s.open().Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(s.pids()); n != 0 {
		t.Errorf("%d processes were started", n)
	}
}

func TestStartedAgainWhenItDies(t *testing.T) {
	s := prepare(t, "loading")
	srv := s.open()
	for n := 1; n <= 3; n++ {
		// The first time it dies is no fault: who asks waits. Later ones may be
		// told.
		eventually(t, "a server", func() bool { return srv.Ready(t.Context()) == nil && len(s.pids()) == n })
		s.die()
		eventually(t, "its end to be noticed", func() bool {
			srv.mu.Lock()
			defer srv.mu.Unlock()
			return srv.state != ready || len(s.pids()) > n
		})
		if n == 1 {
			if err := srv.Ready(t.Context()); err != nil {
				t.Errorf("after its first end: %v", err)
			}
		}
	}
}

func TestBroken(t *testing.T) {
	t.Setenv("SERVER_TEST_KEY", "sk-very-secret")
	s := prepare(t, "broken")
	var pauses []int
	hold := make(chan struct{})
	s.cfg.pause = func(n int) time.Duration {
		if pauses = append(pauses, n); len(pauses) < 4 {
			return 0
		}
		close(hold)
		return time.Hour
	}
	srv := s.open()
	err := srv.Ready(t.Context())
	var e *Error
	if !errors.As(err, &e) || !e.Retry || !strings.Contains(err.Error(), "the server ended (exit status 4): one") && !strings.Contains(err.Error(), "no such model; see ") {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(err.Error(), "[SERVER_TEST_KEY] no such model") || strings.Contains(err.Error(), "sk-very") || len(err.Error()) > 1000 {
		t.Errorf("the error is %v", err)
	}
	<-hold
	for i, n := range pauses {
		if n != i {
			t.Errorf("the pauses are for %v failures", pauses)
		}
	}
	eventually(t, "the state after a failure", func() bool { return errors.As(srv.Ready(t.Context()), &e) })
	for i, want := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause} {
		if got := pause(i); got != want {
			t.Errorf("the pause after %d failures is %v, want %v", i, got, want)
		}
	}
	if got := pause(1000); got != longestPause {
		t.Errorf("the longest pause is %v", got)
	}
}

func TestNotStarted(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(s *setup)
		want   string
		retry  bool
	}{
		{"no program", func(s *setup) { s.cfg.Command = []string{"no-such-program"} },
			"the server cannot be started: no-such-program: executable file not found in $PATH; install it, or correct server_command:", false},
		{"no file", func(s *setup) { s.cfg.Command = []string{"/no/such/file"} }, "/no/such/file: no such file or directory; install it", false},
		{"a folder", func(s *setup) { s.cfg.Command = []string{s.cfg.StateDir + "/.."} }, "the server cannot be started", true},
		{"never ready", func(s *setup) { s.cfg.Command[2], s.cfg.Startup = "never ready", 300*time.Millisecond },
			"the server did not answer at http://127.0.0.1:", true},
		{"address taken", func(s *setup) {
			l, err := net.Listen("tcp", "127.0.0.1:"+s.port)
			if err != nil {
				s.t.Fatal(err)
			}
			s.t.Cleanup(func() { l.Close() })
		}, " is taken by another process; stop it, take another port", true},
		{"no supervisor", func(s *setup) { s.cfg.Supervisor = []string{"/no/such/supervisor"} }, "the server's supervisor cannot be started", true},
		{"another supervisor", func(s *setup) { s.cfg.Supervisor = []string{os.Args[0], "-test.run=^$"} }, "the server's supervisor ended at once", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := prepare(t, "plain")
			s.cfg.pause = func(int) time.Duration { return time.Hour }
			tc.change(s)
			err := s.open().Ready(t.Context())
			var e *Error
			if !errors.As(err, &e) || e.Retry != tc.retry || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %s", err, tc.want)
			}
		})
	}
}

func TestReadyEndsWithItsContext(t *testing.T) {
	s := prepare(t, "never ready")
	srv := s.open()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := srv.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for url, want := range map[string]string{
		"http://127.0.0.1:8000/v1":    "",
		"http://localhost:8000":       "",
		"http://[::1]:8000/v1/":       "",
		"https://127.0.0.1/v1":        "",
		"http://192.168.1.5:8000/v1":  "on this machine",
		"http://example.org/v1":       "on this machine",
		"http://127.0.0.1.evil.net/":  "on this machine",
		"127.0.0.1:8000":              "no address",
		"unix:///run/x":               "no address",
		"http://:8000/v1":             "on this machine",
		"http://0.0.0.0:8000/v1":      "on this machine",
		"http://user:pw@127.0.0.1/v1": "",
	} {
		_, err := New(Config{Model: "m", Command: []string{"x"}, URL: url})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

// However suddenly the caller ends, nothing outlives it.
func TestCallerIsKilled(t *testing.T) {
	for _, mode := range []string{"plain", "children", "deaf"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, mode)
			cmd := exec.Command(os.Args[0], append([]string{"caller", s.cfg.URL, s.cfg.StateDir}, s.cfg.Command...)...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(out).ReadString('\n')
			if line != "ready\n" {
				cmd.Process.Kill()
				t.Fatalf("the caller says %q", line)
			}
			pids := s.pids()
			if len(pids) == 0 {
				t.Fatal("no process was noted")
			}
			cmd.Process.Signal(syscall.SIGKILL)
			cmd.Wait()
			for _, pid := range pids {
				gone(t, pid)
			}
		})
	}
}

func TestSupervisorIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel ends the server on Linux alone")
	}
	s := prepare(t, "plain")
	srv := s.open()
	if err := srv.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	server := s.pids()[0]
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(server) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	after := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	supervisor, _ := strconv.Atoi(after[1])
	syscall.Kill(supervisor, syscall.SIGKILL)
	gone(t, server)
	eventually(t, "another server", func() bool { return srv.Ready(t.Context()) == nil && len(s.pids()) == 2 })
}

func TestShared(t *testing.T) {
	s := prepare(t, "plain")
	first, second := s.open(), s.open()
	if err := first.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.pids()); n != 1 {
		t.Errorf("%d servers run", n)
	}
	other := *s
	other.cfg.Model, other.cfg.Command = "n", append([]string{"env"}, s.cfg.Command...)
	err := other.open().Ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), "is the address of the server that model m starts with another command") {
		t.Errorf("another command on that address: %v", err)
	}
	first.Close()
	eventually(t, "the second to start its own", func() bool { return len(s.pids()) == 2 })
	if err := second.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestLog(t *testing.T) {
	t.Setenv("SERVER_TEST_KEY", "sk-very-secret")
	s := prepare(t, "chatty")
	srv := s.open()
	if err := os.MkdirAll(s.cfg.StateDir, 0o755); err != nil {
		t.Fatal(err)
	}
	// What is in its place is not followed.
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Symlink(elsewhere, srv.Log()); err != nil {
		t.Fatal(err)
	}
	if err := srv.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv.Close()
	if _, err := os.Lstat(elsewhere); err == nil {
		t.Error("a link was followed")
	}
	var all string
	for _, path := range []string{srv.Log(), srv.Log() + ".1"} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > logBytes || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has %d bytes and mode %v", path, info.Size(), info.Mode())
		}
		data, _ := os.ReadFile(path)
		all += string(data)
	}
	if entries, _ := os.ReadDir(s.cfg.StateDir); len(entries) != 3 {
		t.Errorf("%d files", len(entries))
	}
	if strings.Contains(all, "sk-very") || !strings.Contains(all, "the key is [SERVER_TEST_KEY]") {
		t.Error("the key is in the log, or its place is not")
	}
}

func TestFileNames(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"m", "qwen2.5", "../../etc/passwd", "a/b", "a_b", ".hidden", "é", strings.Repeat("x", 300), strings.Repeat("x", 301), ""} {
		got := fileName(name)
		if strings.ContainsAny(got, "/\\") || strings.HasPrefix(got, ".") || len(got) > 110 {
			t.Errorf("%q is the file %q", name, got)
		}
		if was, ok := seen[got]; ok {
			t.Errorf("%q and %q are both %q", was, name, got)
		}
		seen[got] = name
	}
}
