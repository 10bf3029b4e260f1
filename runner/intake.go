package runner

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentgraph/agents"
	"agentgraph/internal/watch"
	"agentgraph/record"
	"agentgraph/runner/internal/ledger"
)

// intake compares one input folder of one agent with what is known of it. One
// goroutine at a time works it; what comes meanwhile is noted and done by the
// same goroutine.
type intake struct {
	r   *Runner
	st  *agentState
	dir string // absolute
	rel string // relative to the graph

	// Guarded by Runner.mu.
	names   map[string]bool // to look at
	due     bool            // look at the files whose next look is due
	all     bool            // look at everything
	maybe   bool            // look at everything unless nothing can have changed
	again   bool            // also at files that could not be taken
	working bool
	closed  bool
	timer   *time.Timer
	waiting int // files that are not settled yet
	stuck   int // files that could not be taken

	pastRead bool // by split; of the goroutine that works

	mu       sync.Mutex // after Runner.mu where both are held
	loaded   bool
	prints   map[string]int64 // looks of files that were dealt with
	settling map[string]*settling
	queued   map[string]int64 // looks of files that wait for their claim
	blocked  map[string]int64 // looks of files that could not be taken
	young    map[string]young // files whose look does not tell yet
	seen     fs.FileInfo      // the folder before the last scan
}

type settling struct {
	watch.Settling
	due time.Time
}

func newIntake(r *Runner, st *agentState, dir string) *intake {
	return &intake{
		r: r, st: st, dir: dir, rel: r.rel(dir), names: map[string]bool{},
		settling: map[string]*settling{}, queued: map[string]int64{}, blocked: map[string]int64{}, young: map[string]young{},
	}
}

// mark asks for a look at names, or at everything when there are none. Called
// with Runner.mu held.
func (in *intake) mark(names ...string) {
	if len(names) == 0 {
		in.all = true
	}
	for _, n := range names {
		in.names[n] = true
	}
	in.start()
}

// start sees to it that what is noted gets done. Called with Runner.mu held.
func (in *intake) start() {
	if in.closed || in.working || in.r.stopping {
		return
	}
	in.working = true
	in.r.looking++
	in.r.wg.Add(1)
	go in.work()
}

// close ends the intake. Called with Runner.mu held.
func (in *intake) close() {
	in.closed = true
	if in.timer != nil {
		in.timer.Stop()
	}
	in.r.waitingFiles -= in.waiting
	in.waiting = 0
}

func (in *intake) work() {
	r := in.r
	defer r.wg.Done()
	for {
		r.mu.Lock()
		names, due, all, maybe, again := in.names, in.due, in.all, in.maybe, in.again
		in.names, in.due, in.all, in.maybe, in.again = map[string]bool{}, false, false, false, false
		if in.closed || r.stopping || (len(names) == 0 && !due && !all && !maybe) {
			in.working = false
			r.looking--
			r.pump()
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		ready, err := in.round(names, due, all, maybe, again)
		if err != nil {
			// The names are not lost: the next scan finds them.
			r.problem(in.st.name, err.Error(), "")
		}
		in.hand(ready)
	}
}

// round does what was noted and returns the files whose claim is due.
func (in *intake) round(names map[string]bool, due, all, maybe, again bool) ([]*candidate, error) {
	in.mu.Lock()
	if !in.loaded {
		var err error
		if in.prints, err = in.r.ledger.Files(in.st.name, in.rel); err != nil {
			in.mu.Unlock()
			return nil, err
		}
		in.loaded = true
	}
	if again && len(in.blocked) > 0 {
		clear(in.blocked)
		all = true
	}
	for n := range names {
		delete(in.blocked, n) // the event may mean that it can be taken now
	}
	if due {
		now := in.r.now()
		for n, s := range in.settling {
			if !s.due.After(now) {
				names[n] = true
			}
		}
	}
	seen := in.seen
	in.mu.Unlock()

	if maybe && !all {
		info, err := os.Stat(in.dir)
		all = err != nil || seen == nil || !os.SameFile(info, seen) || !info.ModTime().Equal(seen.ModTime())
	}
	if all {
		return in.scan()
	}
	var ready []*candidate
	var gone []string
	for n := range names {
		c, missing := in.look(n)
		if c != nil {
			ready = append(ready, c)
		}
		if missing {
			gone = append(gone, n)
		}
	}
	in.forget(gone)
	return ready, nil
}

// forget drops what is known of files that are gone.
func (in *intake) forget(names []string) {
	in.mu.Lock()
	var known []string
	for _, n := range names {
		if _, ok := in.prints[n]; ok {
			known = append(known, n)
			delete(in.prints, n)
		}
		delete(in.settling, n)
		delete(in.blocked, n)
		delete(in.young, n)
	}
	in.mu.Unlock()
	if len(known) > 0 {
		in.r.ledger.Forget(in.st.name, in.rel, known)
	}
}

// forgetAll makes inputs strangers again and looks at them. Called with
// Runner.mu held.
func (in *intake) forgetAll(inputs []record.FileRef) {
	for _, f := range inputs {
		dir, name := path.Split(f.Path)
		if dir != in.rel+"/" {
			continue
		}
		in.mu.Lock()
		delete(in.prints, name)
		delete(in.young, name)
		in.mu.Unlock()
		in.mark(name)
	}
}

// hand gives ready files to the scheduler, oldest first, and sees to the next
// look at those that are not.
func (in *intake) hand(ready []*candidate) {
	slices.SortFunc(ready, func(a, b *candidate) int {
		return cmp.Or(a.modTime.Compare(b.modTime), strings.Compare(a.name, b.name))
	})
	ready, old := in.split(ready)
	r := in.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.closed {
		return
	}
	var next time.Time
	in.mu.Lock()
	for _, s := range in.settling {
		if next.IsZero() || s.due.Before(next) {
			next = s.due
		}
	}
	waiting, stuck := len(in.settling), len(in.blocked)
	in.mu.Unlock()
	if len(old) > 0 {
		in.recheck(old)
	}
	r.waitingFiles += waiting - in.waiting
	in.waiting, in.stuck = waiting, stuck
	if in.timer != nil {
		in.timer.Stop()
		in.timer = nil
	}
	if !next.IsZero() {
		in.timer = time.AfterFunc(max(next.Sub(r.now()), 0), in.wakeSettling)
	}
	if len(ready) > 0 {
		in.st.queue = append(in.st.queue, ready...)
		r.activate(in.st)
		r.pump()
	}
}

func (in *intake) wakeSettling() {
	in.r.mu.Lock()
	defer in.r.mu.Unlock()
	in.due = true
	in.start()
}

// scan looks at every file, and forgets those that are gone.
func (in *intake) scan() ([]*candidate, error) {
	before, _ := os.Stat(in.dir)
	names, err := readNames(in.dir)
	if errors.Is(err, fs.ErrNotExist) {
		// Nothing is forgotten: a folder that is moved away for a moment comes
		// back with its files.
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the input folder %s cannot be read: %s; let this user read it", in.rel, cause(err))
	}
	here := make(map[string]bool, len(names))
	var ready []*candidate
	for _, n := range names {
		here[n] = true
		if c, _ := in.look(n); c != nil {
			ready = append(ready, c)
		}
	}
	var gone []string
	in.mu.Lock()
	in.seen = before
	for _, known := range []map[string]int64{in.prints, in.blocked} {
		for n := range known {
			if !here[n] {
				gone = append(gone, n)
			}
		}
	}
	for n := range in.young {
		if !here[n] {
			gone = append(gone, n)
		}
	}
	for n := range in.settling {
		if !here[n] {
			gone = append(gone, n)
		}
	}
	in.mu.Unlock()
	in.forget(gone)
	return ready, nil
}

// readNames lists names only: a folder may hold a great many.
func readNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// look looks at one file and returns it when its claim is due; missing says
// that there is no such file.
func (in *intake) look(name string) (c *candidate, missing bool) {
	path := filepath.Join(in.dir, name)
	info, reason, err := agents.Inspect(in.r.root, path)
	if agents.Surprising(name, reason) {
		in.tell(name, reason)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if err != nil || reason != "" {
		delete(in.settling, name)
		return nil, errors.Is(err, fs.ErrNotExist)
	}
	print := printOf(info)
	if in.prints[name] == print || in.blocked[name] == print || in.queued[name] == print {
		delete(in.settling, name)
		return nil, false
	}
	if in.grown(name, print, in.r.now()) {
		return nil, false
	}
	s := in.settling[name]
	if s == nil {
		s = &settling{}
		in.settling[name] = s
	}
	look := watch.Look{Size: info.Size(), ModTime: info.ModTime()}
	if info.Mode()&fs.ModeSymlink == 0 {
		look.Open, look.Known = watch.Writing(path)
	}
	now := in.r.now()
	ready, after := s.See(in.st.rule.Load().(watch.Rule), now, look)
	if !ready {
		s.due = now.Add(after)
		return nil, false
	}
	delete(in.settling, name)
	in.queued[name] = print
	return &candidate{in: in, name: name, print: print, modTime: info.ModTime()}, false
}

// tell says once a folder that what lies there is no input.
func (in *intake) tell(name, reason string) {
	if _, told := in.r.ignoredIn.LoadOrStore(in.dir, true); !told {
		in.r.emit(Event{Kind: InputIgnored, Agent: in.st.name, Inputs: []string{in.rel + "/" + name}, Message: reason, Hint: "'agentgraph doctor' lists every such file"})
	}
}

// young is a file that was dealt with so soon after it was written that
// another write might leave its look as it is.
type young struct {
	print int64
	sha   string
	until time.Time // from then on its look tells
}

// dealt notes that the content behind a look was dealt with; keep says that
// the ledger may note it too.
func (in *intake) dealt(p *part) (f ledger.File, keep bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	name := p.cand.name
	if in.queued[name] == p.cand.print {
		delete(in.queued, name)
	}
	grain := 20 * time.Millisecond
	if p.modTime.Nanosecond() == 0 {
		grain = 2100 * time.Millisecond // a file system with coarse times
	}
	if age := in.r.now().Sub(p.modTime); age >= 0 && age < grain {
		delete(in.prints, name)
		in.young[name] = young{p.print, p.sha, p.modTime.Add(grain)}
		return ledger.File{}, false
	}
	in.prints[name] = p.print
	return ledger.File{Agent: in.st.name, Dir: in.rel, Name: name, Print: p.print}, true
}

// grown looks at a file that was dealt with young. It reports whether that
// look was enough; otherwise the file is looked at like any other. Called with
// mu held.
func (in *intake) grown(name string, print int64, now time.Time) bool {
	y, ok := in.young[name]
	if !ok || y.print != print {
		delete(in.young, name)
		return false
	}
	if now.Before(y.until) {
		in.settling[name] = &settling{due: y.until}
		return true
	}
	delete(in.young, name)
	delete(in.settling, name)
	c := &candidate{in: in, name: name, print: print}
	p, err := in.r.read(in.st, c, in.st.settings().InputBytes)
	if err != nil || p.sha != y.sha {
		return false
	}
	in.prints[name] = p.print
	in.r.ledger.Seen(ledger.File{Agent: in.st.name, Dir: in.rel, Name: name, Print: p.print})
	return true
}

// block notes that a file could not be taken; it is tried again after an
// event, and now and then. It reports whether that is news.
func (in *intake) block(c *candidate) (news bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.queued[c.name] == c.print {
		delete(in.queued, c.name)
	}
	news = in.blocked[c.name] != c.print
	in.blocked[c.name] = c.print
	return news
}

// release makes a file a stranger again.
func (in *intake) release(c *candidate) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.queued, c.name)
}

// printOf is a number, never 0, that changes when a file's size, time or inode
// does.
func printOf(info fs.FileInfo) int64 {
	h := fnv.New64a()
	var b [24]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(info.Size()))
	binary.LittleEndian.PutUint64(b[8:], uint64(info.ModTime().UnixNano()))
	binary.LittleEndian.PutUint64(b[16:], inodeNumber(info))
	_, _ = h.Write(b[:]) // never fails
	return int64(h.Sum64() | 1)
}

// cause drops the path that an error of the os package repeats.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
