package runner

import (
	"fmt"
	"slices"
	"strings"

	"agentgraph/record"
)

// joiner puts together the sets of an agent with join: all: one file of each
// input folder, all with the same lineage. Guarded by Runner.mu.
type joiner struct {
	r    *Runner
	st   *agentState
	sets map[string]*set
	used map[string]bool // parts that had their turn
}

// set is the files so far that go back to the same roots.
type set struct {
	roots []record.FileRef
	parts map[string][]*part // by folder
}

func newJoiner(r *Runner, st *agentState) *joiner {
	return &joiner{r: r, st: st, sets: map[string]*set{}}
}

func partKey(path, sha string) string { return path + "\x00" + sha }

// loadUsed reads which parts had their turn before. Called without mu.
func (jn *joiner) loadUsed() (map[string]bool, error) {
	turns, err := jn.r.ledger.Of(jn.st.name)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, t := range turns {
		for _, in := range t.Inputs {
			used[partKey(in.Path, in.SHA256)] = true
		}
	}
	return used, nil
}

// join takes a file that is ready and makes a candidate of every set that it
// completes. It runs as the claim of a job that then ends.
func (r *Runner) join(st *agentState, c *candidate) {
	r.mu.Lock()
	jn := st.joiner
	loaded := jn != nil && jn.used != nil
	r.mu.Unlock()
	if jn == nil {
		c.in.release(c)
		return
	}
	p, ok := r.readOrBlock(st, c)
	if !ok {
		return
	}
	if !loaded {
		used, err := jn.loadUsed()
		if err != nil {
			r.block(st, c, err.Error(), "")
			return
		}
		r.mu.Lock()
		if jn.used == nil {
			jn.used = used
		}
		r.mu.Unlock()
	}
	from, _, err := r.origin(p)
	if err != nil {
		r.block(st, c, err.Error(), "")
		return
	}
	r.mu.Lock()
	if jn.used[partKey(p.path, p.sha)] {
		r.mu.Unlock()
		r.settleParts(st, []*part{p})
		return
	}
	defer r.mu.Unlock()
	key := rootsKey(from.Roots)
	s := jn.sets[key]
	if s == nil {
		s = &set{roots: from.Roots, parts: map[string][]*part{}}
		jn.sets[key] = s
	}
	dir := p.in.dir
	// A newer content of the same file takes the older one's place.
	s.parts[dir] = slices.DeleteFunc(s.parts[dir], func(x *part) bool { return x.path == p.path })
	s.parts[dir] = append(s.parts[dir], p)
	a := st.current()
	for {
		var whole []*part
		for _, dir := range a.Inputs {
			if len(s.parts[dir]) == 0 {
				return
			}
			whole = append(whole, s.parts[dir][0])
		}
		for _, dir := range a.Inputs {
			s.parts[dir] = s.parts[dir][1:]
		}
		if !slices.ContainsFunc(a.Inputs, func(d string) bool { return len(s.parts[d]) > 0 }) {
			delete(jn.sets, key)
		}
		for _, p := range whole {
			jn.used[partKey(p.path, p.sha)] = true
			p.data = nil
		}
		st.queue = append(st.queue, &candidate{set: whole})
		r.activate(st)
	}
}

func rootsKey(roots []record.FileRef) string {
	keys := make([]string, len(roots))
	for i, f := range roots {
		keys[i] = partKey(f.Path, f.SHA256)
	}
	slices.Sort(keys)
	return strings.Join(keys, "\x00\x00")
}

// incomplete says for each set that waits what it lacks. Called with mu held.
func (jn *joiner) incomplete() []string {
	if jn == nil {
		return nil
	}
	var list []string
	for _, s := range jn.sets {
		var lacks []string
		for _, dir := range jn.st.current().Inputs {
			if len(s.parts[dir]) == 0 {
				lacks = append(lacks, jn.r.rel(dir))
			}
		}
		if len(lacks) == 0 {
			continue
		}
		roots := make([]string, len(s.roots))
		for i, f := range s.roots {
			roots[i] = f.Path
		}
		list = append(list, fmt.Sprintf("%s: nothing yet in %s", strings.Join(roots, ", "), strings.Join(lacks, ", ")))
	}
	slices.Sort(list)
	return list
}

// readSet reads the parts of a set again; the set is broken up when one has
// changed meanwhile.
func (r *Runner) readSet(st *agentState, parts []*part) ([]*part, bool) {
	whole := make([]*part, len(parts))
	for i, p := range parts {
		q, ok := r.readOrBlock(st, p.cand)
		if !ok || q.sha != p.sha {
			r.mu.Lock()
			for _, p := range parts {
				if st.joiner != nil {
					delete(st.joiner.used, partKey(p.path, p.sha))
				}
				p.in.release(p.cand)
				p.in.mark(p.cand.name)
			}
			r.mu.Unlock()
			return nil, false
		}
		whole[i] = q
	}
	return whole, true
}
