package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/serve"
	"agentgraph/tools"
)

// From noServerRequests on, a server that has a question answers the call with
// it, and the client calls again with the answer and the state it was given. The
// turn goes on meanwhile: it waits where it is.

// Bounds of the calls that may have a question for their client.
const (
	maxRounds = 64
	// keepResult is how long a turn that ended is kept for a client that comes
	// late, since somebody else decided.
	keepResult = 10 * time.Minute
)

// rounds are those calls: how many there are, and those that wait for their
// client, by their states.
type rounds struct {
	mu    sync.Mutex
	begun int
	calls map[string]*roundsCall
}

// begin takes one of the places; false where there is none.
func (r *rounds) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun >= maxRounds {
		return false
	}
	r.begun++
	return true
}

// end gives a place back, once the client has its result or will not come for
// it.
func (r *rounds) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun--
}

type roundsCall struct {
	cancel   context.CancelFunc
	over     chan struct{} // closed when the turn has ended
	rec      *record.Record
	err      error
	asks     chan *clientAsk
	progress atomic.Pointer[progress]
	asked    int        // questions so far; of the turn's goroutine
	open     *clientAsk // what the client has; of the call's handler
}

// clientAsk is a question on its way.
type clientAsk struct {
	key     string
	q       tools.Question
	allowed chan bool // one
}

// byRounds reports a client that is asked in this way, and takes a place for
// its call. Where too many have one already, the tool approve alone decides.
func (s *Server) byRounds(session *sdk.ServerSession) bool {
	p := session.InitializeParams()
	return p != nil && p.ProtocolVersion >= noServerRequests && showsForms(p) && s.rounds.begin()
}

// respondInRounds begins a turn that may have questions.
func (s *Server) respondInRounds(ctx context.Context, req *sdk.CallToolRequest, c serve.Call) (*sdk.CallToolResult, error) {
	// The turn outlives this request, and ends with its own time.
	turnCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	rc := &roundsCall{cancel: cancel, over: make(chan struct{}), asks: make(chan *clientAsk)}
	c.Approver = &asker{rc.ask, s.svc.Desk()}
	c.Progress = func(p model.Progress) { rc.progress.Load().step(p) }
	p := s.progress(ctx, req, c.MaxOutputTokens)
	rc.progress.Store(p)
	go func() {
		defer cancel()
		defer close(rc.over)
		rc.rec, rc.err = s.svc.Respond(turnCtx, c)
	}()
	return s.wait(ctx, rc, p)
}

// nextRound goes on with a call that had a question.
func (s *Server) nextRound(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	s.rounds.mu.Lock()
	rc := s.rounds.calls[req.Params.RequestState]
	delete(s.rounds.calls, req.Params.RequestState)
	s.rounds.mu.Unlock()
	if rc == nil {
		return argumentsRefused(errors.New("requestState: no call waits under it; call respond anew"))
	}
	p := s.progress(ctx, req, nil)
	rc.progress.Store(p)
	if res, ok := req.Params.InputResponses[rc.open.key].(*sdk.ElicitResult); ok {
		rc.open.allowed <- allowed(res)
	} else {
		rc.open.allowed <- false // it came back without an answer
	}
	return s.wait(ctx, rc, p)
}

// wait returns the turn's end or its next question.
func (s *Server) wait(ctx context.Context, rc *roundsCall, p *progress) (*sdk.CallToolResult, error) {
	defer p.end()
	select {
	case <-rc.over:
		s.rounds.end()
		return respondResult(rc.rec, rc.err)
	case a := <-rc.asks:
		rc.open = a
		return &sdk.CallToolResult{
			RequestState:  s.rounds.keep(rc),
			InputRequests: sdk.InputRequestMap{a.key: &sdk.ElicitParams{Message: question(a.q), RequestedSchema: json.RawMessage(allowSchema)}},
		}, nil
	case <-ctx.Done():
		rc.cancel()
		<-rc.over // so that the thread is free when the client is told
		s.rounds.end()
		return nil, ctx.Err()
	}
}

// keep holds a call until its client comes back.
func (r *rounds) keep(rc *roundsCall) (state string) {
	state = rand.Text()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = map[string]*roundsCall{}
	}
	r.calls[state] = rc
	// Its turn ends in time; what is kept of it then is dropped some time later.
	go func() {
		<-rc.over
		time.AfterFunc(keepResult, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.calls[state] != nil {
				delete(r.calls, state)
				r.begun--
			}
		})
	}()
	return state
}

// ask hands a question to the handler of the call.
func (rc *roundsCall) ask(ctx context.Context, q tools.Question) (bool, error) {
	rc.asked++
	a := &clientAsk{key: "allow-" + strconv.Itoa(rc.asked), q: q, allowed: make(chan bool, 1)}
	select {
	case rc.asks <- a:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	select {
	case ok := <-a.allowed:
		return ok, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
