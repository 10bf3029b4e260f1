package local

import "time"

// Drafts are tokens decoded ahead of their choice: what followed the last time
// the newest tokens stood in the same order, in the prompt or the answer. The
// step that decodes the newest token decodes them too; each is then chosen as
// ever, and those that turn out otherwise are taken back. A step of a few
// tokens costs little more than one of a single token where the kernels read
// the weights once for all of them.
const (
	draftLeast = 2    // tokens that must agree
	draftMost  = 6    // tokens drafted at once
	draftReach = 8192 // newest tokens that are looked through
	draftLong  = 8    // agreement that is looked for no further
	// draftStep is the most tokens of a step with drafts.
	draftStep = 16
)

// lookBack appends to out what followed the newest tokens of seen the last time,
// at most n tokens: as many as agreed, for a longer agreement goes on longer.
func lookBack(out, seen []int32, n int) []int32 {
	seen = seen[max(0, len(seen)-draftReach):]
	end := len(seen)
	best, at := 0, 0
	for i := end - 1; i >= draftLeast && best < draftLong; i-- {
		// What ends before i agrees with what ends before end.
		same := 0
		for same < draftLong && same < i && seen[i-1-same] == seen[end-1-same] {
			same++
		}
		if same > best {
			best, at = same, i
		}
	}
	if best < draftLeast || n <= 0 {
		return out
	}
	return append(out, seen[at:min(end, at+min(n, best, draftMost))]...)
}

// drafter decides how long drafts are, from what steps have cost by their
// tokens and how many drafted tokens were right.
type drafter struct {
	steps int                    // decisions so far
	cost  [draftStep + 1]float64 // seconds of a step by its tokens, a moving average; 0: not known
	// right is how often the first, second, … drafted token was chosen, a
	// moving average.
	right [draftMost]float64
	// A cost that was not measured for long may be another by then: such a
	// step is tried now and then, rarely where it disappoints.
	measured, every [draftStep + 1]int
	tried           int // decision that was the last such trial

	always bool // in tests: as long as they come
}

const (
	draftAverage    = 0.1
	draftFaster     = 0.5
	draftTrialFirst = 32
	draftTrialMost  = 512
)

func newDrafter() *drafter {
	d := new(drafter)
	for i := range d.right {
		d.right[i] = 0.7
	}
	for i := range d.every {
		d.every[i] = draftTrialFirst
	}
	return d
}

// length is how many tokens of each draft a step of n tokens should have beside,
// where it chooses for so many sequences and drafts are the lengths there are:
// the number that gives the most tokens a second.
func (d *drafter) length(n, choosing int, drafts []int) int {
	d.steps++
	if n > draftStep {
		return 0
	}
	best, bestSize, most, last := 0, n, float64(choosing)/d.cost[n], 0 // +Inf: not known
	trial, trialSize := 0, 0
	for l := 1; l <= draftMost; l++ {
		more, tokens := 0, float64(choosing)
		for _, have := range drafts {
			k := min(have, l)
			more += k
			for _, p := range d.right[:k] {
				tokens += p
			}
		}
		if more == last || n+more > draftStep {
			break
		}
		last = more
		switch at := n + more; {
		case d.always:
			best = l
		case d.cost[at] == 0 && d.cost[n] > 0:
			return l
		case tokens/d.cost[at] > most:
			best, bestSize, most = l, at, tokens/d.cost[at]
		case d.steps-d.measured[at] > d.every[at] && d.steps-d.tried > draftTrialFirst:
			trial, trialSize = l, at
		}
	}
	if trial > 0 {
		d.tried, d.every[trialSize] = d.steps, min(2*d.every[trialSize], draftTrialMost)
		return trial
	}
	d.every[bestSize] = draftTrialFirst
	return best
}

// took notes what a step of n tokens cost.
func (d *drafter) took(n int, t time.Duration) {
	if n > draftStep {
		return
	}
	d.measured[n] = d.steps
	c, s := &d.cost[n], t.Seconds()
	switch {
	case *c == 0:
		*c = s
	case s < *c:
		*c += draftFaster * (s - *c) // what was slow once is soon forgotten
	default:
		*c += draftAverage * (s - *c)
	}
}

// judged notes how many of the drafted tokens were chosen.
func (d *drafter) judged(drafted, chosen int) {
	for i := range drafted {
		hit := 0.0
		if i < chosen {
			hit = 1
		}
		d.right[i] += draftAverage * (hit - d.right[i])
	}
}
