package frame

import (
	"encoding/json"
	"sync"
	"time"
)

// Open are the requests that are not answered yet. Its zero value is ready, and
// safe for use by many goroutines.
type Open struct {
	mu      sync.Mutex
	ids     map[string]bool
	pending int           // requests whose answers are not written
	idle    chan struct{} // closed when there are none; nil when nobody waits
}

// Begin adds a request. A second one of the same id is a Fault: an answer could
// not say to which of them it belongs.
func (o *Open) Begin(id json.RawMessage) *Fault {
	key := Key(id)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids[key] {
		return &Fault{Code: InvalidRequest, Reason: "id: another request has it that is not answered yet"}
	}
	if o.ids == nil {
		o.ids = map[string]bool{}
	}
	o.ids[key] = true
	o.pending++
	return nil
}

// Answer writes the answer to a request. The id is free before it is written:
// the client may use it again as soon as it reads.
func (o *Open) Answer(id json.RawMessage, write func() error) error {
	key := Key(id)
	o.mu.Lock()
	ours := o.ids[key]
	delete(o.ids, key)
	o.mu.Unlock()
	err := write()
	if ours {
		o.mu.Lock()
		if o.pending--; o.pending == 0 && o.idle != nil {
			close(o.idle)
			o.idle = nil
		}
		o.mu.Unlock()
	}
	return err
}

// Settle waits until every request is answered, at most so long, and reports
// that they are. No more requests are added then.
func (o *Open) Settle(limit time.Duration) bool {
	o.mu.Lock()
	if o.pending == 0 {
		o.mu.Unlock()
		return true
	}
	if o.idle == nil {
		o.idle = make(chan struct{})
	}
	idle := o.idle
	o.mu.Unlock()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-idle:
		return true
	case <-late.C:
		return false
	}
}
