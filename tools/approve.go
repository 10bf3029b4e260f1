package tools

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Approver decides about calls whose policy is Ask. Approve waits for the
// decision; an error means that there will be none.
type Approver interface {
	Approve(ctx context.Context, q Question) (bool, error)
}

// Question is a call that waits for a person.
type Question struct {
	ID        string          `json:"id"`
	Agent     string          `json:"agent,omitempty"`
	TurnID    string          `json:"turn_id,omitempty"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Asked     time.Time       `json:"asked"`
}

// Desk is an Approver for people who answer from elsewhere: a question waits
// under its id until Decide is called with it.
type Desk struct {
	// Tell is called with each new question; nil is allowed. It must not
	// block.
	Tell func(Question)

	mu      sync.Mutex
	waiting []*waiting
}

type waiting struct {
	Question
	decided chan bool
}

// Approve waits for Decide or the end of ctx.
func (d *Desk) Approve(ctx context.Context, q Question) (bool, error) {
	_, wait := d.Ask(q)
	return wait(ctx)
}

// Ask takes a question, which can be decided from now on, and returns it with
// its id; wait is to be called once.
func (d *Desk) Ask(q Question) (asked Question, wait func(context.Context) (bool, error)) {
	w := &waiting{Question: q, decided: make(chan bool, 1)}
	d.mu.Lock()
	for w.ID == "" || d.find(w.ID) >= 0 {
		w.ID = newQuestionID()
	}
	d.waiting = append(d.waiting, w)
	d.mu.Unlock()
	if d.Tell != nil {
		d.Tell(w.Question)
	}
	return w.Question, func(ctx context.Context) (bool, error) {
		select {
		case ok := <-w.decided:
			return ok, nil
		case <-ctx.Done():
			d.mu.Lock()
			d.waiting = slices.DeleteFunc(d.waiting, func(x *waiting) bool { return x == w })
			d.mu.Unlock()
			return false, ctx.Err()
		}
	}
}

// Waiting lists the open questions, oldest first.
func (d *Desk) Waiting() []Question {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Question, len(d.waiting))
	for i, w := range d.waiting {
		list[i] = w.Question
	}
	return list
}

// Decide answers the question with this id.
func (d *Desk) Decide(id string, allow bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.find(id)
	if i < 0 {
		return fmt.Errorf("no call waits under the id %q; it was answered, or its turn has ended; 'agentgraph approve' lists those that wait", id)
	}
	d.waiting[i].decided <- allow
	d.waiting = slices.Delete(d.waiting, i, i+1)
	return nil
}

func (d *Desk) find(id string) int {
	return slices.IndexFunc(d.waiting, func(w *waiting) bool { return w.ID == id })
}

func newQuestionID() string {
	var b [3]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
