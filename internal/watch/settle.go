package watch

import "time"

// Rule says when a file has stopped changing.
type Rule struct {
	// Quiet is how long size and time must stay equal.
	Quiet time.Duration
	// Max is how long to wait at most, from the first look.
	Max time.Duration
	// Always waits Quiet also when no writer has the file open, for writers
	// that open and close one file several times.
	Always bool
}

// Look is what one look at a file showed.
type Look struct {
	Size    int64
	ModTime time.Time
	// Open and Known are what Writing said.
	Open, Known bool
}

// Settling follows one file until it is ready. The zero value is a file not
// looked at yet.
type Settling struct {
	first, since time.Time
	last         Look
	looks        int
}

// The pauses between looks at a file that a writer has open.
const (
	firstPause = 2 * time.Millisecond
	longPause  = 100 * time.Millisecond
)

// See takes a look at time now. It returns whether the file is ready and, when
// it is not, how long to wait before the next look.
func (s *Settling) See(rule Rule, now time.Time, l Look) (ready bool, again time.Duration) {
	if s.first.IsZero() {
		s.first = now
	}
	if s.looks == 0 || l.Size != s.last.Size || !l.ModTime.Equal(s.last.ModTime) {
		s.since = now
	}
	s.last = l
	s.looks++

	waited, quiet := now.Sub(s.first), now.Sub(s.since)
	switch {
	case waited >= rule.Max:
		return true, 0
	case l.Known && !l.Open && !rule.Always:
		return true, 0
	case !(l.Known && l.Open) && quiet >= rule.Quiet:
		return true, 0
	}
	left := rule.Max - waited
	if l.Known && l.Open {
		// Nothing tells when a writer closes a file: look again soon, then
		// less often.
		pause := firstPause << min(s.looks-1, 10)
		return false, min(pause, longPause, left)
	}
	return false, max(min(rule.Quiet-quiet, left), time.Millisecond)
}
