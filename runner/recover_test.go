package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentgraph/output"
	"agentgraph/record"
	"agentgraph/record/store"
)

// What may have happened to an answer between a crash and the next start.
func TestAnswerAfterACrash(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	answer := func(g *testGraph) string { return g.path("agents/writer/output/draft_0.txt") }
	temp := func(g *testGraph) string {
		g.t.Helper()
		found, err := filepath.Glob(g.path("agents/writer/output/" + output.TempName("*")))
		g.must(err)
		if len(found) != 1 {
			g.t.Fatalf("temporary files: %v", found)
		}
		return found[0]
	}
	for _, tt := range []struct {
		name, step string
		do         func(g *testGraph)
		answers    map[string]string // nil: draft_0.txt alone
		told       string
	}{
		{name: "linked under its name and not yet unlinked under the other", step: "intended", do: func(g *testGraph) {
			g.must(os.Link(temp(g), answer(g)))
		}},
		{name: "the temporary file was removed by hand after the machine came up again", step: "intended", do: func(g *testGraph) {
			g.must(os.Remove(temp(g)))
			g.sql(".agentgraph/ledger.db", "UPDATE intents SET boot='another'")
		}},
		{name: "renamed by a person", step: "committed", do: func(g *testGraph) {
			g.must(os.Rename(answer(g), g.path("agents/writer/output/kept.txt")))
		}, answers: map[string]string{"kept.txt": "writer(one)"}},
		{name: "taken away by a person", step: "committed", do: func(g *testGraph) {
			g.must(os.Remove(answer(g)))
		}, answers: map[string]string{}, told: "was published and is gone"},
		{name: "lost by the machine's crash", step: "committed", do: func(g *testGraph) {
			g.must(os.Remove(answer(g)))
			g.sql(".agentgraph/ledger.db", "UPDATE intents SET boot='another'")
		}},
		{name: "on a disk that was copied, so that its inode is another", step: "committed", do: func(g *testGraph) {
			data, err := os.ReadFile(answer(g))
			g.must(err)
			g.write("agents/writer/output/copy", string(data))
			g.must(os.Remove(answer(g)))
			g.must(os.Rename(g.path("agents/writer/output/copy"), answer(g)))
			g.sql(".agentgraph/ledger.db", "UPDATE intents SET boot='another', inode='0:0'")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGraph(t, "agents/writer/system/.schema-draft.txt@regex", "(.|\n)*", "agents/writer/input/a", "one")
			wait, _ := g.startChild(tt.step + ":1")
			if !wait() {
				t.Fatal("not killed")
			}
			tt.do(g)
			s, log := g.once(echo)
			if tt.answers == nil {
				tt.answers = map[string]string{"draft_0.txt": "writer(one)"}
			}
			got := g.outputs("agents/writer/output")
			if s != (Summary{Completed: 1}) || len(got) != len(tt.answers) || !strings.Contains(log.String(), tt.told) {
				t.Fatalf("%+v, answers %v; events:\n%s", s, got, log)
			}
			for name, text := range tt.answers {
				if got[name] != text {
					t.Errorf("answers %v", got)
				}
			}
			g.must(store.Open(g.path("agents/writer/turns")).Each(func(_ string, r *record.Record) error {
				text, _ := r.FileText()
				for name := range tt.answers {
					if len(r.Outputs) != 1 || filepath.Base(r.Outputs[0].Path) != name {
						t.Errorf("outputs %+v", r.Outputs)
					}
				}
				if text != "writer(one)" {
					t.Errorf("the record holds %q", text)
				}
				return nil
			}))
			if s, _ := g.once(echo); s != (Summary{}) || len(records(g, "writer")) != 1 {
				t.Errorf("again: %+v, %d records", s, len(records(g, "writer")))
			}
		})
	}
}
