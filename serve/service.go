package serve

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"agentgraph/agents"
	"agentgraph/record/store"
	"agentgraph/runner"
	"agentgraph/tools"
)

// Models opens models by name and keeps them; the service closes none.
type Models = runner.Models

// Config of a Service.
type Config struct {
	// Graph is the folder of a graph; empty means that there is none.
	Graph string
	// Load changes what is made of the graph's settings; its models also answer
	// calls, with or without a graph: Model those that name none, DefaultModel
	// those for which the settings name none either.
	Load agents.LoadOptions
	// Models opens the models of calls and of the service's own runner. The
	// names are those that Service.ModelSpec resolves.
	Models Models
	// Find resolves a model's name where there is no graph; nil allows paths
	// that end in .gguf, and script:FILE.
	Find func(name string) (agents.ModelSpec, error)
	// StateDir holds log/ and threads/ where there is no graph.
	StateDir string
	// Dir is where relative paths of models and tools start; empty means the
	// working folder.
	Dir string
	// Warn is told of what goes wrong beside a call: a log or a thread that
	// cannot be written. Nil is allowed.
	Warn func(error)
	// Events is told what the service's own runner does; see runner.Config.
	Events func(runner.Event)
}

// Service answers calls. It is safe for use by many goroutines.
type Service struct {
	cfg Config
	// Desk holds the tool calls of Respond that wait for a decision; give it
	// to a Call as its Approver.
	desk  tools.Desk
	box   tools.Box
	audit *store.Audit

	auditWarning sync.Once

	// ctx ends the calls that run when the service is closed.
	ctx    context.Context
	cancel context.CancelFunc
	calls  sync.WaitGroup

	mu     sync.Mutex
	graph  *agents.Graph // as it was loaded last
	own    *ownRunner
	closed bool
	failed map[string]time.Time // records without an answer, and when they were written
}

// New returns a service. With Config.Graph set, the error says why the graph
// cannot be used at all; faults of single agents are in its findings.
func New(cfg Config) (*Service, error) {
	if cfg.Models == nil {
		return nil, errors.New("serve: Config.Models is not set")
	}
	if cfg.Dir == "" {
		dir, err := filepath.Abs(".")
		if err != nil {
			return nil, err
		}
		cfg.Dir = dir
	}
	s := &Service{cfg: cfg, failed: map[string]time.Time{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	state := cfg.StateDir
	if cfg.Graph != "" {
		g, err := s.Graph()
		if err != nil {
			return nil, err
		}
		state = g.Root
		s.cfg.Graph = g.Root
	}
	s.cfg.StateDir = state
	s.audit = store.OpenAudit(filepath.Join(state, "log"))
	return s, nil
}

// Close ends the calls that run, the runner that the service started, if it
// did, and the connections of its tools; then nothing uses a model any more.
// Turns that were running are done again by the next runner.
func (s *Service) Close() error {
	s.mu.Lock()
	own := s.own
	s.own, s.closed = nil, true
	s.mu.Unlock()
	s.cancel()
	s.calls.Wait()
	var errs []error
	if own != nil {
		errs = append(errs, own.end())
	}
	errs = append(errs, s.box.Close(), s.audit.Close())
	return errors.Join(errs...)
}

// begin counts a call in, until end, and makes its context end with the
// service.
func (s *Service) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, errClosed
	}
	s.calls.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel(); s.calls.Done() }, nil
}

var errClosed = errors.New("the service is closed")

// ErrNoGraph is the error of everything that needs a graph where there is
// none.
var ErrNoGraph = errors.New("there is no graph here; name one with --graph")

// Root is the graph's folder, absolute and without links; empty without one.
func (s *Service) Root() string { return s.cfg.Graph }

// Graph reads the graph's folders and settings as they are now.
func (s *Service) Graph() (*agents.Graph, error) {
	if s.cfg.Graph == "" {
		return nil, ErrNoGraph
	}
	g, err := agents.LoadWith(s.cfg.Graph, s.cfg.Load)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.graph = g
	s.mu.Unlock()
	return g, nil
}

// ModelSpec resolves a model's name: by the graph as it was loaded last, or by
// Config.Find.
func (s *Service) ModelSpec(name string) (agents.ModelSpec, error) {
	s.mu.Lock()
	g := s.graph
	s.mu.Unlock()
	if g != nil {
		return g.ModelSpec(name)
	}
	if s.cfg.Find != nil {
		return s.cfg.Find(name)
	}
	if spec, ok := agents.ParseModel(name, s.cfg.Dir); ok {
		return spec, nil
	}
	return agents.ModelSpec{}, fmt.Errorf("no model is called %q here: outside a graph give a path that ends in .gguf, or script:FILE", name)
}

// Desk is an Approver for calls that people or programs decide about through
// Waiting and Decide.
func (s *Service) Desk() *tools.Desk { return &s.desk }

func (s *Service) warn(err error) {
	if s.cfg.Warn != nil {
		s.cfg.Warn(err)
	}
}

// ArgumentError says which argument of a call cannot be used, and why. Names
// are those of the protocols: max_output_tokens.
type ArgumentError struct {
	Argument string
	Reason   string
}

func (e *ArgumentError) Error() string { return e.Argument + ": " + e.Reason }

func argument(name, format string, args ...any) error {
	return &ArgumentError{name, fmt.Sprintf(format, args...)}
}
