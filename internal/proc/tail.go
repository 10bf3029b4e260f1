package proc

import (
	"bytes"
	"strings"
)

// Tail is a writer that keeps the end of what is written. It is for one
// goroutine at a time.
type Tail struct {
	// Keep is how many bytes are kept.
	Keep int
	buf  []byte
	lost bool // something before buf
}

// Write takes everything and never fails.
func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > t.Keep {
		p, t.lost = p[len(p)-t.Keep:], true
	}
	t.buf = append(t.buf, p...)
	if n := len(t.buf); n > 2*t.Keep {
		t.buf, t.lost = append(t.buf[:0], t.buf[n-t.Keep:]...), true
	}
	return n, nil
}

// String is the end of what was written, in UTF-8. A line or word that is cut
// at the beginning is left out: it may end with a part of a secret.
func (t *Tail) String() string {
	cut := max(len(t.buf)-t.Keep, 0)
	b := t.buf[cut:]
	if t.lost || cut > 0 {
		if i := bytes.IndexAny(b, "\n "); i >= 0 {
			b = b[i+1:]
		} else {
			b = nil
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
