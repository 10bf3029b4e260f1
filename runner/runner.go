package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"agentgraph/agents"
	"agentgraph/internal/watch"
	"agentgraph/model"
	"agentgraph/output"
	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/runner/internal/ledger"
	"agentgraph/tools"
	"agentgraph/turn"
)

// Generator is who generates: the seam between a graph and what answers it. A
// nil record never comes back.
type Generator interface {
	Run(ctx context.Context, req *turn.Request) *record.Record
}

// GeneratorFunc makes a function a Generator.
type GeneratorFunc func(ctx context.Context, req *turn.Request) *record.Record

// Run calls f.
func (f GeneratorFunc) Run(ctx context.Context, req *turn.Request) *record.Record { return f(ctx, req) }

// Models opens the models of a graph. Model is called once per turn, with a
// name that Graph.ModelSpec knows, and keeps what it opened; the runner closes
// nothing.
type Models interface {
	Model(ctx context.Context, name string) (model.Model, error)
}

// Config of a Runner.
type Config struct {
	// Root is the graph's folder.
	Root string
	// Load changes what is made of the settings (--model).
	Load agents.LoadOptions
	// Models may be nil when Generator needs none.
	Models Models
	// Generator is turn.Run when nil.
	Generator Generator
	// Events is told what happens, one event at a time. It must not block for
	// long nor call the runner.
	Events func(Event)
	// Watch stands in for the setting `watch:` unless empty.
	Watch watch.Mode
	// PollEvery is the pause between polls where folders are polled; 0 means
	// a second.
	PollEvery time.Duration
	// RetryBase is the pause before the second attempt; it doubles with each.
	// 0 means half a second.
	RetryBase time.Duration
	// MaxRunning bounds the turns that run at once in the whole graph; 0
	// means 256.
	MaxRunning int
	// Now is time.Now unless a test says otherwise. The pauses of settling,
	// retries and rescans are real.
	Now func() time.Time

	source func() (watch.Source, error) // of the watcher, for tests
}

// maxRetryPause bounds the pause between two attempts.
const maxRetryPause = time.Minute

// Runner works one graph. Make it with New, and call Run or Once, once.
type Runner struct {
	cfg     Config
	root    string
	unlock  func()
	held    fs.FileInfo // the lock
	ledger  *ledger.Ledger
	audit   *store.Audit
	tools   tools.Box      // open for all turns
	desk    *tools.Desk    // where calls wait for people
	watcher *watch.Watcher // nil in Once
	gen     Generator
	boot    string
	started time.Time
	nextSeq atomic.Int64

	eventMu   sync.Mutex
	ignoredIn sync.Map       // folders of which InputIgnored was told
	wg        sync.WaitGroup // all goroutines

	// ctx ends when running turns must stop at once.
	ctx      context.Context
	cancel   context.CancelFunc
	idle     chan struct{} // receives when nothing is under way
	finish   chan struct{} // closed by Finish
	ended    chan struct{} // closed when everything is over
	finished sync.Once

	mu           sync.Mutex
	graph        *agents.Graph
	agents       map[string]*agentState
	active       []*agentState        // with work, in the order of their turns
	roles        map[string][]role    // what a watched folder is to whom
	intakes      map[string][]*intake // by folder
	looks        map[string]string    // of folders with settings, when they were read last
	models       map[string]*modelState
	producers    map[string]producer // answers whose ledger row is not on disk yet
	openKeys     map[string]bool     // identities of turns under way
	snapshots    map[string]int      // snapshot files in use, by hash
	running      int                 // turns that hold a slot
	jobs         int                 // goroutines that work on a turn
	closing      int                 // turns past their publish
	looking      int                 // intakes at work
	rechecking   int                 // folders whose old files are compared with their turns
	waitingFiles int                 // files that are not settled
	waitingTurns int                 // turns that wait for another attempt
	stopping     bool                // nothing new starts
	stateGone    bool                // see ErrStateGone
	once         bool
	untold       bool // nobody was told yet that everything was read once
	stats        Summary
	reloadTimer  *time.Timer
	reloading    bool
	claims       int // turns started so far, of any kind
	left         int // see Left

	recheckSlots chan struct{} // of the folders that are compared at once

	told         sync.Map // problem → when it was told
	publishLocks sync.Map // folder relative to the graph → *sync.Mutex
}

// producer is the turn an answer came from.
type producer struct {
	sha     string
	trace   string
	lineage record.Lineage
}

type modelState struct {
	running  int
	capacity int // 0: not known yet
}

// agentState is an agent as the runner sees it. Guarded by Runner.mu unless
// said otherwise.
type agentState struct {
	name    string
	cur     atomic.Pointer[agents.Agent] // as it was loaded last
	rule    atomic.Value                 // watch.Rule
	intakes map[string]*intake
	joiner  *joiner // nil with join: any

	queue   []*candidate // files to claim, in order
	ready   []*job       // claimed turns to work on
	stuck   []*job       // turns whose publish or record cannot be written now
	waiting map[*job]*time.Timer
	jobs    map[*job]bool // running
	active  bool
	running int
	order   order
	// together counts the running turns of inputs that have several answers,
	// by the key of the first; they have one slot of the agent.
	together map[string]int

	ctxMu   sync.Mutex
	ctx     context.Context // ends when the agent is removed or its turns are stopped
	cancel  context.CancelFunc
	removed bool
	paused  bool

	// Refused turns are opened again when the fingerprint is not checked.
	checked              string
	checking, checkAgain bool

	folder  *output.Folder
	store   *store.Store
	history history
	counts  map[ledger.State]int
	rate    rate
}

// New locks the graph, opens its ledger and loads its agents. The runner must
// be ended with Run, Once or Close.
func New(cfg Config) (*Runner, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.RetryBase <= 0 {
		cfg.RetryBase = 500 * time.Millisecond
	}
	if cfg.MaxRunning <= 0 {
		cfg.MaxRunning = 256
	}
	g, err := agents.LoadWith(cfg.Root, cfg.Load)
	if err != nil {
		return nil, err
	}
	r := &Runner{
		cfg: cfg, root: g.Root, graph: g, gen: cfg.Generator, boot: bootID(), started: cfg.Now(),
		idle: make(chan struct{}, 1), finish: make(chan struct{}), ended: make(chan struct{}),
		agents: map[string]*agentState{}, roles: map[string][]role{}, models: map[string]*modelState{},
		producers: map[string]producer{}, openKeys: map[string]bool{}, snapshots: map[string]int{},
		intakes: map[string][]*intake{}, looks: map[string]string{}, recheckSlots: make(chan struct{}, recheckWorkers),
	}
	if r.gen == nil {
		r.gen = GeneratorFunc(turn.Run)
	}
	r.desk = &tools.Desk{Tell: r.asked}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if r.unlock, r.held, err = lockGraph(g.Root, r.started); err != nil {
		return nil, err
	}
	if err := r.openLedger(); err != nil {
		r.unlock()
		return nil, err
	}
	r.audit = store.OpenAudit(filepath.Join(g.Root, "log"))
	return r, nil
}

// openLedger opens the ledger, or builds it anew when there is none that can
// be used.
func (r *Runner) openLedger() error {
	path := filepath.Join(r.root, agents.StateDir, "ledger.db")
	opt := ledger.Options{Problem: r.ledgerProblem}
	l, created, err := ledger.Open(path, opt)
	switch {
	case errors.Is(err, ledger.ErrNewer):
		return fmt.Errorf("%w; use that version, or delete %s: it is rebuilt from turns/ and output/", err, filepath.Dir(path))
	case errors.Is(err, ledger.ErrCorrupt), errors.Is(err, ledger.ErrOlder):
		aside := fmt.Sprintf("%s.%s", path, r.now().Format("20060102-150405.000"))
		r.problem("", fmt.Sprintf("%v; it is set aside as %s and built anew", err, filepath.Base(aside)), "")
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("setting the damaged ledger aside: %w", err)
			}
		}
		if l, created, err = ledger.Open(path, opt); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	r.ledger = l
	if created {
		if err := r.rebuild(); err != nil {
			_ = l.Close()
			_ = os.Remove(path) // half a ledger would repeat turns
			return err
		}
	}
	max, err := l.MaxSeq()
	r.nextSeq.Store(max)
	return err
}

func (r *Runner) ledgerProblem(err error) {
	if err != nil {
		r.problem("", "the ledger cannot be written: "+err.Error(), "free disk space, or let this user write to "+agents.StateDir)
	}
}

// Close ends a runner that neither Run nor Once was called on.
func (r *Runner) Close() error {
	r.cancel()
	err := r.ledger.Close()
	err = errors.Join(err, r.audit.Close(), r.tools.Close())
	r.unlock()
	return err
}

// Graph is the graph as it was loaded last.
func (r *Runner) Graph() *agents.Graph {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.graph
}

func (r *Runner) now() time.Time { return r.cfg.Now() }

func (r *Runner) rel(path string) string { return agents.Rel(r.root, path) }

// problemPause is how long the same problem is not told again.
const problemPause = 10 * time.Minute

// problem tells people about something that is not about one turn.
func (r *Runner) problem(agent, msg, hint string) {
	key, now := agent+"\x00"+msg, r.now()
	if last, ok := r.told.Load(key); ok && now.Sub(last.(time.Time)).Abs() < problemPause {
		return
	}
	r.told.Store(key, now)
	r.emit(Event{Kind: Problem, Agent: agent, Message: msg, Hint: hint})
}

// Finish lets running turns end and starts no others, from the moment it
// returns. Run and Once then return.
func (r *Runner) Finish() {
	r.finished.Do(func() {
		r.stop(false)
		close(r.finish)
	})
}
