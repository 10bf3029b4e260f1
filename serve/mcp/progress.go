package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/model"
	"agentgraph/runner"
)

// progressEvery is the least time between two notifications of one call.
const progressEvery = 100 * time.Millisecond

// progress tells a client how many tokens there are. Its methods do not wait
// for the client: a notification that cannot be sent yet gives way to the next.
type progress struct {
	mu     sync.Mutex
	base   int // tokens of earlier calls of the model in this turn
	last   int // of this one
	wake   chan struct{}
	done   chan struct{}
	closed bool
}

// progress returns nil when the client did not ask; a nil progress does
// nothing.
func (s *Server) progress(ctx context.Context, req *sdk.CallToolRequest, total *int) *progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	p := &progress{wake: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		sent := 0
		for range p.wake {
			p.mu.Lock()
			n := p.base + p.last
			p.mu.Unlock()
			if n <= sent {
				continue
			}
			sent = n
			note := &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: fmt.Sprintf("%d tokens", n)}
			if total != nil {
				note.Total = float64(max(*total, n))
			}
			if req.Session.NotifyProgress(ctx, note) != nil {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(progressEvery):
			}
		}
	}()
	return p
}

// step takes note of what a model generated.
func (p *progress) step(m model.Progress) { p.tokens(m.Tokens) }

// turn takes note of how far a runner's turn is.
func (p *progress) turn(t runner.TurnStatus) { p.tokens(t.Tokens) }

func (p *progress) tokens(n int) {
	if p == nil || n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n < p.last { // another call of the model counts from the beginning
		p.base += p.last
	}
	p.last = n
	if p.closed {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// end returns when no more notification follows.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	close(p.wake)
	p.mu.Unlock()
	<-p.done
}
