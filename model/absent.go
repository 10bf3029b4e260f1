package model

import "context"

// Absent stands for a model that is not there, where only its name matters.
// Whoever calls it is told Why; nothing was sent.
type Absent struct {
	Who Identity
	Why error
}

// Generate fails as Unavailable.
func (a Absent) Generate(context.Context, *Request) (*Response, error) {
	return nil, &Error{Kind: Unavailable, Delivery: NotSent, Model: a.Who.Name, Err: a.Why}
}

// Render knows no prompt.
func (a Absent) Render(context.Context, *Request) (Rendered, error) {
	return Rendered{}, ErrNotRendered
}

// Capabilities are none.
func (a Absent) Capabilities() Capabilities { return Capabilities{Parallel: 1} }

// Identity is who the model would be.
func (a Absent) Identity() Identity { return a.Who }

// Close does nothing.
func (a Absent) Close() error { return nil }
