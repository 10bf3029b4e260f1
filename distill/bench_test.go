package distill_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agentgraph/distill"
	"agentgraph/model"
)

// manyTurns fills a graph with n turns of one agent: records as the runner
// writes them, with a system message that they share. They are written without
// being synced, from one that the store wrote.
func manyTurns(t testing.TB, root string, n int) {
	t.Helper()
	g := &graphDir{t: t, root: root, stores: newGraphDir(t).stores}
	g.write("agents/rater/system/.schema-rating.json", ratingSchema)
	g.write("agents/rater/agent.yaml", "{}\n")
	const answer, input = `{"rating":4242424}`, "It boils fast, and the lid leaks: input 4242424.\n"
	m := g.turn("rater", input, answer, shaped, func(m *made) {
		req := m.rec.Request
		req.Messages[0].Content = strings.Repeat("You rate product reviews, one after the other.\n", 40) + ratingSchema
		prompt := "<|im_start|>system\n" + req.Messages[0].Content + "<|im_end|>\n<|im_start|>user\n" + input + "<|im_end|>\n<|im_start|>assistant\n"
		req.Prompt = &prompt
		req.Sampling = model.Sampling{MaxTokens: 1024}
		sum := hex64(prompt)
		req.TemplateSHA256 = &sum
	})
	dir := filepath.Join(root, "agents", "rater")
	rec, err := os.ReadFile(filepath.Join(dir, "turns", *m.rec.TurnID+".json"))
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(dir, "turns", *m.rec.TurnID+".json"))
	os.Remove(filepath.Join(dir, "output", m.name))
	for i := range n {
		number := strconv.Itoa(1000000 + i)
		text := strings.ReplaceAll(answer, "4242424", number)
		id := fmt.Sprintf("01938000-0000-7000-8000-%012d", i)
		name := fmt.Sprintf("rating_%d.json", i)
		b := bytes.ReplaceAll(rec, []byte(*m.rec.TurnID), []byte(id))
		b = bytes.ReplaceAll(b, []byte("4242424"), []byte(number))
		b = bytes.ReplaceAll(b, []byte("/"+m.name), []byte("/"+name))
		b = bytes.ReplaceAll(b, []byte(hex64(answer)), []byte(hex64(text)))
		b = bytes.ReplaceAll(b, []byte(hex64(input)), []byte(hex64(strings.ReplaceAll(input, "4242424", number))))
		for path, data := range map[string][]byte{
			filepath.Join(dir, "turns", id+".json"): b, filepath.Join(dir, "output", name): []byte(text),
		} {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The generated records are read like real ones.
func TestManyTurns(t *testing.T) {
	root := t.TempDir()
	manyTurns(t, root, 200)
	rep := scan(t, root, distill.Options{})
	if rep.Answers != 200 || rep.ProblemCount != 0 || rep.Agents[0].WithoutRecord != 0 {
		t.Errorf("%+v %v", rep.Agents[0], problems(rep))
	}
	if found, v := verify(t, root, distill.Options{}); v.Valid != 200 || !v.OK() {
		t.Errorf("%+v %q", v, found)
	}
}

// benchRoot is a graph of many turns: AGENTGRAPH_BENCH_TURNS of them, kept in
// AGENTGRAPH_BENCH_GRAPH where that is set, so that other commands can be
// timed on it.
func benchRoot(b *testing.B) (string, int) {
	b.Helper()
	n := 10000
	if s := os.Getenv("AGENTGRAPH_BENCH_TURNS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	root := os.Getenv("AGENTGRAPH_BENCH_GRAPH")
	if root == "" {
		root = b.TempDir()
	}
	if _, err := os.Stat(filepath.Join(root, "agents")); err != nil {
		manyTurns(b, root, n)
	}
	return root, n
}

func BenchmarkScan(b *testing.B) {
	root, n := benchRoot(b)
	for b.Loop() {
		if rep := scan(b, root, distill.Options{}); rep.Answers != n {
			b.Fatalf("%d answers", rep.Answers)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkVerify(b *testing.B) {
	root, n := benchRoot(b)
	for b.Loop() {
		rep, err := distill.Verify(context.Background(), root, distill.Options{}, func(*distill.Check, *distill.Problem) error { return nil })
		if err != nil || rep.Valid != n {
			b.Fatalf("%+v, %v", rep, err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "answers/s")
}
