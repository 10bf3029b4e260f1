package runner

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// Rights that are taken away while the runner works, and given back: each is
// told, the other agent goes on, and every input has its one answer in the
// end.
func TestRightsTakenAway(t *testing.T) {
	for _, tt := range []struct {
		path string
		mode os.FileMode
		told string // "": nothing has to be told
	}{
		{"agents/a/output", 0o555, "let this user write to the folder"},
		{"agents/a/turns", 0o555, "let this user write to agents/a/turns"},
		{"agents/a/input", 0, "let this user read it"},
		{"agents/a/system", 0, "make it readable"},
		{"agents/a/system/role.md", 0, "make it readable"},
		{"agents/a", 0, ""},
		{"log", 0o555, ""}, // the file in it is open
		{".agentgraph", 0o555, ".agentgraph"},
		{"agentgraph.yaml", 0, "settings cannot be read"},
	} {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			g := newGraphIn(t, openDir(t), "agentgraph.yaml", "rescan: 100ms\nsettle: 0s\n",
				"agents/a/agent.yaml", "retries: 1\n", "agents/a/system/role.md", "You answer.", "agents/a/system/.schema-r.txt@regex", "(.|\n)*", "agents/a/input/x0", "0",
				"agents/b/system/.schema-r.txt@regex", "(.|\n)*", "agents/b/input/x0", "0")
			past := time.Now().Add(-time.Hour)
			g.must(os.Chtimes(g.path("agents/a/system"), past, past))
			cmd := g.nobodys(childLive + "=1")
			stdin, err := cmd.StdinPipe()
			g.must(err)
			stdout, err := cmd.StdoutPipe()
			g.must(err)
			g.must(cmd.Start())
			log := newLog()
			ended := make(chan error, 1)
			go func() {
				for in := json.NewDecoder(stdout); ; {
					var e Event
					if err := in.Decode(&e); err != nil {
						ended <- cmd.Wait()
						return
					}
					log.add(e)
				}
			}()
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			l := &live{eventLog: log, g: g}
			answers := func(agent string, n int) func() bool {
				return func() bool { return len(g.outputs("agents/"+agent+"/output")) >= n && len(records(g, agent)) >= n }
			}
			l.until("the first answers", func() bool { return answers("a", 1)() && answers("b", 1)() })

			info, err := os.Stat(g.path(tt.path))
			g.must(err)
			// Large, so that its bytes are kept in .agentgraph.
			text := strings.Repeat("1", inlineSnapshot+1)
			if tt.mode == 0o555 {
				g.must(os.Chmod(g.path(tt.path), tt.mode))
				g.write("agents/a/input/x1", text)
			} else {
				g.write("agents/a/input/.x1", text)
				g.must(os.Chmod(g.path(tt.path), tt.mode))
				if os.Getuid() == 0 { // who may all the same
					g.must(os.Rename(g.path("agents/a/input/.x1"), g.path("agents/a/input/x1")))
				}
			}
			if tt.path != "agentgraph.yaml" && tt.path != ".agentgraph" { // these are everybody's
				g.write("agents/b/input/x1", "1")
				l.until("b goes on", answers("b", 2))
			}
			if tt.told != "" && os.Getuid() == 0 {
				l.until("somebody is told "+tt.told, func() bool {
					for _, e := range log.all() {
						if strings.Contains(fmt.Sprintf("%s; %s %+v", e.Message, e.Hint, e.Error), tt.told) {
							return true
						}
					}
					return false
				})
			}
			g.must(os.Chmod(g.path(tt.path), info.Mode().Perm()))
			if os.Getuid() != 0 && tt.mode == 0 {
				g.must(os.Rename(g.path("agents/a/input/.x1"), g.path("agents/a/input/x1")))
			}
			if tt.path == "agentgraph.yaml" || tt.path == ".agentgraph" {
				g.write("agents/b/input/x1", "1")
			}
			l.until("all answers", func() bool { return answers("a", 2)() && answers("b", 2)() })
			g.must(stdin.Close())
			if err := <-ended; err != nil {
				t.Errorf("the runner ended with %v", err)
			}
			for _, a := range []string{"a", "b"} {
				out := g.outputs("agents/" + a + "/output")
				if len(out) != 2 || out["r_0.txt"] == "" || out["r_1.txt"] == "" || len(records(g, a)) != 2 {
					t.Errorf("%s: answers %d, records %d", a, len(out), len(records(g, a)))
				}
			}
			if report := g.asNobody(); report.Summary != (Summary{}) {
				t.Errorf("again: %+v", report)
			}
		})
	}
}
