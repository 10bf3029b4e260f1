package distill_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agentgraph/distill"
)

// hostile runs scan and verify on a graph with one good answer and something
// bad, and wants one line about the bad thing from both.
func hostile(t *testing.T, g *graphDir, wantScan, wantVerify string) {
	t.Helper()
	good := g.turn("rater", "in", `{"rating":1}`, shaped)
	rep := scan(t, g.root, distill.Options{})
	checkLines(t, "scan", problems(rep), wantScan)
	seen := false
	for _, a := range rep.Agents {
		for _, gr := range a.Groups {
			seen = seen || gr.First == good.name || gr.Last == good.name
		}
	}
	if !seen {
		t.Errorf("the good answer was not found")
	}
	found, v := verify(t, g.root, distill.Options{})
	checkLines(t, "verify", found, wantVerify)
	if v.Valid < 1 || v.OK() == (wantVerify != "") {
		t.Errorf("%+v", v)
	}
}

func checkLines(t *testing.T, what string, lines []string, want string) {
	t.Helper()
	if want == "" && len(lines) == 0 {
		return
	}
	if len(lines) != 1 || want == "" || !strings.Contains(lines[0], want) {
		t.Errorf("%s: want one line with %q, got %q", what, want, lines)
	}
	for _, l := range lines {
		if strings.ContainsAny(l, "\n\x1b\u202e") {
			t.Errorf("%s: %q is not one plain line", what, l)
		}
	}
}

const secret = `{"rating":7}`

func outside(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "secret.json")
	if err := os.WriteFile(file, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Skip("no links here:", err)
	}
}

func TestHostileLinks(t *testing.T) {
	const out = "is a link that leads nowhere or out of the graph; not read"
	start := func() *graphDir {
		g := newGraphDir(t)
		g.write("agents/rater/system/.schema-rating.json", ratingSchema)
		return g
	}
	t.Run("an answer", func(t *testing.T) {
		g := start()
		_, file := outside(t)
		link(t, file, filepath.Join(g.root, "agents/rater/output/rating_50.json"))
		hostile(t, g, "agents/rater/output/rating_50.json: "+out, "rating_50.json: "+out)
	})
	t.Run("an answer to nowhere", func(t *testing.T) {
		g := start()
		link(t, "gone", filepath.Join(g.root, "agents/rater/output/rating_50.json"))
		hostile(t, g, out, out)
	})
	t.Run("an answer inside the graph", func(t *testing.T) {
		g := start()
		g.write("kept/x.json", `{"rating":3}`)
		link(t, "../../../kept/x.json", filepath.Join(g.root, "agents/rater/output/rating_50.json"))
		link(t, filepath.Join(g.root, "kept/x.json"), filepath.Join(g.root, "agents/rater/output/rating_51.json"))
		hostile(t, g, "", "")
	})
	for _, part := range []string{"output", "turns", "system"} {
		t.Run("the folder "+part, func(t *testing.T) {
			g := start()
			dir, _ := outside(t)
			link(t, dir, filepath.Join(g.root, "agents/x", part))
			g.write("agents/x/agent.yaml", "")
			hostile(t, g, "agents/x/"+part+": "+out, "agents/x/"+part+": "+out)
		})
	}
	t.Run("the schema file", func(t *testing.T) {
		g := start()
		_, file := outside(t)
		link(t, file, filepath.Join(g.root, "agents/x/system/.schema-rating.json"))
		want := "agents/x/system/.schema-rating.json: the schema file is a link that leads out of the graph; not read"
		hostile(t, g, want, want)
	})
	t.Run("a record", func(t *testing.T) {
		g := start()
		dir, _ := outside(t)
		link(t, filepath.Join(dir, "secret.json"), filepath.Join(g.root, "agents/rater/turns/linked.json"))
		hostile(t, g, "agents/rater/turns/linked.json: the record", "agents/rater/turns/linked.json: the record")
	})
	t.Run("an agent", func(t *testing.T) {
		g := start()
		dir, _ := outside(t)
		link(t, dir, filepath.Join(g.root, "agents/elsewhere"))
		hostile(t, g, "", "") // links to folders are not followed at all
	})
	t.Run("a shared text", func(t *testing.T) {
		g := start()
		long := strings.Repeat("long ", 1000)
		g.turn("rater", "in", `{"rating":1}`, shaped, func(m *made) { m.rec.Request.Messages[0].Content = long })
		source := filepath.Join(g.root, "agents/rater/turns/sources", hex64(long))
		dir, _ := outside(t)
		if err := os.Rename(source, filepath.Join(dir, "text")); err != nil {
			t.Fatal(err)
		}
		link(t, filepath.Join(dir, "text"), source)
		hostile(t, g, "", "its record cannot be read")
	})
}

func TestHostileRecords(t *testing.T) {
	for _, name := range []string{"../../../etc/passwd", "/etc/passwd", "agents/other/output/x.json", "agents/rater/output/../../../x", "agents/rater/output", "", "agents/rater/output/"} {
		t.Run(name, func(t *testing.T) {
			g := newGraphDir(t)
			g.turn("rater", "in", `{"rating":1}`, shaped)
			g.write("agents/other/output/x.json", secret)
			editRecord(t, g, func(r map[string]any) {
				r["outputs"].([]any)[0].(map[string]any)["path"] = name
			})
			if err := os.Remove(filepath.Join(g.root, "agents/rater/output/rating_1.json")); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(g.root, "agents/other")); err != nil {
				t.Fatal(err)
			}
			want := "agents/rater/turns/turn000001.json: the record names " + name + ", which is no file of the agent's output folder; not read"
			hostile(t, g, want, want)
		})
	}
	t.Run("two records, one file", func(t *testing.T) {
		g := newGraphDir(t)
		g.turn("rater", "in", `{"rating":1}`, shaped, func(m *made) { m.name = "rating_7.json" })
		g.turn("rater", "in", `{"rating":1}`, shaped, func(m *made) { m.name = "rating_7.json" })
		want := "the record names agents/rater/output/rating_7.json, as does turn00000"
		hostile(t, g, want, want)
	})
	t.Run("a hash that is none", func(t *testing.T) {
		g := newGraphDir(t)
		g.write("agents/rater/system/.schema-rating.json", ratingSchema)
		g.turn("rater", "in", `{"rating":1}`, shaped)
		editRecord(t, g, func(r map[string]any) { r["outputs"].([]any)[0].(map[string]any)["sha256"] = "../../x" })
		hostile(t, g, "the sha256 of", "the sha256 of")
	})
}

func TestHostileFiles(t *testing.T) {
	start := func() *graphDir {
		g := newGraphDir(t)
		g.write("agents/rater/system/.schema-rating.json", ratingSchema)
		return g
	}
	t.Run("a gigabyte", func(t *testing.T) {
		g := start()
		m := g.turn("rater", "in", `{"rating":1}`, shaped)
		path := filepath.Join(g.root, "agents/rater/output", m.name)
		if err := os.Truncate(path, 1<<30); err != nil {
			t.Skip("no sparse files here:", err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		hostile(t, g, "", m.name+": the answer has 1073741824 bytes")
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%d bytes were allocated", n)
		}
	})
	t.Run("a gigabyte as a record", func(t *testing.T) {
		g := start()
		g.write("agents/rater/turns/big.json", "{")
		if err := os.Truncate(filepath.Join(g.root, "agents/rater/turns/big.json"), 1<<30); err != nil {
			t.Skip("no sparse files here:", err)
		}
		hostile(t, g, "big.json: the record has 1073741824 bytes", "big.json: the record has 1073741824 bytes")
	})
	t.Run("a named pipe as a record", func(t *testing.T) {
		g := start()
		g.turn("rater", "in", `{"rating":1}`, shaped)
		if err := syscall.Mkfifo(filepath.Join(g.root, "agents/rater/turns/pipe.json"), 0o644); err != nil {
			t.Skip("no named pipes here:", err)
		}
		hostile(t, g, "pipe.json: the record is no regular file", "pipe.json: the record is no regular file")
	})
	t.Run("a named pipe as an answer", func(t *testing.T) {
		g := start()
		g.write("agents/rater/output/rating_50.json", "")
		path := filepath.Join(g.root, "agents/rater/output/rating_50.json")
		os.Remove(path)
		if err := syscall.Mkfifo(path, 0o644); err != nil {
			t.Skip("no named pipes here:", err)
		}
		hostile(t, g, "rating_50.json: is no answer: it is no regular file", "")
	})
	t.Run("a folder as an answer", func(t *testing.T) {
		g := start()
		g.write("agents/rater/output/rating_50.json/x", "")
		hostile(t, g, "rating_50.json: is no answer: it is a folder", "")
	})
	t.Run("unreadable", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("root reads everything")
		}
		g := start()
		g.write("agents/rater/output/rating_50.json", "{}")
		if err := os.Chmod(filepath.Join(g.root, "agents/rater/output/rating_50.json"), 0); err != nil {
			t.Fatal(err)
		}
		hostile(t, g, "", "rating_50.json: the answer cannot be read: permission denied")
	})
	t.Run("an empty schema file", func(t *testing.T) {
		g := start()
		g.write("agents/x/system/.schema-a.json", " ")
		hostile(t, g, "agents/x/system/.schema-a.json: the file is empty", "agents/x/system/.schema-a.json: the file is empty")
	})
	for _, name := range []string{"rating_1\n2.json", "\x1b[2Jrating.json", "rating_\xff.json", "\u202egnitar.json", strings.Repeat("r", 250) + ".json", " ", "-rf", "rating_07.json", ".agentgraph-x.tmp"} {
		t.Run(fmt.Sprintf("the name %q", name), func(t *testing.T) {
			g := start()
			g.write("agents/rater/output/"+name, "{}")
			hostile(t, g, "is no answer", "")
		})
	}
	t.Run("odd names of agents", func(t *testing.T) {
		g := start()
		for _, name := range []string{"a\nb", "\x1b[2J", "…", "-x", "a b", "\xff"} {
			g.write("agents/"+name+"/system/.schema-x.json", "{}")
			g.write("agents/"+name+"/output/x_0.json", "{}")
		}
		hostile(t, g, "", "")
	})
}

// A folder that goes away while it is read costs lines, not the walk.
func TestFolderRemovedMeanwhile(t *testing.T) {
	g := newGraphDir(t)
	for _, agent := range []string{"a", "b", "c"} {
		g.write("agents/"+agent+"/system/.schema-rating.json", ratingSchema)
		for i := range 40 {
			g.write(fmt.Sprintf("agents/%s/output/rating_%d.json", agent, i), `{"rating":1}`)
		}
	}
	read, gone := map[string]int{}, 0
	for a, err := range distill.Answers(context.Background(), g.root, distill.Options{}) {
		var p *distill.Problem
		if errors.As(err, &p) {
			t.Logf("%v", p)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(read) == 0 {
			// One agent is half read, one is still to come.
			os.RemoveAll(filepath.Join(g.root, "agents/a"))
			os.RemoveAll(filepath.Join(g.root, "agents/b/output"))
		}
		read[a.Agent]++
		if _, err := a.Read(100); errors.Is(err, os.ErrNotExist) {
			gone++
		} else if err != nil {
			t.Error(err)
		}
	}
	if read["c"] != 40 || gone != read["a"]+read["b"] {
		t.Errorf("%v, %d gone", read, gone)
	}
}

// The same of verify, with the folder removed by the first thing it finds.
func TestVerifyFolderRemovedMeanwhile(t *testing.T) {
	g := newGraphDir(t)
	g.write("agents/a/system/.schema-rating.json", ratingSchema)
	g.write("agents/z/system/.schema-rating.json", ratingSchema)
	g.write("agents/z/output/rating_0.json", `{"rating":1}`)
	for i := range 300 {
		g.write(fmt.Sprintf("agents/a/output/rating_%d.json", i), "no")
	}
	var found []string
	rep, err := distill.Verify(context.Background(), g.root, distill.Options{}, func(c *distill.Check, p *distill.Problem) error {
		if len(found) == 0 {
			os.RemoveAll(filepath.Join(g.root, "agents/a"))
		}
		if c != nil {
			found = append(found, c.Error())
		}
		return nil
	})
	if err != nil || rep.Valid != 1 || rep.Failed != 300 || len(found) != 300 {
		t.Fatalf("%+v, %d found, %v", rep, len(found), err)
	}
	if !slices.ContainsFunc(found, func(s string) bool { return strings.HasSuffix(s, "the answer is gone") }) {
		t.Errorf("nothing was gone: %q", found[299])
	}
}
