package local

import (
	"testing"
	"time"
)

// machine says how long a step takes with so many threads.
type machine func(threads int) time.Duration

func quiet(n int) time.Duration { return 10 * time.Millisecond / time.Duration(n) }

// busy has one core fewer than threads that want one: everybody waits.
func busy(n int) time.Duration {
	if n == 1 {
		return 12 * time.Millisecond
	}
	return 40 * time.Millisecond
}

func (p *pace) run(m machine, steps int) (total time.Duration) {
	for range steps {
		t := m(p.threads(1))
		p.done(1, t)
		total += t
	}
	return total
}

func TestPaceFollowsTheMachine(t *testing.T) {
	p := newPace(2)
	best := 1000 * quiet(2)
	if got := p.run(quiet, 1000); got > best*101/100+50*time.Millisecond {
		t.Errorf("quiet: %v for %v of work", got, best)
	}
	best = 1000 * busy(1)
	if got := p.run(busy, 1000); got > best*105/100+200*time.Millisecond {
		t.Errorf("busy: %v for %v of work", got, best)
	}
	// Quiet again: it comes back.
	p.run(quiet, 600)
	best = 1000 * quiet(2)
	if got := p.run(quiet, 1000); got > best*102/100+50*time.Millisecond {
		t.Errorf("quiet again: %v for %v of work", got, best)
	}
}

// A trial of a size that does not come again holds no other up.
func TestPaceGivesTrialsUp(t *testing.T) {
	p := newPace(2)
	p.run(quiet, 100)
	for p.trial < 0 {
		p.done(8, quiet(p.threads(8)))
	}
	best := 1000 * busy(1)
	if got := p.run(busy, 1000); got > best*105/100+1500*time.Millisecond {
		t.Errorf("busy: %v for %v of work", got, best)
	}
}

func TestPaceOfOneThread(t *testing.T) {
	p := newPace(1)
	if p.run(busy, 10); p.threads(1) != 1 {
		t.Error("another number of threads than one")
	}
	if got := newPace(8).choices; len(got) != 4 || got[1] != 7 {
		t.Errorf("choices are %v", got)
	}
}
