package output

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The test binary started again with this variable publishes and ends.
const publisherEnv = "AGENTGRAPH_TEST_PUBLISHER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(publisherEnv); spec != "" {
		if err := publisher(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// publisher is one process of TestProcesses. It prints one line per answer:
// the path, and the text that must stand there.
func publisher(spec string) error {
	part := strings.SplitN(spec, "|", 5)
	format, ext, dir := part[2], part[3], part[4]
	goroutines, err := strconv.Atoi(part[0])
	if err != nil {
		return err
	}
	each, err := strconv.Atoi(part[1])
	if err != nil {
		return err
	}
	p, err := NewPattern(format, ext)
	if err != nil {
		return err
	}
	f := Open(dir)
	var wait sync.WaitGroup
	var mu sync.Mutex
	var first error
	for g := range goroutines {
		wait.Go(func() {
			for i := range each {
				text := fmt.Sprintf("process %d goroutine %d answer %d", os.Getpid(), g, i)
				path, err := f.Publish(context.Background(), p, time.Now(), []byte(text))
				mu.Lock()
				if err != nil && first == nil {
					first = err
				}
				fmt.Printf("%s\t%s\n", path, text)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return first
}

// Publishers in two processes never collide, overwrite, leave a gap or a
// temporary file.
func TestProcesses(t *testing.T) {
	processes, goroutines, each := 2, 8, 500
	if testing.Short() {
		each = 50
	}
	for _, tt := range []struct{ format, ext string }{{"rating", "json"}, {"out-{timestamp}", "txt"}} {
		t.Run(tt.format, func(t *testing.T) {
			dir := t.TempDir()
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			outputs := make([]string, processes)
			var wait sync.WaitGroup
			for i := range processes {
				wait.Go(func() {
					cmd := exec.Command(exe)
					cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d|%d|%s|%s|%s", publisherEnv, goroutines, each, tt.format, tt.ext, dir))
					cmd.Stderr = os.Stderr
					out, err := cmd.Output()
					if err != nil {
						t.Error(err)
					}
					outputs[i] = string(out)
				})
			}
			wait.Wait()

			total := processes * goroutines * each
			told := map[string]string{}
			for line := range strings.Lines(strings.Join(outputs, "")) {
				path, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				if other, ok := told[path]; ok {
					t.Errorf("%s was given twice: %q and %q", path, other, text)
				}
				told[path] = text
			}
			if len(told) != total {
				t.Errorf("%d answers were published, want %d", len(told), total)
			}
			for path, text := range told {
				if got, err := os.ReadFile(path); err != nil || string(got) != text {
					t.Errorf("%s holds %q, %v; want %q", path, got, err, text)
				}
			}
			p := mustPattern(tt.format, tt.ext)
			list := names(t, dir)
			for _, name := range list {
				n, ok := p.Turn(name)
				if !p.Match(name) || ok && n >= uint64(total) {
					t.Errorf("%s: a gap, or a file left behind", name)
				}
			}
			if len(list) != total {
				t.Errorf("%d files, want %d", len(list), total)
			}
		})
	}
}

// A process that dies in the middle leaves only a temporary file, which the
// next Sweep removes.
func TestProcessDies(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=4|1000000|rating|json|%s", publisherEnv, dir))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if _, err := os.Stat(filepath.Join(dir, "rating_20.json")); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if _, err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	list := names(t, dir)
	if len(list) < 21 {
		t.Fatalf("only %d answers before the end", len(list))
	}
	for i := range list {
		path := filepath.Join(dir, fmt.Sprintf("rating_%d.json", i))
		if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), " answer ") {
			t.Errorf("%s holds %q, %v", path, b, err)
		}
	}
	if got := publish(t, Open(dir), rating, "x"); got != fmt.Sprintf("rating_%d.json", len(list)) {
		t.Errorf("next answer: %s", got)
	}
}
