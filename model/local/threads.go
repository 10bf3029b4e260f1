package local

import (
	"math/bits"
	"time"
)

// pace chooses the number of threads of each step. All threads of a step wait
// for each other many times, so where another program has one of the cores,
// fewer threads are faster, several times at that. pace measures: it tries a
// neighbouring number now and then, rarely while nothing changes, and keeps
// the faster one.
type pace struct {
	choices []int // numbers of threads, most first
	at      int   // the choice in use
	// cost holds a moving average per size of step and choice, in seconds;
	// 0: not measured.
	cost  [12][]float64
	next  int // steps until the next trial
	every int // steps between trials
	trial int // choice being tried, -1: none
	up    bool
	got   float64 // best time of the trial's steps so far
	want  int     // steps left of the trial
	size  int     // size of step the trial is about
	other int     // steps of another size that the trial still waits through
}

const (
	trialSteps   = 2
	trialLargest = 32 // tokens of a step that may serve as a trial
	trialFirst   = 4
	trialMost    = 512
	trialOthers  = 16
)

func newPace(threads int) *pace {
	p := &pace{trial: -1, next: trialFirst, every: 2 * trialFirst}
	for _, n := range []int{threads, threads - 1, threads / 2, 1} {
		if n >= 1 && (len(p.choices) == 0 || n < p.choices[len(p.choices)-1]) {
			p.choices = append(p.choices, n)
		}
	}
	for i := range p.cost {
		p.cost[i] = make([]float64, len(p.choices))
	}
	return p
}

func sizeOf(tokens int) int { return min(bits.Len(uint(tokens)), len(pace{}.cost)-1) }

// threads is the number for a step of so many tokens.
func (p *pace) threads(tokens int) int {
	if len(p.choices) == 1 {
		return p.choices[0]
	}
	if p.trial < 0 && p.next <= 0 && tokens <= trialLargest && p.cost[sizeOf(tokens)][p.at] > 0 {
		p.begin(sizeOf(tokens))
	}
	if p.trial >= 0 && p.size == sizeOf(tokens) {
		return p.choices[p.trial]
	}
	return p.choices[p.at]
}

// begin starts a trial of a neighbour of the choice in use.
func (p *pace) begin(size int) {
	p.trial = p.at + 1
	if p.at == len(p.choices)-1 || p.up && p.at > 0 {
		p.trial = p.at - 1
	}
	p.up = !p.up
	p.size, p.want, p.got, p.other = size, trialSteps, 0, trialOthers
}

// done notes how long a step took that ran with the number threads gave.
func (p *pace) done(tokens int, took time.Duration) {
	if len(p.choices) == 1 {
		return
	}
	size, t := sizeOf(tokens), took.Seconds()
	if p.trial >= 0 && p.size == size {
		if p.got == 0 || t < p.got {
			p.got = t
		}
		if p.want--; p.want == 0 {
			p.judge()
		}
		return
	}
	if p.trial >= 0 {
		if p.other--; p.other == 0 {
			p.trial, p.next = -1, 1 // with a size that comes oftener
		}
	}
	p.next--
	known := &p.cost[size][p.at]
	switch {
	case *known == 0:
		*known = t
	default:
		if t > 3**known && p.every > trialFirst {
			// Something has changed: look soon.
			p.every = trialFirst
			p.next = min(p.next, 1)
		}
		*known += 0.2 * (t - *known)
	}
}

// judge ends a trial: a clearly faster choice is taken.
func (p *pace) judge() {
	p.cost[p.size][p.trial] = p.got
	if p.got < 0.9*p.cost[p.size][p.at] {
		p.at = p.trial
		p.every = 2 * trialFirst
	} else {
		p.every = min(2*p.every, trialMost)
	}
	p.trial, p.next = -1, p.every
}
