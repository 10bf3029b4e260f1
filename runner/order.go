package runner

import (
	"context"
	"slices"
)

// order makes the turns of one agent publish in the order of their claims. A
// place is taken at the claim and given up when the turn has published, failed
// or waits for another attempt.
type order struct{ places []*place }

type place struct {
	head chan struct{} // closed when everyone before has given up their place
	gone bool
}

// take is called with the runner's lock held.
func (o *order) take() *place {
	p := &place{head: make(chan struct{})}
	o.places = append(o.places, p)
	if len(o.places) == 1 {
		close(p.head)
	}
	return p
}

// takeAfter takes the place behind another one that is not given up. Called
// with the runner's lock held.
func (o *order) takeAfter(p *place) *place {
	at := slices.Index(o.places, p)
	if at < 0 {
		return o.take()
	}
	n := &place{head: make(chan struct{})}
	o.places = slices.Insert(o.places, at+1, n)
	return n
}

// give is called with the runner's lock held; a second call does nothing.
func (o *order) give(p *place) {
	if p == nil || p.gone {
		return
	}
	p.gone = true
	moved := false
	for len(o.places) > 0 && o.places[0].gone {
		o.places[0] = nil
		o.places = o.places[1:]
		moved = true
	}
	if moved && len(o.places) > 0 {
		close(o.places[0].head)
	}
}

// wait returns when it is this place's turn to publish.
func (p *place) wait(ctx context.Context) error {
	select {
	case <-p.head:
		return nil
	default:
	}
	select {
	case <-p.head:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
