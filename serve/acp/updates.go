package acp

import (
	"context"
	"sync"

	acp "github.com/coder/acp-go-sdk"

	"agentgraph/model"
)

// notify sends one update; ours is our metadata, for clients that read it.
func (s *server) notify(ctx context.Context, id acp.SessionId, u acp.SessionUpdate, ours map[string]any) error {
	n := acp.SessionNotification{SessionId: id, Update: u}
	if ours != nil {
		n.Meta = map[string]any{MetaKey: ours}
	}
	// A turn that is cancelled still says what happened before.
	return s.conn.SendNotification(context.WithoutCancel(ctx), acp.ClientMethodSessionUpdate, n)
}

// updates sends what happens in one prompt, in order, from one goroutine. Who
// adds to it does not wait for the client.
type updates struct {
	send func(u acp.SessionUpdate, tokens int) bool
	tell bool // send token counts that come without text

	mu     sync.Mutex
	queue  []*update
	wake   chan struct{}
	done   chan struct{}
	closed bool
}

// update is one notification. Text and thought grow until they are sent.
type update struct {
	text, thought string
	event         *acp.SessionUpdate
	tokens        int
	sent          chan struct{} // closed when everything before is sent
}

func newUpdates(tell bool, send func(u acp.SessionUpdate, tokens int) bool) *updates {
	u := &updates{send: send, tell: tell, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go u.run()
	return u
}

// progress adds what a model generated; shaped text is kept back.
func (u *updates) progress(p model.Progress, shaped bool) {
	if p.Reasoning != "" {
		u.add(&update{thought: p.Reasoning, tokens: p.Tokens})
	}
	switch {
	case p.Text != "" && !shaped:
		u.add(&update{text: p.Text, tokens: p.Tokens})
	case u.tell && p.Reasoning == "":
		u.add(&update{tokens: p.Tokens})
	}
}

func (u *updates) event(e acp.SessionUpdate) { u.add(&update{event: &e}) }

func (u *updates) add(n *update) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return
	}
	if k := len(u.queue); k == 0 || !u.queue[k-1].merge(n) {
		u.queue = append(u.queue, n)
	}
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// merge takes n into an update that waits; false where both have to be sent.
func (a *update) merge(n *update) bool {
	if a.event != nil || n.event != nil || a.sent != nil || n.sent != nil {
		return false
	}
	switch {
	case a.text == "" && a.thought == "": // a count gives way
		*a = *n
	case n.text == "" && n.thought == "":
	case (a.text == "") != (n.text == ""):
		return false
	default:
		a.text += n.text
		a.thought += n.thought
	}
	a.tokens = n.tokens
	return true
}

// flush waits until everything that was added is sent.
func (u *updates) flush(ctx context.Context) error {
	sent := make(chan struct{})
	u.add(&update{sent: sent})
	select {
	case <-sent:
		return nil
	case <-u.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end sends what is left and returns when it is sent.
func (u *updates) end() {
	u.mu.Lock()
	if !u.closed {
		u.closed = true
		close(u.wake)
	}
	u.mu.Unlock()
	<-u.done
}

func (u *updates) run() {
	defer close(u.done)
	alive := true
	for range u.wake {
		alive = u.drain(alive)
	}
	u.drain(alive)
}

func (u *updates) drain(alive bool) bool {
	for {
		u.mu.Lock()
		if len(u.queue) == 0 {
			u.mu.Unlock()
			return alive
		}
		n := u.queue[0]
		u.queue = u.queue[1:]
		u.mu.Unlock()
		if n.sent != nil {
			close(n.sent)
			continue
		}
		alive = alive && u.send(n.notification(), n.tokens)
	}
}

func (a *update) notification() acp.SessionUpdate {
	switch {
	case a.event != nil:
		return *a.event
	case a.thought != "":
		return acp.UpdateAgentThoughtText(a.thought)
	case a.text != "":
		return acp.UpdateAgentMessageText(a.text)
	}
	// Nothing to see: the metadata is the message.
	return acp.SessionUpdate{SessionInfoUpdate: &acp.SessionSessionInfoUpdate{SessionUpdate: "session_info_update"}}
}
