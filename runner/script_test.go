package runner

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/tools/txtar"

	"agentgraph/internal/watch"
	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/turn"
)

// The scripts in testdata/watch are one per bug that others had. Each is a
// graph and, before it, commands, one per line:
//
//	run                      start the runner; until then nobody watches
//	mkdir P                  with parents
//	write P TEXT             create or replace in place; TEXT may have \n
//	append P TEXT            open, write, close
//	open P / put P TEXT / close P   a writer that keeps the file open
//	pause D                  let time pass, as a slow writer does
//	mv A B, cp A B, rm P, ln TARGET P, chmod MODE P, touch P
//	mkfifo P, mknod P, socket P
//	drop P TEXT              write a dotfile beside it and rename it into place
//	repeat N COMMAND         %d is the count
//	hold / release           turns wait, so that things happen meanwhile
//	started N                wait for the N-th turn to start
//	answers AGENT N          wait until all is quiet; AGENT has N answers
//	has AGENT TEXT           one of its answers is to TEXT
//	turns AGENT N            it has N records
//	file P TEXT              P holds TEXT
//	exists P                 there is a P
//	event KIND TEXT          wait for an event of this kind that has TEXT
//	refused AGENT TEXT       wait for a refusal that has TEXT
type script struct {
	t    *testing.T
	g    *testGraph
	cfg  Config
	log  *eventLog
	l    *live
	open map[string]*os.File

	mu   sync.Mutex
	held chan struct{}
}

func TestWatchScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/watch/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d scripts: %v", len(files), err)
	}
	modes := map[string]func(*Config){
		"notify": func(c *Config) { c.Watch = watch.Notify },
		"poll":   func(c *Config) { c.Watch = watch.Poll },
		// The kernel's queue of one event: nearly everything is lost.
		"tiny queue": func(c *Config) {
			c.Watch = watch.Notify
			c.source = func() (watch.Source, error) { return newLossy(1) }
		},
		"no watches": func(c *Config) { c.source = func() (watch.Source, error) { return fullSource{}, nil } },
	}
	for _, file := range files {
		for mode, set := range modes {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+mode, func(t *testing.T) {
				t.Parallel()
				runScript(t, file, set)
			})
		}
	}
}

func runScript(t *testing.T, file string, set func(*Config)) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for _, f := range a.Files {
		pairs = append(pairs, f.Name, string(f.Data))
	}
	s := &script{t: t, g: newGraph(t, pairs...), log: newLog(), open: map[string]*os.File{}}
	s.cfg = s.g.config(s.generate, s.log)
	s.cfg.Watch = watch.Auto
	set(&s.cfg)
	defer s.release()
	for n, line := range strings.Split(string(a.Comment), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.do(line); err != nil {
			t.Fatalf("%s:%d: %s: %v; events:\n%s", file, n+1, line, err, s.log)
		}
	}
}

func (s *script) generate(ctx context.Context, req *turn.Request) *record.Record {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		rec := failed(req, record.CodeCancelled, true)
		rec.Outcome.Status = record.Cancelled
		return rec
	}
	return echo(ctx, req)
}

func (s *script) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		close(s.held)
		s.held = nil
	}
}

func (s *script) do(line string) error {
	cmd, rest, _ := strings.Cut(line, " ")
	first, text, _ := strings.Cut(rest, " ")
	text = strings.ReplaceAll(text, `\n`, "\n")
	path := s.g.path(first)
	switch cmd {
	case "run":
		s.l = s.g.run(s.cfg, s.log)
	case "mkdir":
		return os.MkdirAll(path, 0o755)
	case "write":
		return os.WriteFile(path, []byte(text), 0o644)
	case "append", "open":
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		if cmd == "open" {
			s.open[first] = f
			return nil
		}
		_, err = f.WriteString(text)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		return err
	case "put":
		_, err := s.open[first].WriteString(text)
		return err
	case "close":
		return s.open[first].Close()
	case "pause":
		d, err := time.ParseDuration(first)
		time.Sleep(d)
		return err
	case "mv":
		return os.Rename(path, s.g.path(text))
	case "cp":
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(s.g.path(text), data, 0o644)
	case "rm":
		return os.RemoveAll(path)
	case "ln":
		return os.Symlink(strings.ReplaceAll(first, "ROOT", s.g.root), s.g.path(text))
	case "chmod":
		mode, err := strconv.ParseUint(first, 8, 32)
		if err != nil {
			return err
		}
		return os.Chmod(s.g.path(text), os.FileMode(mode))
	case "touch":
		now := time.Now()
		return os.Chtimes(path, now, now)
	case "mkfifo":
		return syscall.Mkfifo(path, 0o644)
	case "mknod":
		if os.Getuid() != 0 {
			return nil // a device needs root
		}
		return syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|3)
	case "socket":
		dir, err := os.Open(filepath.Dir(path))
		if err != nil {
			return err
		}
		defer dir.Close()
		ln, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
		if err == nil {
			s.t.Cleanup(func() { ln.Close() })
		}
		return err
	case "drop":
		hidden := filepath.Join(filepath.Dir(path), ".drop-"+filepath.Base(path))
		if err := os.WriteFile(hidden, []byte(text), 0o644); err != nil {
			return err
		}
		return os.Rename(hidden, path)
	case "repeat":
		n, err := strconv.Atoi(first)
		if err != nil {
			return err
		}
		for i := range n {
			if err := s.do(strings.ReplaceAll(text, "%d", strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case "hold":
		s.mu.Lock()
		s.held = make(chan struct{})
		s.mu.Unlock()
	case "release":
		s.release()
	case "started":
		n, err := strconv.Atoi(first)
		s.l.until(line, func() bool { return s.log.count(TurnStarted) >= n })
		return err
	case "answers":
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		s.settled(func() int { return len(s.g.outputs("agents/" + first + "/output")) }, n)
		if got := s.g.contents("agents/" + first + "/output"); len(got) != n {
			return fmt.Errorf("there are %d: %q", len(got), got)
		}
	case "turns":
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		ids, err := store.Open(s.g.path("agents/" + first + "/turns")).IDs()
		if len(ids) != n {
			return fmt.Errorf("there are %d", len(ids))
		}
		return err
	case "has":
		for _, c := range s.g.contents("agents/" + first + "/output") {
			if c == first+"("+text+")" {
				return nil
			}
		}
		return fmt.Errorf("there are %q", s.g.contents("agents/"+first+"/output"))
	case "file":
		data, err := os.ReadFile(path)
		if err == nil && string(data) != text {
			err = fmt.Errorf("it holds %q", data)
		}
		return err
	case "exists":
		_, err := os.Lstat(path)
		return err
	case "event", "refused":
		found := func() bool {
			for _, e := range s.log.all() {
				if cmd == "event" && string(e.Kind) == first && strings.Contains(e.Message+e.Hint, text) {
					return true
				}
				if cmd == "refused" && e.Kind == TurnRefused && e.Agent == first && strings.Contains(e.Error.Message, text) {
					return true
				}
			}
			return false
		}
		s.l.until(line, found)
	default:
		return fmt.Errorf("no such command")
	}
	return nil
}

// settled waits until there are n of something, and then for whatever might
// still come: in every mode that is the next poll.
func (s *script) settled(count func() int, n int) {
	s.t.Helper()
	s.l.until(fmt.Sprintf("%d, and then quiet", n), func() bool { return count() >= n })
	s.l.quiet()
	time.Sleep(3 * s.cfg.PollEvery)
	s.l.r.tick(true)
	s.l.quiet()
}

// lossy loses the events that do not fit into a small queue, and says so as
// the kernel does.
type lossy struct {
	watch.Source
	events chan fsnotify.Event
	errors chan error
	done   chan struct{}
}

func newLossy(queue int) (watch.Source, error) {
	src, err := watch.NewNotify()
	if err != nil {
		return nil, err
	}
	l := &lossy{src, make(chan fsnotify.Event, queue), make(chan error, 1), make(chan struct{})}
	go func() {
		for {
			select {
			case e := <-src.Events():
				select {
				case l.events <- e:
				default:
					select {
					case l.errors <- fsnotify.ErrEventOverflow:
					default:
					}
				}
			case err := <-src.Errors():
				l.errors <- err
			case <-l.done:
				return
			}
		}
	}()
	return l, nil
}

func (l *lossy) Events() <-chan fsnotify.Event { return l.events }
func (l *lossy) Errors() <-chan error          { return l.errors }
func (l *lossy) Close() error                  { close(l.done); return l.Source.Close() }

// fullSource has no watch left.
type fullSource struct{}

func (fullSource) Add(string) error              { return syscall.ENOSPC }
func (fullSource) Remove(string) error           { return nil }
func (fullSource) Events() <-chan fsnotify.Event { return nil }
func (fullSource) Errors() <-chan error          { return nil }
func (fullSource) Close() error                  { return nil }
