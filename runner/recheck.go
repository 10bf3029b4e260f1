package runner

import (
	"agentgraph/agents"
	"agentgraph/record"
)

// After a ledger was rebuilt, or when every file of a folder was touched, a
// great many files are there whose look is not known but whose content most
// likely had its turn. Comparing them takes a while, and a new input must not
// wait for it: they are compared beside the turns, without a slot.

// manyFiles is how many files must be ready at once for that; fewer are
// claimed together with the others, in their order.
const manyFiles = 64

// recheckWorkers bounds the folders that are compared at once.
const recheckWorkers = 2

// split takes those out of the ready files whose path had a turn before.
func (in *intake) split(ready []*candidate) (fresh, old []*candidate) {
	if len(ready) <= manyFiles || in.st.settings().Join == agents.JoinAll {
		return ready, nil
	}
	var past map[string]bool
	if !in.pastRead {
		var err error
		if past, err = in.r.ledger.InputPaths(in.st.name); err != nil {
			in.r.problem(in.st.name, err.Error(), "")
			return ready, nil
		}
		in.pastRead = true // from then on the looks tell
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, c := range ready {
		_, seen := in.prints[c.name]
		if seen || past[in.rel+"/"+c.name] {
			old = append(old, c)
		} else {
			fresh = append(fresh, c)
		}
	}
	return fresh, old
}

// recheck compares files with the turns that their paths had, and hands those
// with another content to the scheduler. Called with Runner.mu held.
func (in *intake) recheck(old []*candidate) {
	r := in.r
	r.rechecking++
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		defer func() {
			r.mu.Lock()
			r.rechecking--
			r.pump()
			r.mu.Unlock()
		}()
		select {
		case r.recheckSlots <- struct{}{}:
			defer func() { <-r.recheckSlots }()
		case <-r.ctx.Done():
		case <-r.finish:
		}
		for _, c := range old {
			had := in.hadItsTurn(c)
			r.mu.Lock()
			if in.closed || r.stopping {
				r.mu.Unlock()
				return
			}
			if !had {
				in.st.queue = append(in.st.queue, c)
				r.activate(in.st)
				r.pump()
			}
			r.mu.Unlock()
		}
	}()
}

// hadItsTurn reports whether a file's content had its turn, and then notes its
// look. What cannot be read is left to the claim, which says why.
func (in *intake) hadItsTurn(c *candidate) bool {
	p, err := in.r.read(in.st, c, 0)
	if err != nil {
		return false
	}
	todo, _, _, err := in.r.missing(in.st.name, identity(in.st.name, []record.FileRef{p.ref()}), 1)
	if err != nil || len(todo) > 0 {
		return false
	}
	in.r.settleParts(in.st, []*part{p})
	return true
}
