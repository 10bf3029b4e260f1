package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentgraph/agents"
	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/turn"
)

// The environment of a child: this test binary run again as a runner.
const (
	childRoot  = "AGENTGRAPH_TEST_CHILD"
	childCrash = "AGENTGRAPH_TEST_CRASH" // step:occurrence
	childLive  = "AGENTGRAPH_TEST_LIVE"  // run until stdin ends, events on stdout
)

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		os.Exit(child(root))
	}
	os.Exit(m.Run())
}

// childReport is what a child prints when it ends by itself.
type childReport struct {
	Summary Summary
	Events  []Event
}

// child works a graph until it is done, or kills itself at a step.
func child(root string) int {
	if step, nth, ok := strings.Cut(os.Getenv(childCrash), ":"); ok {
		left, _ := strconv.Atoi(nth)
		crashPoint = func(s string) {
			genMu.Lock()
			defer genMu.Unlock()
			if s != step {
				return
			}
			if left--; left == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	gen := func(ctx context.Context, req *turn.Request) *record.Record {
		streamInChild(req)
		if strings.HasPrefix(req.User, "flaky") && req.Attempt < 2 {
			return failed(req, record.ModelError, true)
		}
		if strings.HasPrefix(req.User, "bad") {
			return failed(req, record.OutputValidationFailed, false)
		}
		return echo(ctx, req)
	}
	var report childReport
	cfg := Config{Root: root, Load: agents.LoadOptions{DefaultModel: "script:none"}, Generator: GeneratorFunc(gen), RetryBase: time.Millisecond,
		Events: func(e Event) { report.Events = append(report.Events, e) }}
	if os.Getenv(childLive) != "" {
		out := json.NewEncoder(os.Stdout)
		cfg.Events = func(e Event) { _ = out.Encode(e) }
	}
	r, err := New(cfg)
	if err == nil && os.Getenv(childLive) != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			r.Finish()
		}()
		if err = r.Run(context.Background()); err == nil {
			return 0
		}
	} else if err == nil {
		report.Summary, err = r.Once(context.Background())
	}
	_ = json.NewEncoder(os.Stdout).Encode(report)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

// startChild runs a child; killed says that a signal ended it.
func (g *testGraph) startChild(crash string) (wait func() (killed bool), kill func()) {
	g.t.Helper()
	exe, err := os.Executable()
	g.must(err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childRoot+"="+g.root, childCrash+"="+crash)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	g.must(cmd.Start())
	wait = func() bool {
		err := cmd.Wait()
		if err == nil {
			return false
		}
		if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() && st.Signal() == syscall.SIGKILL {
			return true
		}
		g.t.Fatalf("the child failed: %v\n%s", err, stderr.String())
		return false
	}
	return wait, func() { _ = cmd.Process.Kill() }
}

// whole checks what must hold after the last restart: every input has one
// turn, every good one has one answer, nothing is torn or left behind, numbers
// have no gaps.
func (g *testGraph) whole(inputs map[string]string) {
	g.t.Helper()
	g.wholeSamples(inputs, 1)
}

// wholeSamples is whole where each input has several answers.
func (g *testGraph) wholeSamples(inputs map[string]string, samples int) {
	g.t.Helper()
	want := map[string]int{}
	bad := 0
	for _, content := range inputs {
		if strings.HasPrefix(content, "bad") {
			bad += samples
			continue
		}
		want["writer("+content+")"] += samples
	}
	check := func(agent, prefix string, want map[string]int, bad int) {
		g.t.Helper()
		out := g.outputs("agents/" + agent + "/output")
		got := map[string]int{}
		for _, c := range out {
			got[c]++
		}
		for c, n := range want {
			if got[c] != n {
				g.t.Errorf("%s: %d answers %q, want %d", agent, got[c], c, n)
			}
		}
		for c, n := range got {
			if want[c] != n {
				g.t.Errorf("%s: %d answers %q, want %d", agent, n, c, want[c])
			}
		}
		for i := range len(out) {
			if _, ok := out[fmt.Sprintf("%s_%d.txt", prefix, i)]; !ok {
				g.t.Errorf("%s: number %d is missing among %d answers", agent, i, len(out))
			}
		}
		records, published := 0, map[string]bool{}
		err := store.Open(g.path("agents/" + agent + "/turns")).Each(func(id string, r *record.Record) error {
			records++
			for _, o := range r.Outputs {
				name := filepath.Base(o.Path)
				if published[name] || hashOf([]byte(out[name])) != o.SHA256 {
					g.t.Errorf("%s: record %s names %s, which is another turn's or has other bytes", agent, id, o.Path)
				}
				published[name] = true
			}
			return nil
		})
		g.must(err)
		if records != len(out)+bad || len(published) != len(out) {
			g.t.Errorf("%s: %d records, %d of them with an answer, for %d answers and %d failures", agent, records, len(published), len(out), bad)
		}
	}
	check("writer", "draft", want, bad)
	second := map[string]int{}
	for c, n := range want {
		second["editor("+c+")"] = n
	}
	check("editor", "final", second, 0)
	g.clean()
}

func crashGraph(t *testing.T, concurrency int) *testGraph {
	return newGraph(t,
		"agents/writer/agent.yaml", fmt.Sprintf("concurrency: %d\n", concurrency), "agents/writer/system/.schema-draft.txt@regex", "(.|\n)*",
		"agents/writer/input/", "",
		"agents/editor/agent.yaml", "inputs: [../writer/output]\n", "agents/editor/system/.schema-final.txt@regex", "(.|\n)*",
	)
}

func TestCrashMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	big := "big " + strings.Repeat("x", inlineSnapshot)
	for _, step := range []string{"claimed", "generated", "prepared", "intended", "named", "committed", "recorded", "closed", "waiting"} {
		for _, nth := range []int{1, 3} {
			for _, concurrency := range []int{1, 4} {
				t.Run(fmt.Sprintf("%s %d of %d at once", step, nth, concurrency), func(t *testing.T) {
					t.Parallel()
					g := crashGraph(t, concurrency)
					inputs := map[string]string{"a": "1", "b": "flaky 2", "c": "3", "d": "flaky 4", "e": "bad 5", "f": big, "g": "flaky 7"}
					for name, content := range inputs {
						g.write("agents/writer/input/"+name, content)
					}
					wait, _ := g.startChild(fmt.Sprintf("%s:%d", step, nth))
					if !wait() {
						t.Fatal("the runner did not come to this step")
					}
					// It dies in the same step again while it recovers.
					wait, _ = g.startChild(step + ":1")
					wait()
					wait, _ = g.startChild("")
					if wait() {
						t.Fatal("killed without being asked to")
					}
					g.whole(inputs)
				})
			}
		}
	}
}

// An input that changes after its claim: the old content and the new one each
// get their turn, also when the runner dies between.
func TestCrashThenInputChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, content := range []string{"old", "old " + strings.Repeat("y", inlineSnapshot)} {
		g := crashGraph(t, 1)
		g.write("agents/writer/input/a", content)
		wait, _ := g.startChild("intended:1")
		if !wait() {
			t.Fatal("not killed")
		}
		g.write("agents/writer/input/a", "new")
		wait, _ = g.startChild("")
		wait()
		g.whole(map[string]string{"first": content, "second": "new"})
	}
}

func TestRandomKills(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 200 processes")
	}
	g := crashGraph(t, 4)
	inputs := map[string]string{}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	drop := func(n int) {
		for range n {
			name := fmt.Sprintf("%05d", len(inputs))
			content := name
			if rnd.IntN(10) == 0 {
				content = "flaky " + name
			}
			inputs[name] = content
			// Dropped as one should: by rename.
			g.write("agents/writer/input/."+name, content)
			g.must(os.Rename(g.path("agents/writer/input/."+name), g.path("agents/writer/input/"+name)))
		}
	}
	kills := 0
	for i := 0; kills < 200; i++ {
		drop(1 + rnd.IntN(8))
		wait, kill := g.startChild("")
		timer := time.AfterFunc(time.Duration(20+rnd.IntN(120))*time.Millisecond, kill)
		if wait() {
			kills++
		} else {
			drop(10) // it was faster than the kill
		}
		timer.Stop()
		if i > 1000 {
			t.Fatalf("only %d kills in %d starts", kills, i)
		}
	}
	wait, _ := g.startChild("")
	wait()
	g.whole(inputs)
	t.Logf("%d kills, %d inputs", kills, len(inputs))
}
