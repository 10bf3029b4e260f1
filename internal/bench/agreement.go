package bench

// Agreement is how far two runs of the same workload gave the same answers.
type Agreement struct {
	Same    int     `json:"same_answers"`
	Answers int     `json:"answers"`
	Alike   float64 `json:"alike"` // mean part of an answer's bytes before it differs
}

// Agree compares answers pairwise.
func Agree(a, b []Answer) Agreement {
	var g Agreement
	for i := range min(len(a), len(b)) {
		g.Answers++
		x, y := a[i].Text, b[i].Text
		n := 0
		for n < min(len(x), len(y)) && x[n] == y[n] {
			n++
		}
		switch longest := max(len(x), len(y)); {
		case x == y:
			g.Same++
			g.Alike++
		default:
			g.Alike += float64(n) / float64(longest)
		}
	}
	if g.Answers > 0 {
		g.Alike /= float64(g.Answers)
	}
	return g
}
