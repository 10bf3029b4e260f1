package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signals turns Ctrl-C and SIGTERM into an orderly end: the first lets a
// command finish what runs when it asked for that, otherwise, and always the
// second time, the context ends. One more ends a process that hangs in a call
// which knows of no context, such as the opening of a FIFO.
type signals struct {
	mu     sync.Mutex
	finish func()
	ended  bool
	cancel context.CancelFunc
	c      chan os.Signal
	done   chan struct{}
}

func watchSignals(ctx context.Context) (context.Context, *signals) {
	ctx, cancel := context.WithCancel(ctx)
	s := &signals{cancel: cancel, c: make(chan os.Signal, 4), done: make(chan struct{})}
	signal.Notify(s.c, os.Interrupt, syscall.SIGTERM)
	go func() {
		for {
			select {
			case <-s.c:
				s.interrupt()
			case <-s.done:
				return
			}
		}
	}()
	return ctx, s
}

func (s *signals) interrupt() {
	s.mu.Lock()
	finish, ended := s.finish, s.ended
	s.finish = nil
	s.ended = finish == nil
	s.mu.Unlock()
	if ended {
		os.Exit(exitCancelled)
	}
	if finish == nil {
		s.cancel()
		return
	}
	finish()
}

// finishFirst makes the next signal call finish instead of ending the context.
func (s *signals) finishFirst(finish func()) {
	s.mu.Lock()
	s.finish = finish
	s.mu.Unlock()
}

func (s *signals) stop() {
	signal.Stop(s.c)
	close(s.done)
	s.cancel()
}
