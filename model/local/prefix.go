package local

// slot is one sequence of the cache and the tokens it holds.
type slot struct {
	tokens []int32
	busy   bool
	used   uint64 // when it was last used, by a counter
}

// slots are the sequences of a context. Idle ones keep the prompts and
// answers of earlier calls, to be shared by later ones.
type slots struct {
	all   []slot
	total int // positions the context has
	clock uint64
}

func newSlots(n, total int) *slots {
	return &slots{all: make([]slot, n), total: total}
}

// cache is what slots does to the context.
type cache interface {
	remove(seq, from int) bool
	share(from, to, n int)
}

// take picks a slot for a prompt and fills it with as much of the prompt as
// any slot holds. It returns the slot and how many tokens are there already;
// at least the last one is left to decode. With reuse off the slot is empty.
func (s *slots) take(c cache, prompt []int32, reuse bool) (at, have int) {
	s.clock++
	from := -1
	if reuse {
		for i := range s.all {
			if n := min(common(s.all[i].tokens, prompt), len(prompt)-1); n > have || n == have && n > 0 && !s.all[i].busy {
				from, have = i, n
			}
		}
	}
	at = s.idle(from, have)
	switch {
	case from == at:
		// Goes on in place: nothing of worth is lost.
	case from >= 0:
		s.drop(c, at)
		c.share(from, at, have)
	default:
		s.drop(c, at)
	}
	if from == at && len(s.all[at].tokens) > have && !c.remove(at, have) {
		s.drop(c, at)
		have = 0
	}
	s.all[at].tokens = append(s.all[at].tokens[:0], prompt[:have]...)
	s.all[at].busy, s.all[at].used = true, s.clock
	return at, have
}

// idle picks the slot to use: the source itself when most of it is shared,
// else an empty one, else the one unused for longest.
func (s *slots) idle(from, have int) int {
	if from >= 0 && !s.all[from].busy && have*4 >= len(s.all[from].tokens)*3 {
		return from
	}
	best := -1
	for i := range s.all {
		sl := &s.all[i]
		switch {
		case sl.busy:
		case len(sl.tokens) == 0:
			return i
		case i == from: // worth more as a source
		case best < 0 || sl.used < s.all[best].used:
			best = i
		}
	}
	if best < 0 {
		return from
	}
	return best
}

// common is how many tokens two sequences share from the start.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// drop forgets a whole slot.
func (s *slots) drop(c cache, i int) {
	if len(s.all[i].tokens) > 0 {
		c.remove(i, 0)
	}
	s.all[i].tokens = s.all[i].tokens[:0]
}

// decoded notes tokens that are now in the cache.
func (s *slots) decoded(i int, tokens []int32) {
	s.all[i].tokens = append(s.all[i].tokens, tokens...)
}

// give ends the use of a slot; keep says that its tokens may serve others.
func (s *slots) give(c cache, i int, keep bool) {
	s.clock++
	s.all[i].busy, s.all[i].used = false, s.clock
	if !keep {
		s.drop(c, i)
	}
}

// room makes n positions free by dropping idle slots, those unused for
// longest first. Positions that slots share are counted once for each, so it
// may drop earlier than it must.
func (s *slots) room(c cache, n int) {
	for {
		used, oldest := n, -1
		for i := range s.all {
			used += len(s.all[i].tokens)
			if !s.all[i].busy && len(s.all[i].tokens) > 0 && (oldest < 0 || s.all[i].used < s.all[oldest].used) {
				oldest = i
			}
		}
		if used <= s.total || oldest < 0 {
			return
		}
		s.drop(c, oldest)
	}
}

// clear forgets everything; the caller clears the context.
func (s *slots) clear() {
	for i := range s.all {
		s.all[i].tokens = s.all[i].tokens[:0]
	}
}
