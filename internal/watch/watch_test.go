package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// fakeClock hands out one timer at a time, which the test fires.
type fakeClock struct{ timers chan chan time.Time }

func newClock() *fakeClock { return &fakeClock{make(chan chan time.Time, 1)} }

func (c *fakeClock) Now() time.Time { return time.Unix(1e9, 0) }

func (c *fakeClock) Timer(time.Duration) (<-chan time.Time, func()) {
	t := make(chan time.Time, 1)
	c.timers <- t
	return t, func() {}
}

// tick fires the timer that runs, and waits for the next one: what the first
// one started is done then.
func (c *fakeClock) tick(t *testing.T) {
	t.Helper()
	select {
	case timer := <-c.timers:
		timer <- c.Now()
	case <-time.After(time.Minute):
		t.Fatal("no timer runs")
	}
	next := <-c.timers
	c.timers <- next
}

type problems struct {
	mu   sync.Mutex
	list []string
}

func (p *problems) add(x Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, x.String())
}

func (p *problems) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await takes until dir is reported with name; an empty name stands for all of
// it. Reports of all of it count for every name.
func await(t *testing.T, w *Watcher, dir, name string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		for _, d := range w.Take() {
			if d.Dir == dir && (len(d.Names) == 0 || name != "" && slices.Contains(d.Names, name)) {
				return
			}
		}
		select {
		case <-w.Ready():
		case <-deadline:
			t.Fatalf("%s/%s was not reported", dir, name)
		}
	}
}

func TestReportsAndArmsAgain(t *testing.T) {
	root := tempDir(t)
	in := filepath.Join(root, "agents", "a", "input")
	var told problems
	w := New(Config{Mode: Notify, Clock: newClock(), Problem: told.add})
	defer w.Close()
	w.Add(in) // not there yet
	await(t, w, in, "")

	put := func(name string) { must(t, os.WriteFile(filepath.Join(in, name), []byte("x"), 0o644)) }
	must(t, os.MkdirAll(in, 0o755))
	await(t, w, in, "")
	put("one")
	await(t, w, in, "one")

	// Deleted and made again, with its parents.
	must(t, os.RemoveAll(filepath.Join(root, "agents")))
	await(t, w, in, "")
	must(t, os.MkdirAll(in, 0o755))
	await(t, w, in, "")
	put("two")
	await(t, w, in, "two")

	// Swapped for another folder; the old one is not heard of any more.
	old := filepath.Join(root, "agents", "a", "old")
	must(t, os.MkdirAll(filepath.Join(root, "agents", "a", "next"), 0o755))
	must(t, os.Rename(in, old))
	must(t, os.Rename(filepath.Join(root, "agents", "a", "next"), in))
	await(t, w, in, "")
	put("three")
	await(t, w, in, "three")

	// A folder above it swapped.
	must(t, os.Rename(filepath.Join(root, "agents"), filepath.Join(root, "was")))
	must(t, os.MkdirAll(in, 0o755))
	await(t, w, in, "")
	put("four")
	await(t, w, in, "four")

	// Removed: nothing more is reported.
	w.Remove(in)
	put("five")
	time.Sleep(20 * time.Millisecond)
	if d := w.Take(); len(d) > 0 {
		t.Errorf("reported after Remove: %v", d)
	}
	if list := told.all(); len(list) > 0 {
		t.Errorf("problems: %q", list)
	}
}

func TestSiblingsShareAPrefix(t *testing.T) {
	root := tempDir(t)
	a, ab := filepath.Join(root, "a"), filepath.Join(root, "ab")
	must(t, os.Mkdir(a, 0o755))
	must(t, os.Mkdir(ab, 0o755))
	w := New(Config{Mode: Notify, Clock: newClock()})
	defer w.Close()
	w.Add(a)
	w.Add(ab)
	w.Take()
	must(t, os.RemoveAll(a))
	await(t, w, a, "")
	must(t, os.WriteFile(filepath.Join(ab, "x"), nil, 0o644))
	await(t, w, ab, "x")
}

// source is a Source whose events a test makes.
type source struct {
	mu     sync.Mutex
	events chan fsnotify.Event
	errors chan error
	limit  int // watches that may be had; -1: any number
	has    map[string]bool
}

func newSource(limit int) *source {
	return &source{events: make(chan fsnotify.Event), errors: make(chan error), limit: limit, has: map[string]bool{}}
}

func (s *source) Add(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit >= 0 && !s.has[dir] && len(s.has) >= s.limit {
		return syscall.ENOSPC
	}
	s.has[dir] = true
	return nil
}

func (s *source) Remove(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.has, dir)
	return nil
}

func (s *source) Events() <-chan fsnotify.Event { return s.events }
func (s *source) Errors() <-chan error          { return s.errors }
func (s *source) Close() error                  { return nil }

func TestWatchLimit(t *testing.T) {
	root := tempDir(t)
	src, clock := newSource(2), newClock()
	var told problems
	w := New(Config{Mode: Auto, Clock: clock, Source: func() (Source, error) { return src, nil }, Problem: told.add})
	defer w.Close()
	var dirs []string
	for i := range 4 {
		dir := filepath.Join(root, fmt.Sprint(i))
		must(t, os.Mkdir(dir, 0o755))
		dirs = append(dirs, dir)
		w.Add(dir)
	}
	if polled, all := w.Polled(); polled != 3 || all != 4 {
		t.Errorf("%d of %d folders are polled, want 3 of 4: one watch is on their parent", polled, all)
	}
	if list := told.all(); len(list) != 1 || !strings.Contains(list[0], "sysctl -w fs.inotify.max_user_watches=") {
		t.Errorf("problems: %q", list)
	}
	w.Take()
	clock.tick(t)
	var got []string
	for _, d := range w.Take() {
		got = append(got, d.Dir)
	}
	if !slices.Equal(got, dirs[1:]) {
		t.Errorf("polled %v, want %v", got, dirs[1:])
	}
	// The limit was raised: Check takes the watches.
	src.mu.Lock()
	src.limit = -1
	src.mu.Unlock()
	w.Check()
	if polled, _ := w.Polled(); polled != 0 {
		t.Errorf("%d folders are still polled", polled)
	}
}

func TestNoWatcherAtAll(t *testing.T) {
	dir := tempDir(t)
	clock := newClock()
	var told problems
	w := New(Config{Mode: Auto, Clock: clock, Source: func() (Source, error) { return nil, syscall.EMFILE }, Problem: told.add})
	defer w.Close()
	w.Add(dir)
	w.Take()
	clock.tick(t)
	if d := w.Take(); len(d) != 1 || d[0].Dir != dir {
		t.Errorf("polled %v", d)
	}
	if list := told.all(); len(list) != 1 || !strings.Contains(list[0], "max_user_instances") {
		t.Errorf("problems: %q", list)
	}
}

func TestOverflowAndErrors(t *testing.T) {
	a, b := tempDir(t), tempDir(t)
	src := newSource(-1)
	var told problems
	w := New(Config{Mode: Notify, Clock: newClock(), Source: func() (Source, error) { return src, nil }, Problem: told.add})
	defer w.Close()
	w.Add(a)
	w.Add(b)
	for _, err := range []error{fsnotify.ErrEventOverflow, errors.New("something odd")} {
		w.Take()
		src.errors <- err
		await(t, w, a, "")
		src.errors <- err
		await(t, w, b, "")
	}
	if list := told.all(); len(list) != 1 || !strings.Contains(list[0], "something odd") {
		t.Errorf("problems: %q", list)
	}
	// Names are kept apart up to a number, and then it is all of the folder.
	w.Take()
	for i := range maxNames + 10 {
		src.events <- fsnotify.Event{Name: filepath.Join(a, fmt.Sprint(i)), Op: fsnotify.Create}
	}
	src.events <- fsnotify.Event{Name: filepath.Join(b, "one"), Op: fsnotify.Write}
	src.errors <- errors.New("something odd") // all events before it were read
	await(t, w, a, "")
}

func TestPollMode(t *testing.T) {
	dir := tempDir(t)
	clock := newClock()
	w := New(Config{Mode: Poll, Clock: clock, Source: func() (Source, error) {
		t.Error("a source was opened")
		return nil, errors.New("no")
	}})
	defer w.Close()
	w.Add(dir)
	if d := w.Take(); len(d) != 1 {
		t.Errorf("added: %v", d)
	}
	for range 3 {
		clock.tick(t)
		if d := w.Take(); len(d) != 1 || d[0].Dir != dir || len(d[0].Names) != 0 {
			t.Errorf("polled: %v", d)
		}
	}
}

// A watch is added before the folder is reported, and many folders and files
// that come at once are all seen.
func TestNothingIsMissed(t *testing.T) {
	root := tempDir(t)
	w := New(Config{Mode: Notify, Clock: newClock()})
	defer w.Close()
	const dirs, files = 20, 50
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for i := range dirs {
		dir := filepath.Join(root, fmt.Sprint(i))
		w.Add(dir)
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Error(err)
			}
			for j := range files {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(j)), nil, 0o644); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	deadline := time.After(time.Minute)
	for {
		for _, d := range w.Take() {
			names := d.Names
			if len(names) == 0 {
				entries, _ := os.ReadDir(d.Dir)
				for _, e := range entries {
					names = append(names, e.Name())
				}
			}
			for _, n := range names {
				if filepath.Dir(d.Dir) == root {
					seen[filepath.Join(d.Dir, n)] = true
				}
			}
		}
		if len(seen) == dirs*files {
			break
		}
		select {
		case <-w.Ready():
		case <-deadline:
			t.Fatalf("%d of %d files were seen", len(seen), dirs*files)
		}
	}
	wg.Wait()
}
