package distill

import (
	"slices"

	"agentgraph/record"
)

// ratings are what other agents answered about answers: for each value that is
// asked for and each answer, the mean of the numbers, else the last text.
type ratings struct {
	refs   []Ref
	values []map[uint64]rating // per ref, by file
}

type rating struct {
	sum  float64
	n    int32 // numbers in sum
	last any   // where it is no number
}

func newRatings(refs []Ref) *ratings {
	r := &ratings{}
	for _, ref := range refs {
		if !slices.ContainsFunc(r.refs, ref.is) {
			r.refs = append(r.refs, ref)
			r.values = append(r.values, map[uint64]rating{})
		}
	}
	return r
}

func (r Ref) is(other Ref) bool { return r.Agent == other.Agent && slices.Equal(r.Path, other.Path) }

// add notes what a rating agent answered about its inputs.
func (r *ratings) add(c *candidate) {
	for i, ref := range r.refs {
		if ref.Agent != c.a.Agent {
			continue
		}
		v, ok := valueAt(c.text, ref.Path)
		if !ok {
			continue
		}
		for _, in := range c.rec.Inputs {
			old := r.values[i][fileKey(in)]
			if f, ok := plainValue(v).(float64); ok {
				old.sum += f
				old.n++
			} else {
				old.last = v
			}
			r.values[i][fileKey(in)] = old
		}
	}
}

// get is the value of a reference for an answer's file.
func (r *ratings) get(ref Ref, path, sha256 string) (any, bool) {
	i := slices.IndexFunc(r.refs, ref.is)
	v, ok := r.values[i][fileKey(record.FileRef{Path: path, SHA256: sha256})]
	switch {
	case !ok:
		return nil, false
	case v.n > 0:
		return v.sum / float64(v.n), true
	}
	return v.last, true
}

// scoreOf is the score of an answer; nil where there is none.
func (x *exporter) scoreOf(c *candidate) *float64 {
	if x.score == nil {
		return nil
	}
	v, ok := x.value(c, *x.score)
	if f, is := plainValue(v).(float64); ok && is {
		return &f
	}
	return nil
}

// group is the best and the worst answer to one request.
type group struct {
	bestID, worstID string
	best, worst     float64
}

// groupKey is the same for answers to the same question under the same schema.
func groupKey(r *record.Record) uint64 {
	return hashKey("request", deref(r.Agent), schemaHash(r), compactJSON(r.Request.Messages), toolsJSON(r.Request.Tools))
}

// addToGroup notes an answer's score. Of equal ones the first stays.
func (x *exporter) addToGroup(c *candidate) {
	score := x.scoreOf(c)
	if score == nil {
		return
	}
	key := groupKey(c.rec)
	g := x.groups[key]
	if g == nil {
		x.groups[key] = &group{c.a.TurnID, c.a.TurnID, *score, *score}
		return
	}
	if *score > g.best {
		g.best, g.bestID = *score, c.a.TurnID
	}
	if *score < g.worst {
		g.worst, g.worstID = *score, c.a.TurnID
	}
}

// examples are what one answer gives: itself, or the pairs in which it was
// chosen.
func (x *exporter) examples(c *candidate) ([]*example, error) {
	one := example{rec: c.rec, path: c.a.Path, sha256: c.sha256, answer: c.text, score: x.scoreOf(c)}
	if x.opt.Layout != Preference {
		return []*example{&one}, nil
	}
	var list []*example
	if r := c.rec.Repair; r != nil && r.Status == record.RepairSucceeded && r.Rejected != nil && *r.Rejected != c.text {
		e := one
		e.pair, e.rejected = "repair", *r.Rejected
		list = append(list, &e)
	}
	if x.score == nil {
		return list, nil
	}
	g := x.groups[groupKey(c.rec)]
	if g == nil || g.bestID != c.a.TurnID || g.best <= g.worst {
		return list, nil
	}
	other, err := c.a.Folder.record(g.worstID)
	if err != nil {
		return nil, err
	}
	rejected, ok := other.Answer()
	if !ok || rejected == c.text {
		return list, nil
	}
	e := one
	e.pair, e.rejected, e.rejectedID, e.rejectedScore = "samples", rejected, g.worstID, &g.worst
	return append(list, &e), nil
}
