package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config says which server, and where it answers.
type Config struct {
	// Model is what the settings call it.
	Model string
	// Command is the program with its arguments; it stays in the foreground.
	Command []string
	Dir     string
	// Env lists the environment variables it gets besides the plain ones.
	Env []string
	// URL is where it answers, on this machine.
	URL string
	// Startup bounds the time until it answers.
	Startup time.Duration
	// StateDir gets the log and the lock.
	StateDir string
	// Supervisor is this program as a supervisor; empty means its own file and
	// the argument SupervisorCommand.
	Supervisor []string

	grace  time.Duration           // between SIGTERM and SIGKILL
	pause  func(int) time.Duration // before the start after that many failures
	steady time.Duration           // after which a server is not blamed for earlier failures
}

// SupervisorCommand is the command that calls Supervise.
const SupervisorCommand = "supervise-server"

const (
	defaultGrace  = 10 * time.Second
	defaultSteady = time.Minute
	firstPause    = 500 * time.Millisecond
	longestPause  = time.Minute
)

func pause(failures int) time.Duration {
	p := firstPause
	for range min(failures, 20) {
		p *= 2
	}
	return min(p, longestPause)
}

// Error is why a server is not there.
type Error struct {
	Msg, Hint string
	// Retry is true when it may be there later, unchanged.
	Retry bool
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Msg
	}
	return e.Msg + "; " + e.Hint
}

// ErrClosed is the error of Ready after Close.
var ErrClosed = errors.New("the server was stopped")

type state int

const (
	idle state = iota
	starting
	ready
	failed // until the next start
	closed
)

// Server is one server. It is safe for use by many goroutines.
type Server struct {
	cfg    Config
	health *health

	mu      sync.Mutex
	state   state
	err     *Error        // with failed
	changed chan struct{} // closed at every change
	cancel  context.CancelFunc
	done    chan struct{} // closed when the loop has ended
}

// New checks the settings; nothing is started.
func New(cfg Config) (*Server, error) {
	h, err := newHealth(cfg.URL)
	if err != nil {
		return nil, err
	}
	if len(cfg.Command) == 0 || cfg.Command[0] == "" {
		return nil, errors.New("server_command names no program")
	}
	if cfg.grace == 0 {
		cfg.grace = defaultGrace
	}
	if cfg.steady == 0 {
		cfg.steady = defaultSteady
	}
	if cfg.pause == nil {
		cfg.pause = pause
	}
	return &Server{cfg: cfg, health: h, changed: make(chan struct{})}, nil
}

// Log is the file that holds what the server says.
func (s *Server) Log() string { return filepath.Join(s.cfg.StateDir, fileName(s.cfg.Model)+".log") }

// fileName is a model's name as part of a file's.
func fileName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	if plain == name && !strings.HasPrefix(name, ".") && len(name) <= 100 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%.80s-%s", strings.TrimLeft(plain, "."), hex.EncodeToString(sum[:4]))
}

// Ready starts the server where it does not run, and waits until it answers.
// An *Error says why it does not.
func (s *Server) Ready(ctx context.Context) error {
	s.mu.Lock()
	if s.state == idle {
		s.state = starting
		var loop context.Context
		loop, s.cancel = context.WithCancel(context.Background())
		s.done = make(chan struct{})
		go s.loop(loop)
	}
	for {
		switch s.state {
		case ready:
			s.mu.Unlock()
			return nil
		case failed:
			err := s.err
			s.mu.Unlock()
			return err
		case closed:
			s.mu.Unlock()
			return ErrClosed
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.mu.Lock()
	}
}

// Close stops the server and waits until it has ended; it is idempotent.
func (s *Server) Close() error {
	s.mu.Lock()
	cancel, done := s.cancel, s.done
	s.mu.Unlock()
	s.set(closed, nil)
	if cancel == nil {
		return nil
	}
	cancel()
	<-done
	return nil
}

func (s *Server) set(to state, err *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed {
		return
	}
	s.state, s.err = to, err
	close(s.changed)
	s.changed = make(chan struct{})
}

// loop keeps the server running until ctx ends.
func (s *Server) loop(ctx context.Context) {
	defer close(s.done)
	failures := 0
	for ctx.Err() == nil {
		answered, err := s.once(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case answered >= s.cfg.steady:
			failures = 0
			s.set(starting, nil)
		case answered > 0 && failures == 0:
			// It was there; who asks waits for the next start.
			s.set(starting, nil)
			failures++
		default:
			s.set(failed, err)
			failures++
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.cfg.pause(max(failures-1, 0))):
		}
		if err == nil || err.Retry {
			// Who asks while it starts again waits for it.
			s.set(starting, nil)
		}
	}
}

// once runs the server once, or uses the one that another process runs, until
// it ends. It returns for how long it answered, and why it does not any more.
func (s *Server) once(ctx context.Context) (answered time.Duration, err *Error) {
	sup, err := s.startSupervisor()
	if err != nil {
		return 0, err
	}
	defer sup.end()
	first, ok := <-sup.reports
	switch {
	case !ok:
		return 0, &Error{Msg: "the server's supervisor ended at once" + sup.said(), Retry: true}
	case first.Busy != nil:
		sup.end()
		return s.share(ctx, first.Busy)
	case first.Taken:
		return 0, &Error{Msg: fmt.Sprintf("%s is taken by another process", s.health.address),
			Hint: "stop it, take another port in url: and server_command:, or remove server_command: to use the server that is there", Retry: true}
	case first.Wrong != "":
		e := &Error{Msg: fmt.Sprintf("the server cannot be started: %s: %s", s.cfg.Command[0], first.Wrong), Retry: !first.Missing}
		if first.Missing {
			e.Hint = "install it, or correct server_command:"
		}
		return 0, e
	}
	sup.server = first.Started
	return s.watch(ctx, sup)
}

// watch waits until the server answers, then until it ends.
func (s *Server) watch(ctx context.Context, sup *supervisor) (time.Duration, *Error) {
	healthy := make(chan struct{})
	polling, stop := context.WithCancel(ctx)
	defer stop()
	var last error // read after polled
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		if last = s.poll(polling); last == nil {
			close(healthy)
		}
	}()
	late := time.NewTimer(s.cfg.Startup)
	defer late.Stop()
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return 0, nil
		case r, ok := <-sup.reports:
			if ok && r.Ended == "" {
				continue
			}
			if !since.IsZero() {
				return max(time.Since(since), 1), s.endedError(r)
			}
			return 0, s.endedError(r)
		case <-healthy:
			healthy, since = nil, time.Now()
			late.Stop()
			s.set(ready, nil)
		case <-late.C:
			stop()
			<-polled
			return 0, &Error{Msg: fmt.Sprintf("the server did not answer at %s within %v (%v)", s.cfg.URL, s.cfg.Startup, last),
				Hint: "raise startup_timeout:, or see in " + s.Log() + " why, and that server_command: listens where url: says", Retry: true}
		}
	}
}

func (s *Server) endedError(r report) *Error {
	e := &Error{Msg: "the server ended", Hint: "see " + s.Log(), Retry: true}
	if r.Ended != "" {
		e.Msg += " (" + r.Ended + ")"
	}
	if said := lastLines(r.Said); said != "" {
		e.Msg += ": " + said
	}
	return e
}

// lastLines is the end of a log in one line.
func lastLines(text string) string {
	lines := strings.Split(text, "\n")
	lines = lines[max(len(lines)-3, 0):]
	text = strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
	if len(text) > 400 {
		text = "…" + strings.ToValidUTF8(text[len(text)-400:], "")
	}
	return text
}

// Pauses between two questions while the server starts.
const (
	firstPoll   = 20 * time.Millisecond
	longestPoll = time.Second
)

// poll returns when the server answers or ctx ends: with what was wrong last.
func (s *Server) poll(ctx context.Context) error {
	last := errors.New("it was not asked yet")
	for wait := firstPoll; ; wait = min(wait*3/2, longestPoll) {
		err := s.health.check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return last
		}
		last = err
		select {
		case <-ctx.Done():
			return last
		case <-time.After(wait):
		}
	}
}

// shareEvery is how often a server of another process is looked at.
const shareEvery = time.Second

// share uses the server of another process until it does not answer.
func (s *Server) share(ctx context.Context, h *holder) (time.Duration, *Error) {
	if h.Model != "" && !slices.Equal(h.Command, s.cfg.Command) {
		return 0, &Error{Msg: fmt.Sprintf("%s is the address of the server that model %s starts with another command", s.health.address, h.Model),
			Hint: "take another port in url: and server_command:, or write the same command", Retry: true}
	}
	starting, stop := context.WithTimeout(ctx, s.cfg.Startup)
	err := s.poll(starting)
	stop()
	if err != nil {
		return 0, &Error{Msg: fmt.Sprintf("the server that another process starts did not answer at %s within %v (%v)", s.cfg.URL, s.cfg.Startup, err),
			Hint: "raise startup_timeout:, or see " + s.Log(), Retry: true}
	}
	since := time.Now()
	s.set(ready, nil)
	for {
		select {
		case <-ctx.Done():
			return 0, nil
		case <-time.After(shareEvery):
		}
		if err := s.health.check(ctx); err != nil && ctx.Err() == nil {
			return max(time.Since(since), 1), &Error{Msg: fmt.Sprintf("the server at %s, started by another process, does not answer any more (%v)", s.cfg.URL, err), Retry: true}
		}
	}
}

func (s *Server) job() job {
	sum := sha256.Sum256([]byte(s.health.address))
	env := slices.Clone(s.cfg.Env)
	return job{
		Model: s.cfg.Model, Command: s.cfg.Command, Dir: s.cfg.Dir, Env: env, Log: s.Log(), Address: s.health.address,
		Lock: filepath.Join(s.cfg.StateDir, "address-"+hex.EncodeToString(sum[:6])+".lock"), Grace: s.cfg.grace,
	}
}

func (s *Server) supervisorCommand() ([]string, error) {
	if len(s.cfg.Supervisor) > 0 {
		return s.cfg.Supervisor, nil
	}
	// On Linux the file that runs, also when another has taken its place.
	self := "/proc/self/exe"
	if _, err := os.Stat(self); err != nil {
		if self, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	return []string{self, SupervisorCommand}, nil
}
