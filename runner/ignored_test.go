package runner

import (
	"testing"
)

// A file that somebody may have meant as an input is told of, once for its
// folder, whoever reads that; what editors leave is not.
func TestIgnoredInput(t *testing.T) {
	g := newGraph(t, "agents/a/input/sub/x.txt", "in a folder", "agents/a/input/x.txt~", "old", "agents/a/input/.x.swp", "x",
		"agents/b/agent.yaml", "inputs: [../a/input, input]\n", "agents/b/input/empty.txt", "")
	log := newLog()
	l := g.run(g.config(echo, log), log)
	ignored := func() (inputs []string) {
		for _, e := range log.all() {
			if e.Kind == InputIgnored {
				inputs = append(inputs, e.Inputs[0]+": "+e.Message)
			}
		}
		return inputs
	}
	if got := ignored(); len(got) != 1 || got[0] != "agents/a/input/sub: it is a folder" {
		t.Errorf("at the start it tells %q", got)
	}
	g.write("agents/b/input/notes.bak", "meant")
	l.until("a later one", func() bool { return len(ignored()) == 2 })
	g.write("agents/b/input/more.bak", "meant")
	g.write("agents/b/input/good.txt", "meant")
	l.until("the good one", func() bool { return log.count(TurnFinished) == 1 })
	if got := ignored(); len(got) != 2 || got[1] != "agents/b/input/notes.bak: it is a backup (.bak)" {
		t.Errorf("it tells %q", got)
	}
}
