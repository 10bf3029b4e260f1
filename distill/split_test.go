package distill_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"agentgraph/distill"
	"agentgraph/model"
	"agentgraph/record"
)

// Whatever ties two answers to one input keeps them in one split: the same
// text under two names, several roots, earlier turns in the conversation, an
// answer that is read without its lineage.
func TestSplitKeepsInputsTogether(t *testing.T) {
	g := newGraphDir(t)
	rootOf := map[string]string{} // turn → what it goes back to
	note := func(m *made, root string) *made {
		rootOf[*m.rec.TurnID] = root
		return m
	}
	for i := range 60 {
		in := fmt.Sprintf("input %d", i)
		// Every answer says the same: content alone must tie nothing together.
		w := note(g.turn("writer", in, "yes"), in)
		note(g.turn("writer", in, "no"), in) // the same text again
		note(g.turn("rater", "yes", fmt.Sprintf(`{"rating":%d}`, i%5), shaped, about(w)), in)
		// Nobody told this one where its input comes from.
		note(g.turn("reader", "yes", "read", func(m *made) {
			m.rec.Inputs = w.rec.Outputs
			m.rec.Lineage = &record.Lineage{Roots: w.rec.Outputs}
		}), in)
		if i%10 == 9 {
			// Several roots: these two inputs belong together from now on.
			note(g.turn("joiner", "both", "joined", func(m *made) {
				m.rec.Lineage = &record.Lineage{Roots: []record.FileRef{fileRef("in/a", in), fileRef("in/b", fmt.Sprintf("input %d", i-1))}}
			}), in)
			for id, root := range rootOf {
				if root == fmt.Sprintf("input %d", i-1) {
					rootOf[id] = in
				}
			}
		}
		if i%10 == 5 {
			// A conversation that holds an earlier input.
			note(g.turn("talker", fmt.Sprintf("talk %d", i), "said", func(m *made) {
				u := m.rec.Request.Messages
				m.rec.Request.Messages = []model.Message{u[0], {Role: model.User, Content: in}, {Role: model.Assistant, Content: "yes"}, u[1]}
			}), in)
		}
	}
	share := []distill.Share{{Name: "train", Weight: 70}, {Name: "valid", Weight: 20}, {Name: "test", Weight: 10}}
	seen := map[uint64]string{}
	for seed := range uint64(2) {
		_, dir := g.export(distill.ExportOptions{Split: share, SplitSeed: seed})
		splitOf, all, counts := map[string]string{}, "", map[string]int{}
		for _, s := range share {
			for _, row := range rows(t, filepath.Join(dir, s.Name+".jsonl")) {
				id := get(row, "id").(string)
				root := rootOf[id]
				if was, ok := splitOf[root]; ok && was != s.Name {
					t.Errorf("%s (%s): in %s and in %s", id, root, was, s.Name)
				}
				splitOf[root] = s.Name
				counts[s.Name]++
				all += id + s.Name
			}
		}
		if len(splitOf) != 54 {
			t.Errorf("%d inputs", len(splitOf))
		}
		// One agent alone: what ties its inputs together may be another's.
		_, dir = g.export(distill.ExportOptions{Split: share, SplitSeed: seed, Filter: distill.Filter{Agents: []string{"reader"}}})
		for _, s := range share {
			for _, row := range rows(t, filepath.Join(dir, s.Name+".jsonl")) {
				if root := rootOf[get(row, "id").(string)]; splitOf[root] != s.Name {
					t.Errorf("reader alone: %s is in %s, all of it in %s", root, s.Name, splitOf[root])
				}
			}
		}
		n := float64(len(rootOf))
		if c := float64(counts["train"]) / n; c < 0.55 || c > 0.85 || counts["test"] == 0 || counts["valid"] == 0 {
			t.Errorf("seed %d: %v of %v", seed, counts, n)
		}
		seen[seed] = all
	}
	if seen[0] == seen[1] {
		t.Error("another seed gives the same split")
	}
}

// A new answer moves no old one to another split.
func TestSplitIsStable(t *testing.T) {
	g := newGraphDir(t)
	opt := distill.ExportOptions{Split: []distill.Share{{Name: "train", Weight: 1}, {Name: "test", Weight: 1}}}
	where := func() map[string]string {
		_, dir := g.export(opt)
		m := map[string]string{}
		for _, s := range opt.Split {
			for _, row := range rows(t, filepath.Join(dir, s.Name+".jsonl")) {
				m[get(row, "id").(string)] = s.Name
			}
		}
		return m
	}
	for i := range 40 {
		g.turn("writer", fmt.Sprint("input ", i), "x")
	}
	before := where()
	for i := range 40 {
		g.turn("writer", fmt.Sprint("new ", i), "x")
	}
	after := where()
	for id, s := range before {
		if after[id] != s {
			t.Errorf("%s moved from %s to %s", id, s, after[id])
		}
	}
}

func TestParseSplit(t *testing.T) {
	got, err := distill.ParseSplit("train=0.9, test=0.1")
	if err != nil || fmt.Sprint(got) != "[{train 0.9} {test 0.1}]" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "train", "train=x", "a=-1", "a=NaN", "a=Inf", "a=1e308,b=1e308", "a=1,a=1", "x/y=1", strings.Repeat("a", 33) + "=1"} {
		if got, err := distill.ParseSplit(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}
