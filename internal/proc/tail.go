package proc

import "strings"

// Tail is a writer that keeps the end of what is written. It is for one
// goroutine at a time.
type Tail struct {
	// Keep is how many bytes are kept.
	Keep int
	buf  []byte
}

// Write takes everything and never fails.
func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > t.Keep {
		p = p[len(p)-t.Keep:]
	}
	t.buf = append(t.buf, p...)
	if n := len(t.buf); n > 2*t.Keep {
		t.buf = append(t.buf[:0], t.buf[n-t.Keep:]...)
	}
	return n, nil
}

// String is the end of what was written, in UTF-8.
func (t *Tail) String() string {
	b := t.buf[max(len(t.buf)-t.Keep, 0):]
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
