//go:build cgo && !nonative

package local

import (
	"runtime"
	"slices"
	"time"
)

// startMasks lets the masks of this step's choices be computed while it
// decodes: they depend on earlier tokens only. It takes a core that the
// decoding does not use; with none to spare it would hold the step up.
func (e *engine) startMasks() bool {
	if e.cfg.Without.MaskOverlap || e.threads >= runtime.GOMAXPROCS(0) || !e.listMasks() {
		return false
	}
	e.masks <- struct{}{}
	return true
}

// shareMasks is the work on masks, estimated, from which on a second core is
// asked for help: waking it, and its looking for more to do when the next step
// has begun, cost the step more than a few masks do.
const shareMasks = time.Millisecond

// finishMasks computes the masks that are still to do and that no guess saves,
// on two cores where they take long.
func (e *engine) finishMasks() {
	if !e.listMasks() {
		return
	}
	for _, s := range e.todo {
		e.guess(s)
	}
	e.todo = slices.DeleteFunc(e.todo, func(s *sequence) bool { return s.guessed })
	n := len(e.todo)
	if n == 0 {
		return
	}
	share := n > 1 && time.Duration(n)*e.maskCost >= shareMasks && !e.cfg.Without.MaskOverlap
	began := time.Now()
	if share {
		e.masks <- struct{}{}
	}
	e.workMasks()
	cost := time.Since(began) / time.Duration(n)
	if share {
		<-e.masked
		cost = 2 * time.Since(began) / time.Duration(n)
	}
	e.maskCost += (cost - e.maskCost) / 8
}

// listMasks lists the sequences whose mask is needed and not there.
func (e *engine) listMasks() bool {
	clear(e.todo)
	e.todo = e.todo[:0]
	e.next.Store(0)
	for _, s := range e.running {
		if s.chooses && s.needsMask() {
			e.todo = append(e.todo, s)
		}
	}
	return len(e.todo) > 0
}

// workMasks takes one sequence of the list after the other.
func (e *engine) workMasks() {
	for {
		i := int(e.next.Add(1)) - 1
		if i >= len(e.todo) {
			return
		}
		e.todo[i].allowed()
		e.masksMade.Add(1)
	}
}

func (e *engine) maskLoop() {
	for range e.masks {
		e.workMasks()
		e.masked <- struct{}{}
	}
}
