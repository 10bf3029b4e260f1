package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentgraph/record"
	"agentgraph/record/store"
)

// Several answers to one input are one batch of the local engine: they begin
// before the first of them ends, and each has its seed.
func TestSamplesAreOneBatch(t *testing.T) {
	path := realModel(t)
	g := t.TempDir()
	for name, text := range map[string]string{
		"agents/poet/agent.yaml":                    "model: " + path + "\nsamples: 4\nsampling: {temperature: 1, seed: 20, max_tokens: 24}\noutput: {enforce: mask}\n",
		"agents/poet/system/role.md":                "You write one short line about what you are given.",
		"agents/poet/system/.schema-line.txt@regex": "[A-Za-z ,]{40,60}\\.",
		"agents/poet/input/sea.txt":                 "the sea",
	} {
		file := filepath.Join(g, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := Main(context.Background(), []string{"run", "--once", g}, nil, &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, &stdout, &stderr)
	}
	answers, n := map[string]bool{}, 0
	var lastStart, firstEnd time.Time
	err := store.Open(filepath.Join(g, "agents/poet/turns")).Each(func(_ string, r *record.Record) error {
		n++
		text, _ := r.FileText()
		answers[text] = true
		if r.Sample == nil || r.Sample.Of != 4 || r.Request.Sampling.Seed == nil || *r.Request.Sampling.Seed != uint64(20+r.Sample.Index) {
			t.Errorf("sample %+v, seed %v", r.Sample, r.Request.Sampling.Seed)
		}
		if r.Timing.Started.After(lastStart) {
			lastStart = r.Timing.Started
		}
		if firstEnd.IsZero() || r.Timing.Finished.Before(firstEnd) {
			firstEnd = r.Timing.Finished
		}
		return nil
	})
	if err != nil || n != 4 || len(answers) < 3 { // two may be equal by chance
		t.Errorf("%d answers, %d different, %v", n, len(answers), err)
	}
	if !lastStart.Before(firstEnd) {
		t.Errorf("the last begins at %v, the first has ended at %v", lastStart, firstEnd)
	}
}
