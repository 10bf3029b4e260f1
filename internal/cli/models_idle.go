package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentgraph/agents"
	"agentgraph/model"
)

// withIdleUnload frees a model once nobody has used it for the time that the
// settings give, and opens it again for the next who does. Opened once at the
// start, so that a model that cannot be loaded is known then.
func withIdleUnload(spec agents.ModelSpec, open func() (model.Model, error)) (model.Model, error) {
	if spec.IdleUnload == nil || *spec.IdleUnload <= 0 {
		return open()
	}
	m, err := open()
	if err != nil {
		return nil, err
	}
	i := &idle{open: open, after: time.Duration(*spec.IdleUnload), m: m, caps: m.Capabilities()}
	i.sleepLater()
	return i, nil
}

// idle is a model that is in memory only while it is used, and a while after.
type idle struct {
	open  func() (model.Model, error)
	after time.Duration
	caps  model.Capabilities

	mu     sync.Mutex
	m      model.Model // nil while it is not in memory
	users  int
	timer  *time.Timer
	id     *model.Identity
	closed bool
}

var errModelClosed = errors.New("the model is closed")

// use returns the model, loaded; the caller calls done afterwards.
func (i *idle) use() (model.Model, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, &model.Error{Kind: model.Unavailable, Delivery: model.NotSent, Err: errModelClosed}
	}
	if i.timer != nil {
		i.timer.Stop()
	}
	if i.m == nil {
		// Others that want it wait here: it is loaded once.
		m, err := i.open()
		if err != nil {
			return nil, err
		}
		i.m = m
	}
	i.users++
	return i.m, nil
}

func (i *idle) done() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.users--; i.users == 0 && !i.closed {
		i.sleepLater()
	}
}

// sleepLater is called under the lock, or before anybody else knows i.
func (i *idle) sleepLater() {
	var t *time.Timer
	t = time.AfterFunc(i.after, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.users > 0 || i.m == nil || i.timer != t {
			return
		}
		i.m.Close()
		i.m = nil
	})
	i.timer = t
}

func (i *idle) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	m, err := i.use()
	if err != nil {
		return nil, err
	}
	defer i.done()
	return m.Generate(ctx, req)
}

func (i *idle) Render(ctx context.Context, req *model.Request) (model.Rendered, error) {
	m, err := i.use()
	if err != nil {
		return model.Rendered{}, err
	}
	defer i.done()
	return m.Render(ctx, req)
}

func (i *idle) Capabilities() model.Capabilities { return i.caps }

// Identity is asked of the model once: it stays what it was.
func (i *idle) Identity() model.Identity {
	i.mu.Lock()
	known := i.id
	i.mu.Unlock()
	if known != nil {
		return *known
	}
	m, err := i.use()
	if err != nil {
		return model.Identity{}
	}
	defer i.done()
	id := m.Identity()
	i.mu.Lock()
	i.id = &id
	i.mu.Unlock()
	return id
}

func (i *idle) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	if i.timer != nil {
		i.timer.Stop()
	}
	if i.m == nil {
		return nil
	}
	// Calls that still run end as the model's own do when it is closed.
	return i.m.Close()
}
