package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Mode says how changes are found.
type Mode string

// Auto uses notifications and polls what cannot be watched; Notify never
// polls network file systems by itself; Poll never uses notifications.
const (
	Auto   Mode = "auto"
	Notify Mode = "notify"
	Poll   Mode = "poll"
)

// Dirty is a folder that may have changed.
type Dirty struct {
	Dir string
	// Names are what may have changed in it. Empty means all of it.
	Names []string
}

// Problem is a reason why a folder is polled, or an error of the watcher.
type Problem struct {
	Dir  string // empty: all folders
	Msg  string
	Hint string
}

func (p Problem) String() string {
	s := p.Msg
	if p.Dir != "" {
		s = p.Dir + ": " + s
	}
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// Source delivers events of the file system; *fsnotify.Watcher behind it.
type Source interface {
	Add(dir string) error
	Remove(dir string) error
	Events() <-chan fsnotify.Event
	Errors() <-chan error
	Close() error
}

// Config of a Watcher.
type Config struct {
	Mode Mode
	// Every is the pause between two polls; 0 means a second.
	Every time.Duration
	// Clock is the machine's when nil.
	Clock Clock
	// Source opens the source of events; nil means fsnotify.
	Source func() (Source, error)
	// Problem is told each problem once. It must not call the Watcher.
	Problem func(Problem)
}

// maxNames is how many names of one folder are kept apart before all of it is
// dirty: reading the folder is then cheaper.
const maxNames = 2048

// Watcher watches a set of folders. Its methods may be called from any
// goroutine.
type Watcher struct {
	cfg Config
	src Source // nil: everything is polled

	mu        sync.Mutex
	want      map[string]*folder
	guards    map[string]fileID // parents that are watched for the sake of a folder
	ancestors map[string]int    // every folder above a wanted one, counted
	dirty     map[string]map[string]bool
	told      map[string]bool

	ready chan struct{}
	done  chan struct{}
	wg    sync.WaitGroup
}

type folder struct {
	armed  bool
	polled bool
	id     fileID
}

// New starts a Watcher without folders.
func New(cfg Config) *Watcher {
	if cfg.Every <= 0 {
		cfg.Every = time.Second
	}
	if cfg.Clock == nil {
		cfg.Clock = systemClock{}
	}
	if cfg.Source == nil {
		cfg.Source = NewNotify
	}
	w := &Watcher{
		cfg: cfg, want: map[string]*folder{}, guards: map[string]fileID{}, ancestors: map[string]int{},
		dirty: map[string]map[string]bool{}, told: map[string]bool{},
		ready: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if cfg.Mode != Poll {
		src, err := cfg.Source()
		if err != nil {
			w.tell(limitProblem("", err))
		} else {
			w.src = src
			w.wg.Add(1)
			go w.events()
		}
	}
	w.wg.Add(1)
	go w.poll()
	return w
}

// Ready receives when Take has something to give.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Take returns what has become dirty since the last call, sorted by folder.
func (w *Watcher) Take() []Dirty {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]Dirty, 0, len(w.dirty))
	for dir, names := range w.dirty {
		d := Dirty{Dir: dir}
		for n := range names {
			d.Names = append(d.Names, n)
		}
		sort.Strings(d.Names)
		list = append(list, d)
	}
	clear(w.dirty)
	sort.Slice(list, func(i, j int) bool { return list[i].Dir < list[j].Dir })
	return list
}

// Add watches dir and reports it dirty, once. It may be missing.
func (w *Watcher) Add(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.want[dir] != nil {
		return
	}
	w.want[dir] = &folder{}
	for p := filepath.Dir(dir); ; p = filepath.Dir(p) {
		w.ancestors[p]++
		if p == filepath.Dir(p) {
			break
		}
	}
	w.arm(dir)
	w.markAll(dir)
}

// Remove stops watching dir.
func (w *Watcher) Remove(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.want[dir]
	if f == nil {
		return
	}
	delete(w.want, dir)
	delete(w.dirty, dir)
	for p := filepath.Dir(dir); ; p = filepath.Dir(p) {
		if w.ancestors[p]--; w.ancestors[p] == 0 {
			delete(w.ancestors, p)
			w.release(p, false)
		}
		if p == filepath.Dir(p) {
			break
		}
	}
	w.release(dir, f.armed)
}

// release ends the watch on dir unless something still needs it.
func (w *Watcher) release(dir string, watched bool) {
	_, guard := w.guards[dir]
	if w.want[dir] != nil || !watched && !guard {
		return
	}
	if w.ancestors[dir] > 0 {
		if id, ok := identify(dir); ok && !guard {
			w.guards[dir] = id
		}
		return
	}
	delete(w.guards, dir)
	if w.src != nil {
		_ = w.src.Remove(dir) // gone already when the folder is
	}
}

// Check compares every watch with the folder that is there now, and arms what
// has changed or could not be watched before. Call it now and then: it is
// what finds a change above the watched folders.
func (w *Watcher) Check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for dir := range w.want {
		w.recheck(dir)
	}
}

// Polled counts the folders that are polled, out of all.
func (w *Watcher) Polled() (polled, all int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.want {
		if f.polled {
			polled++
		}
	}
	return polled, len(w.want)
}

// Close ends the watching; it does not close the channel of Ready.
func (w *Watcher) Close() error {
	w.mu.Lock()
	select {
	case <-w.done:
		w.mu.Unlock()
		return nil
	default:
	}
	close(w.done)
	w.mu.Unlock()
	var err error
	if w.src != nil {
		err = w.src.Close()
	}
	w.wg.Wait()
	return err
}

func (w *Watcher) tell(p Problem) {
	key := p.String()
	if w.cfg.Problem != nil && !w.told[key] {
		w.told[key] = true
		w.cfg.Problem(p)
	}
}

// mark notes that name in dir may have changed.
func (w *Watcher) mark(dir, name string) {
	names, ok := w.dirty[dir]
	switch {
	case !ok:
		w.dirty[dir] = map[string]bool{name: true}
	case names == nil: // all of it already
	case len(names) >= maxNames:
		w.dirty[dir] = nil
	default:
		names[name] = true
	}
	w.signal()
}

func (w *Watcher) markAll(dir string) {
	w.dirty[dir] = nil
	w.signal()
}

func (w *Watcher) signal() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// arm puts a watch on dir, or sees to it that its coming is noticed.
func (w *Watcher) arm(dir string) {
	f := w.want[dir]
	f.armed, f.polled, f.id = false, false, fileID{}
	if w.src == nil {
		f.polled = true
		return
	}
	w.guard(dir)
	id, ok := identify(dir)
	if !ok {
		return
	}
	if w.cfg.Mode == Auto {
		if name := networkFS(dir); name != "" {
			f.polled = true
			f.id = id
			w.tell(Problem{Dir: dir, Msg: "a network file system (" + name + ") does not report changes of other machines; it is polled"})
			return
		}
	}
	switch err := w.src.Add(dir); {
	case err == nil:
		f.armed, f.id = true, id
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
	default:
		f.polled = true
		w.tell(limitProblem(dir, err))
	}
}

// guard watches the nearest folder above dir that exists. One that is made
// between the look and the watch is not reported: it looks again after the
// watch.
func (w *Watcher) guard(dir string) {
	for {
		below, p := dir, filepath.Dir(dir)
		var id fileID
		for ok := false; ; {
			if id, ok = identify(p); ok {
				break
			}
			delete(w.guards, p)
			if p == filepath.Dir(p) {
				return
			}
			below, p = p, filepath.Dir(p)
		}
		if f := w.want[p]; !(f != nil && f.armed && f.id == id) && w.guards[p] != id {
			if _, stale := w.guards[p]; stale {
				_ = w.src.Remove(p) // another folder of that name
			}
			err := w.src.Add(p)
			if errors.Is(err, os.ErrNotExist) {
				continue // gone since
			}
			if err != nil {
				w.tell(limitProblem(p, err))
				return // Check finds the change
			}
			w.guards[p] = id
		}
		if below == dir {
			return
		}
		if _, ok := identify(below); !ok {
			return
		}
	}
}

// recheck arms dir again when the folder under its name is another one than
// the watched, or is there at last.
func (w *Watcher) recheck(dir string) {
	f := w.want[dir]
	id, ok := identify(dir)
	if ok && f.armed && f.id == id {
		return
	}
	if !ok && !f.armed && f.id == (fileID{}) {
		if w.src != nil {
			w.guard(dir)
		}
		return
	}
	wasPolled := f.polled
	if f.armed {
		_ = w.src.Remove(dir)
	}
	w.arm(dir)
	if !(wasPolled && f.polled) {
		w.markAll(dir)
	}
}

func (w *Watcher) events() {
	defer w.wg.Done()
	for {
		select {
		case <-w.done:
			return
		case e, ok := <-w.src.Events():
			if !ok {
				return
			}
			w.mu.Lock()
			w.event(e)
			w.mu.Unlock()
		case err, ok := <-w.src.Errors():
			if !ok {
				return
			}
			w.mu.Lock()
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.tell(Problem{Msg: "watching: " + err.Error(), Hint: "all folders are read again"})
			}
			for dir := range w.want {
				w.recheck(dir)
				w.markAll(dir)
			}
			w.mu.Unlock()
		}
	}
}

func (w *Watcher) event(e fsnotify.Event) {
	path := filepath.Clean(e.Name)
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	if w.want[dir] != nil {
		w.mark(dir, name)
	}
	if e.Op&(fsnotify.Create|fsnotify.Remove|fsnotify.Rename) == 0 {
		return
	}
	// A watched folder, or one above it, came, went or was swapped.
	if w.want[path] != nil {
		w.moved(path)
	}
	if w.ancestors[path] > 0 {
		delete(w.guards, path)
		for d := range w.want {
			if strings.HasPrefix(d, path+string(filepath.Separator)) {
				w.moved(d)
			}
		}
	}
}

// moved arms a folder anew after an event of its own name.
func (w *Watcher) moved(dir string) {
	f := w.want[dir]
	if id, ok := identify(dir); ok && f.armed && f.id == id {
		// The same folder came back: its old watch may have gone with the event.
		if w.src.Add(dir) == nil {
			w.markAll(dir)
			return
		}
	}
	if f.armed {
		_ = w.src.Remove(dir)
	}
	w.arm(dir)
	w.markAll(dir)
}

func (w *Watcher) poll() {
	defer w.wg.Done()
	for {
		t, stop := w.cfg.Clock.Timer(w.cfg.Every)
		select {
		case <-w.done:
			stop()
			return
		case <-t:
		}
		w.mu.Lock()
		for dir, f := range w.want {
			if f.polled {
				w.markAll(dir)
			}
		}
		w.mu.Unlock()
	}
}

// limitProblem explains why a watch could not be had.
func limitProblem(dir string, err error) Problem {
	p := Problem{Dir: dir, Msg: fmt.Sprintf("no watch: %v; the folder is polled", err)}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		p.Dir = "" // one explanation for all folders
		p.Msg = "the limit of file system watches is reached; folders without a watch are polled"
		p.Hint = "raise it: sysctl -w fs.inotify.max_user_watches=" + raised("/proc/sys/fs/inotify/max_user_watches", 524288)
	case errors.Is(err, syscall.EMFILE) && dir == "":
		p.Msg = "no file system watcher can be had; folders are polled"
		p.Hint = "raise the limit: sysctl -w fs.inotify.max_user_instances=" + raised("/proc/sys/fs/inotify/max_user_instances", 512) + ", or ulimit -n"
	}
	return p
}
