package runner

import "time"

// rate counts turns and tokens over the last minute. Guarded by Runner.mu.
type rate struct {
	seconds [60]struct {
		at            int64
		turns, tokens int
	}
}

func (x *rate) add(now time.Time, tokens int) {
	at := now.Unix()
	s := &x.seconds[uint64(at)%60]
	if s.at != at {
		s.at, s.turns, s.tokens = at, 0, 0
	}
	s.turns++
	s.tokens += tokens
}

// perMinute is what the last 60 seconds came to.
func (x *rate) perMinute(now time.Time) (turns, tokens int) {
	at := now.Unix()
	for _, s := range x.seconds {
		if at-s.at < 60 && s.at <= at {
			turns += s.turns
			tokens += s.tokens
		}
	}
	return turns, tokens
}
