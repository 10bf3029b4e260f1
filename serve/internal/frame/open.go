package frame

import (
	"encoding/json"
	"sync"
)

// Open are the requests that are not answered yet. Its zero value is ready, and
// safe for use by many goroutines.
type Open struct {
	mu  sync.Mutex
	ids map[string]bool
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
	return nil
}

// End takes a request away that is answered.
func (o *Open) End(id json.RawMessage) {
	o.mu.Lock()
	delete(o.ids, Key(id))
	o.mu.Unlock()
}
