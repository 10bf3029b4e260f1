package serve

import (
	"context"
	"errors"
	"time"

	"agentgraph/runner"
	"agentgraph/tools"
)

// ownRunner is a runner that the service started because nobody else worked
// the graph.
type ownRunner struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // of Run; read after done
}

func (o *ownRunner) end() error {
	o.cancel()
	<-o.done
	return o.err
}

// Work sees to it that a runner works the graph: one that does already, in any
// process, or the service's own, which then runs until Close.
func (s *Service) Work() error {
	if s.cfg.Graph == "" {
		return ErrNoGraph
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.own != nil {
		select {
		case <-s.own.done: // it was stopped from outside, or could not go on
			s.own = nil
		default:
			return nil
		}
	}
	r, err := runner.New(runner.Config{Root: s.cfg.Graph, Load: s.cfg.Load, Models: s.cfg.Models, Events: s.cfg.Events})
	if errors.Is(err, runner.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	own := &ownRunner{cancel: cancel, done: make(chan struct{})}
	s.own = own
	go func() {
		defer close(own.done)
		if err := r.Run(ctx); err != nil && ctx.Err() == nil {
			own.err = err
			s.warn(err)
		}
	}()
	return nil
}

// Status asks the runner of the graph what it is doing. The error wraps
// runner.ErrNotRunning when there is none.
func (s *Service) Status() (runner.Status, error) {
	c, err := s.dial()
	if err != nil {
		return runner.Status{}, err
	}
	defer c.Close()
	return c.Status()
}

func (s *Service) dial() (*runner.Client, error) {
	if s.cfg.Graph == "" {
		return nil, ErrNoGraph
	}
	return runner.Dial(s.cfg.Graph)
}

// startTime bounds the wait for a runner that was just started, or that holds
// the graph's lock and does not listen yet.
const startTime = 10 * time.Second

// running sees to it that a runner works the graph, and returns when it
// listens.
func (s *Service) running(ctx context.Context) (*runner.Client, error) {
	deadline := time.Now().Add(startTime)
	for {
		if c, err := s.dial(); err == nil {
			return c, nil
		}
		if err := s.Work(); err != nil {
			return nil, err
		}
		c, err := s.dial()
		if err == nil {
			return c, nil
		}
		if time.Now().After(deadline) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// Waiting lists the calls of tools that wait for a decision: those of Respond
// with Desk as its approver, and those of the graph's runner.
func (s *Service) Waiting() ([]tools.Question, error) {
	list := s.desk.Waiting()
	if s.cfg.Graph == "" {
		return list, nil
	}
	c, err := s.dial()
	if errors.Is(err, runner.ErrNotRunning) {
		return list, nil
	}
	if err != nil {
		return list, err
	}
	defer c.Close()
	resp, err := c.Do(runner.Request{Command: runner.CmdApprove})
	return append(list, resp.Waiting...), err
}

// Decide lets the call that waits under id run, or not.
func (s *Service) Decide(id string, allow bool) error {
	if id == "" {
		return argument("id", "name a call that waits")
	}
	err := s.desk.Decide(id, allow)
	if err == nil || s.cfg.Graph == "" {
		return err
	}
	c, dialErr := s.dial()
	if errors.Is(dialErr, runner.ErrNotRunning) {
		return err
	}
	if dialErr != nil {
		return dialErr
	}
	defer c.Close()
	_, err = c.Do(runner.Request{Command: runner.CmdApprove, ID: id, Deny: !allow})
	return err
}
