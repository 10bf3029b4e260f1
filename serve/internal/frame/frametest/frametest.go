// Package frametest drives a server over a pipe with whatever a client may
// send.
package frametest

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// Ends gives a server the whole input. It ends with it, within patience, and
// each line that it has written until then is one message.
func Ends(t *testing.T, in []byte, patience time.Duration, serve func(in io.Reader, out io.Writer) error) {
	t.Helper()
	var out Output
	ended := make(chan error, 1)
	go func() { ended <- serve(bytes.NewReader(in), &out) }()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	for _, line := range strings.Split(strings.TrimSpace(out.Text()), "\n") {
		if line != "" && !json.Valid([]byte(line)) {
			t.Fatalf("not a message: %q", line)
		}
	}
}

// Output keeps what is written until it is read; the zero value is ready.
type Output struct {
	mu   sync.Mutex
	b    bytes.Buffer
	over bool
}

// Write keeps p, or drops it after Text.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return len(p), nil // nobody reads it any more
	}
	return o.b.Write(p)
}

// Text is what was written, and the end of keeping.
func (o *Output) Text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	return o.b.String()
}
