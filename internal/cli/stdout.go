package cli

import (
	"io"
	"sync"
)

// watchedWriter remembers that a write failed, so that no command whose output
// went to a full disk calls itself done.
type watchedWriter struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

func (o *watchedWriter) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil {
		o.mu.Lock()
		if o.err == nil {
			o.err = err
		}
		o.mu.Unlock()
	}
	return n, err
}

func (o *watchedWriter) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
