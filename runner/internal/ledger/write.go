package ledger

import (
	"context"
	"errors"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// ErrClosed is the error of a write after Close.
var ErrClosed = errors.New("the ledger is closed")

// op is one write in the queue.
type op struct {
	do     func(*sqlite.Conn) error
	done   chan struct{}
	err    error
	waited bool // somebody takes the error; otherwise the write is tried again
	after  func()
}

// finish ends an op that is on disk or given up.
func (o *op) finish(err error) {
	o.err = err
	if o.after != nil {
		o.after()
	}
	close(o.done)
}

// Ticket stands for a write in the queue.
type Ticket struct {
	l  *Ledger
	op *op
}

// Wait returns when the write is on disk, or why it is not. Call it at most
// once, from the goroutine that asked for the write.
func (t Ticket) Wait(ctx context.Context) error {
	select {
	case <-t.op.done:
		return t.op.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Done is closed when the write is on disk or was given up.
func (t Ticket) Done() <-chan struct{} { return t.op.done }

func (l *Ledger) enqueue(waited bool, do func(*sqlite.Conn) error) Ticket {
	return l.enqueueThen(waited, do, nil)
}

// enqueueThen also calls after, from the writing goroutine, when the write is
// on disk or was given up, before anybody who waits goes on.
func (l *Ledger) enqueueThen(waited bool, do func(*sqlite.Conn) error, after func()) Ticket {
	o := &op{do: do, done: make(chan struct{}), waited: waited, after: after}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		o.after = nil
		o.finish(ErrClosed)
		return Ticket{l, o}
	}
	l.queue = append(l.queue, o)
	l.mu.Unlock()
	l.poke()
	return Ticket{l, o}
}

// Flush waits until everything asked for before it is on disk.
func (l *Ledger) Flush(ctx context.Context) error {
	return l.enqueue(true, func(*sqlite.Conn) error { return nil }).Wait(ctx)
}

// Bounds of one transaction and of the pause after a failed one.
const (
	maxBatch     = 1024
	failurePause = 200 * time.Millisecond
)

func (l *Ledger) writer() {
	defer close(l.done)
	failing := false
	for {
		l.mu.Lock()
		batch := l.queue
		if len(batch) > maxBatch {
			batch = batch[:maxBatch:maxBatch]
		}
		l.queue = l.queue[len(batch):]
		closed := l.closed
		l.mu.Unlock()
		if len(batch) == 0 {
			if closed {
				return
			}
			<-l.wake
			continue
		}
		err := l.commit(batch)
		if err != nil && len(batch) > 1 && sqlite.ErrCode(err).ToPrimary() == sqlite.ResultConstraint {
			// One write that cannot be must not hold up the others.
			batch = l.oneByOne(batch)
			err = nil
		}
		if (err != nil) != failing {
			failing = err != nil
			if l.problem != nil {
				l.problem(err)
			}
		}
		if err == nil {
			for _, o := range batch {
				o.finish(nil)
			}
			continue
		}
		// Who waits decides what to do; the rest is tried again, in order.
		var again []*op
		for _, o := range batch {
			if o.waited || closed {
				o.finish(err)
			} else {
				again = append(again, o)
			}
		}
		l.mu.Lock()
		l.queue = append(again, l.queue...)
		l.mu.Unlock()
		time.Sleep(failurePause)
	}
}

// oneByOne commits each write by itself and gives up those that cannot be; it
// returns the others.
func (l *Ledger) oneByOne(batch []*op) (good []*op) {
	for _, o := range batch {
		if err := l.commit([]*op{o}); err != nil {
			o.finish(err)
			continue
		}
		good = append(good, o)
	}
	return good
}

func (l *Ledger) commit(batch []*op) (err error) {
	end, err := sqlitex.ImmediateTransaction(l.write)
	if err != nil {
		return err
	}
	defer end(&err)
	for _, o := range batch {
		if err := o.do(l.write); err != nil {
			return err
		}
	}
	return nil
}
