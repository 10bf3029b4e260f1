package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"agentgraph/internal/watch"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/turn"
)

func TestAgentDeletedDuringItsTurn(t *testing.T) {
	g := newGraph(t, "agents/a/input/x", "one", "agents/b/input/", "")
	hold, log := newGate(), newLog()
	l := g.run(g.config(func(ctx context.Context, req *turn.Request) *record.Record {
		if req.Agent == "a" {
			// As a model that does not notice in time.
			return hold.run(context.WithoutCancel(ctx), req)
		}
		return echo(ctx, req)
	}, newReady(log)), log)
	l.until("a runs", func() bool { return log.count(TurnStarted) == 1 })
	g.must(os.RemoveAll(g.path("agents/a")))
	l.until("a is gone", func() bool { return log.count(AgentRemoved) == 1 })
	close(hold.open)
	l.until("its turn ends with an error", func() bool { return log.count(TurnFailed) == 1 })
	if _, err := os.Stat(g.path("agents/a")); !os.IsNotExist(err) {
		t.Errorf("the deleted agent came back: %v", err)
	}
	g.write("agents/b/input/x", "other")
	l.until("b goes on", func() bool { return log.count(TurnFinished) == 1 })
	// Put back with its input, it starts anew.
	g.write("agents/a/input/x", "one")
	l.until("a has its turn", func() bool { return log.count(TurnFinished) == 2 })
}

// An agent that is moved away and back while its model does not notice: the
// turn, however its attempt ends, is the new agent's then.
func TestAgentBackBeforeItsTurnEnds(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, req *turn.Request) *record.Record{
		"stopped": func(ctx context.Context, req *turn.Request) *record.Record {
			rec := failed(req, record.CodeCancelled, true)
			rec.Outcome.Status = record.Cancelled
			return rec
		},
		"failed for now": func(ctx context.Context, req *turn.Request) *record.Record {
			return failed(req, record.ModelError, true)
		},
		"answered": echo,
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(t, "agents/a/agent.yaml", "samples: 2\nsampling: {temperature: 1}\nconcurrency: 2\n", "agents/a/input/x", "one", "agents/b/input/", "")
			hold, log := make(chan struct{}), newLog()
			var calls atomic.Int64
			l := g.run(g.config(func(ctx context.Context, req *turn.Request) *record.Record {
				if calls.Add(1) > 2 {
					return echo(ctx, req)
				}
				<-hold
				return end(ctx, req)
			}, newReady(log)), log)
			l.until("both answers are under way", func() bool { return calls.Load() == 2 })
			g.must(os.Rename(g.path("agents/a"), g.path("away")))
			l.until("a is gone", func() bool { return log.count(AgentRemoved) == 1 })
			g.must(os.Rename(g.path("away"), g.path("agents/a")))
			l.until("a is back", func() bool { return log.count(AgentAdded) == 1 })
			close(hold)
			l.until("both answers", func() bool { return log.count(TurnFinished) == 2 })
			l.quiet()
			if n := len(g.outputs("agents/a/output")); n != 2 || len(records(g, "a")) != 2 {
				t.Errorf("%d answers, %d records; events:\n%s", n, len(records(g, "a")), log)
			}
		})
	}
}

type noMemory struct{ calls atomic.Int64 }

func (m *noMemory) Model(_ context.Context, name string) (model.Model, error) {
	m.calls.Add(1)
	return nil, &model.Error{Kind: model.Unavailable, Model: name, Err: errors.New("the model needs 80 GiB of memory, there are 4")}
}

func TestModelThatCannotBeOpened(t *testing.T) {
	g := newGraph(t, "agents/a/input/x", "one", "agents/a/input/y", "two")
	log := newLog()
	cfg := g.config(echo, log)
	cfg.Models = &noMemory{}
	r, err := New(cfg)
	g.must(err)
	s, err := r.Once(t.Context())
	if err != nil || s != (Summary{Refused: 2}) || s.ExitCode() != 1 {
		t.Fatalf("%+v, %v; events:\n%s", s, err, log)
	}
	for _, e := range log.all() {
		if e.Kind == TurnRefused && (e.Error.Code != record.ModelUnavailable || !strings.Contains(e.Error.Message, "80 GiB")) {
			t.Errorf("%+v", e.Error)
		}
	}
	// Nothing tells that a model can be opened now: the next start tries.
	if s, _ := g.once(echo); s != (Summary{Completed: 2}) || len(records(g, "a")) != 2 {
		t.Errorf("afterwards: %+v", s)
	}
}

func TestDamagedLedger(t *testing.T) {
	path := ".agentgraph/ledger.db"
	for name, damage := range map[string]func(g *testGraph){
		"no database": func(g *testGraph) { g.write(path, strings.Repeat("not a database ", 1000)) },
		"cut short": func(g *testGraph) {
			g.must(os.Remove(g.path(path + "-wal")))
			g.must(os.Truncate(g.path(path), 5000))
		},
		"overwritten pages": func(g *testGraph) {
			f, err := os.OpenFile(g.path(path), os.O_RDWR, 0)
			g.must(err)
			defer f.Close()
			size, err := f.Seek(0, io.SeekEnd)
			g.must(err)
			_, err = f.WriteAt([]byte(strings.Repeat("garbage!", int(size-4096)/8)), 4096)
			g.must(err)
		},
		"another program's": func(g *testGraph) {
			g.must(os.Remove(g.path(path)))
			g.sql(path, "CREATE TABLE x(y); PRAGMA user_version=3;")
		},
		"an older version's": func(g *testGraph) { g.sql(path, "PRAGMA user_version=-1;") },
		"empty":              func(g *testGraph) { g.write(path, "") },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph(t, "agents/a/input/x", "one", "agents/a/input/y", "two")
			g.once(echo)
			// The write-ahead log goes into the database first.
			g.sql(path, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE;")
			g.write(path+"-wal", "")
			damage(g)
			g.write("agents/a/input/z", "three")
			s, log := g.once(echo)
			if s != (Summary{Completed: 1}) || len(g.outputs("agents/a/output")) != 3 {
				t.Fatalf("%+v; events:\n%s", s, log)
			}
			if name != "empty" && log.count(Problem) == 0 {
				t.Errorf("nobody was told; events:\n%s", log)
			}
		})
	}
	t.Run("a newer version's", func(t *testing.T) {
		g := newGraph(t, "agents/a/input/x", "one")
		g.once(echo)
		g.sql(path, "PRAGMA user_version=99;")
		_, err := New(g.config(echo, nil))
		if err == nil || !strings.Contains(err.Error(), "newer version (99") || !strings.Contains(err.Error(), "delete") {
			t.Errorf("%v", err)
		}
	})
}

func (g *testGraph) sql(rel, script string) {
	g.t.Helper()
	conn, err := sqlite.OpenConn(g.path(rel), sqlite.OpenReadWrite, sqlite.OpenCreate)
	g.must(err)
	defer conn.Close()
	for _, q := range strings.Split(script, ";") {
		if q = strings.TrimSpace(q); q != "" {
			g.must(sqlitex.ExecuteTransient(conn, q, nil))
		}
	}
}

// A clock that stands still or is set back gives no name twice.
func TestClockSetBack(t *testing.T) {
	g := newGraph(t, "agents/a/agent.yaml", "concurrency: 4\n")
	for i := range 40 {
		g.write(fmt.Sprintf("agents/a/input/%d", i), fmt.Sprint(i))
	}
	cfg := g.config(echo, nil)
	var n atomic.Int64
	base := time.Now()
	cfg.Now = func() time.Time { return base.Add(-time.Duration(n.Add(1)/50) * time.Second) }
	r, err := New(cfg)
	g.must(err)
	s, err := r.Once(t.Context())
	if err != nil || s != (Summary{Completed: 40}) || len(g.outputs("agents/a/output")) != 40 {
		t.Errorf("%+v, %v, %d answers", s, err, len(g.outputs("agents/a/output")))
	}
}

// An output folder that cannot be written keeps the answer, and asks the model
// once.
func TestOutputThatCannotBeWritten(t *testing.T) {
	g := newGraph(t, "agents/a/agent.yaml", "retries: 3\n", "agents/a/input/x", "one", "agents/a/output", "a file, no folder", "agents/b/input/x", "other")
	var calls atomic.Int64
	gen := func(ctx context.Context, req *turn.Request) *record.Record {
		calls.Add(1)
		return echo(ctx, req)
	}
	s, log := g.once(gen)
	if s != (Summary{Completed: 1, Held: 1}) || s.ExitCode() != 1 {
		t.Fatalf("%+v; events:\n%s", s, log)
	}
	found := false
	for _, e := range log.all() {
		if e.Kind == TurnRetrying && (e.Attempt != 1 || e.After == 0) {
			t.Errorf("%+v", e)
		}
		found = found || e.Kind == TurnFailed && e.Error.Code == record.PublishFailed && e.Error.File == "agents/a/output"
	}
	// One reason is told once, however often it is tried.
	if !found || len(records(g, "a")) != 1 || log.count(TurnRetrying) != 1 || log.count(TurnFailed) != 1 {
		t.Errorf("%d records; events:\n%s", len(records(g, "a")), log)
	}
	g.must(os.Remove(g.path("agents/a/output")))
	if s, log := g.once(gen); s != (Summary{Completed: 1}) || calls.Load() != 2 || len(g.outputs("agents/a/output")) != 1 {
		t.Errorf("afterwards: %+v, %d calls; events:\n%s", s, calls.Load(), log)
	}
}

// Rights that are missing, seen by a user who has not all of them.
func TestMissingRights(t *testing.T) {
	g := newGraphIn(t, openDir(t),
		"agents/a/agent.yaml", "retries: 1\n", "agents/a/input/x", "one", "agents/a/output/", "", "agents/a/turns/", "",
		"agents/b/input/x", "secret", "agents/b/input/y", "fine",
		"agents/c/agent.yaml", "retries: 1\n", "agents/c/input/x", "one", "agents/c/turns/", "",
	)
	set := func(rel string, mode os.FileMode) { g.must(os.Chmod(g.path(rel), mode)) }
	set("agents/a/output", 0o555)
	set("agents/b/input/x", 0)
	set("agents/c/turns", 0o555)
	report := g.asNobody()
	if s := report.Summary; s.Completed != 1 || s.Failed != 0 || s.Held != 2 || s.Unreadable != 1 {
		t.Fatalf("%+v", report)
	}
	for _, want := range []string{"let this user write to the folder", "agents/b/input/x: the input cannot be read: permission denied; let this user read it", "let this user write to agents/c/turns"} {
		found := false
		for _, e := range report.Events {
			found = found || strings.Contains(fmt.Sprintf("%s; %s %+v", e.Message, e.Hint, e.Error), want)
		}
		if !found {
			t.Errorf("nobody was told %q: %+v", want, report.Events)
		}
	}
	if len(g.outputs("agents/c/output")) != 1 {
		t.Error("an answer waits for its record")
	}
	set("agents/a/output", 0o755)
	set("agents/b/input/x", 0o644)
	set("agents/c/turns", 0o755)
	if report := g.asNobody(); report.Summary != (Summary{Completed: 3}) {
		t.Fatalf("afterwards: %+v", report)
	}
	for _, a := range []string{"a", "b", "c"} {
		if n, want := len(g.outputs("agents/"+a+"/output")), map[string]int{"a": 1, "b": 2, "c": 1}[a]; n != want || len(records(g, a)) != want {
			t.Errorf("%s: %d answers, %d records, want %d", a, n, len(records(g, a)), want)
		}
	}
}

// openDir is a folder that every user can reach.
func openDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "agentgraph-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// asNobody works the graph in a process of a user without rights.
func (g *testGraph) asNobody() (report childReport) {
	g.t.Helper()
	cmd := g.nobodys()
	out, err := cmd.Output()
	g.must(err)
	g.must(json.Unmarshal(out, &report))
	return report
}

// nobodys is a child that is not root; what is there becomes its own.
func (g *testGraph) nobodys(env ...string) *exec.Cmd {
	g.t.Helper()
	exe, err := os.Executable()
	g.must(err)
	cmd := exec.Command(exe)
	if os.Getuid() == 0 {
		const nobody = 65534
		data, err := os.ReadFile(exe)
		g.must(err)
		bin := filepath.Join(openDir(g.t), "runner.test")
		g.must(os.WriteFile(bin, data, 0o755))
		g.must(filepath.Walk(g.root, func(path string, _ os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, nobody, nobody)
		}))
		cmd = exec.Command(bin)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	cmd.Env = append(append(os.Environ(), childRoot+"="+g.root, "HOME="+g.root), env...)
	cmd.Dir = g.root
	cmd.Stderr = os.Stderr
	return cmd
}

// A disk that is full fails the writes one after the other, as the space that
// is left differs; when there is space again, every input has its one answer.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	for _, left := range []int64{0, 4 << 10, 16 << 10, 40 << 10, 64 << 10, 100 << 10, 200 << 10} {
		t.Run(fmt.Sprintf("%d KiB left", left>>10), func(t *testing.T) {
			root := filepath.Join(dir, "graph")
			t.Cleanup(func() { os.RemoveAll(root) })
			g := &testGraph{t, root}
			g.write("agents/a/agent.yaml", "retries: 1\nconcurrency: 2\n")
			g.write("agents/a/system/.schema-r.txt@regex", "(.|\n)*")
			g.write("agents/a/input/", "")
			for i := range 6 {
				// One is large: its snapshot is a file.
				g.write(fmt.Sprintf("aside/%d", i), fmt.Sprintf("%d%s", i, strings.Repeat(".", i/5*inlineSnapshot)))
			}
			log := newLog()
			cfg := g.config(echo, log)
			cfg.Watch = watch.Notify
			l := g.run(cfg, log)
			filler := filepath.Join(dir, "filler")
			fill(t, filler, left)
			defer os.Remove(filler)
			for i := range 6 {
				g.must(os.Rename(g.path(fmt.Sprintf("aside/%d", i)), g.path(fmt.Sprintf("agents/a/input/%d", i))))
			}
			if left == 0 {
				l.until("somebody is told", func() bool { return strings.Contains(log.String(), "space") || strings.Contains(log.String(), "full") })
			}
			time.Sleep(300 * time.Millisecond) // let things fail
			g.must(os.Remove(filler))
			l.until("all are done", func() bool {
				l.r.tick(true) // as the next rescan
				return len(g.outputs("agents/a/output")) >= 6 && len(records(g, "a")) >= 6
			})
			l.quiet()
			got := g.outputs("agents/a/output")
			seen := map[string]bool{}
			for i := range 6 {
				seen[got[fmt.Sprintf("r_%d.txt", i)]] = true
			}
			if len(got) != 6 || len(seen) != 6 || seen[""] || len(records(g, "a")) != 6 {
				t.Errorf("%d answers, %d different, %d records; events:\n%s", len(got), len(seen), len(records(g, "a")), log)
			}
			l.stop()
			if s, log := g.once(echo); s != (Summary{}) {
				t.Errorf("again: %+v; events:\n%s", s, log)
			}
		})
	}
}

// fill writes a file until only left bytes are free.
func fill(t *testing.T, path string, left int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for {
		if free, ok := watch.Free(path); ok && int64(free) <= left {
			return
		}
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

// What the runner keeps for itself stays in the graph too.
func TestStateFolderThatLeadsOut(t *testing.T) {
	g := newGraph(t, "agents/a/system/role.md", "You answer.", "agents/a/input/x", "hello")
	outside := t.TempDir()
	g.must(os.Symlink(outside, g.path(".agentgraph")))
	if r, err := New(g.config(echo, newLog())); err == nil || !strings.Contains(err.Error(), "leads out of the graph") {
		t.Errorf("runner %v, error %v", r, err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside: %v, %v", left, err)
	}
}

// An answer of the sample command is no turn of the graph: its input gets one.
func TestRecordsOfSamplesAreNoTurns(t *testing.T) {
	g := newGraph(t, "agents/a/system/role.md", "You answer.", "agents/a/input/x", "hello", "agents/a/input/y", "hi")
	g.once(echo)
	records, err := filepath.Glob(g.path("agents/a/turns/*.json"))
	if err != nil || len(records) != 2 {
		t.Fatalf("%v, %v", records, err)
	}
	data, err := os.ReadFile(records[0])
	g.must(err)
	g.must(os.WriteFile(records[0], bytes.Replace(data, []byte("{"), []byte(`{"origin":"sample",`), 1), 0o666))
	g.must(os.RemoveAll(g.path(".agentgraph")))
	g.once(echo)
	if records, _ := filepath.Glob(g.path("agents/a/turns/*.json")); len(records) != 3 {
		t.Errorf("%d records instead of 3", len(records))
	}
}
