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

// lookUp appends to out what followed the newest tokens of seen the last time,
// at most n tokens: as many as agreed, for a longer agreement goes on longer.
func lookUp(out, seen []int32, n int) []int32 {
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
	if best < draftLeast {
		return out
	}
	return append(out, seen[at:min(end, at+min(n, best, draftMost))]...)
}

// drafter decides whether drafts pay, from what steps have cost and how many
// drafts were right.
type drafter struct {
	cost   [draftStep + 1]float64 // seconds of a step by its tokens, a moving average; 0: not known
	right  float64                // part of the drafted tokens that were chosen, a moving average
	always bool                   // in tests
	// Where drafts do not pay, one is tried now and then: the machine may be
	// another by then.
	wait, every int
}

const (
	draftAverage    = 0.1
	draftFaster     = 0.5
	draftTrialFirst = 32
	draftTrialMost  = 256
)

func newDrafter() drafter { return drafter{right: 0.5, every: draftTrialFirst} }

// pays reports whether a step of n tokens, which choose for so many sequences,
// should have more drafted tokens.
func (d *drafter) pays(n, choosing, more int) bool {
	if n+more > draftStep {
		return false
	}
	with, without := d.cost[n+more], d.cost[n]
	if d.always || with == 0 || without == 0 || with*float64(choosing) < without*(float64(choosing)+d.right*float64(more)) {
		d.wait, d.every = 0, draftTrialFirst
		return true
	}
	if d.wait++; d.wait < d.every {
		return false
	}
	d.wait, d.every = 0, min(2*d.every, draftTrialMost)
	return true
}

// took notes what a step of n tokens cost.
func (d *drafter) took(n int, t time.Duration) {
	if n > draftStep {
		return
	}
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
	d.right += draftAverage * (float64(chosen)/float64(drafted) - d.right)
}
