package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentgraph/distill"
)

// shell runs lines as a user would, in dir, and returns what they print.
func shell(t *testing.T, dir, model, lines string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", lines)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "AGENTGRAPH_MODEL="+model)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, &stderr)
	}
	return string(out)
}

// The ten lines of docs/distillation.md go from an empty folder to a data set
// on the real model.
func TestTenLinesToADataSet(t *testing.T) {
	model := realModel(t)
	doc, err := os.ReadFile("../../docs/distillation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(string(doc), "```sh\n")
	lines, _, ok := strings.Cut(lines, "```")
	if n := strings.Count(lines, "\n"); !ok || n != 10 {
		t.Fatalf("%d lines", n)
	}
	dir := t.TempDir()
	out := shell(t, dir, model, lines)
	var report distill.ScanReport
	if err := json.Unmarshal([]byte(shell(t, filepath.Join(dir, "reviews"), model, "agentgraph scan --json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Answers != 16 {
		t.Errorf("%d answers:\n%s", report.Answers, out)
	}
	card, err := os.ReadFile(filepath.Join(dir, "dataset", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"of 16 answers gave", "| rater |", "| .schema-rating.json | json |", "| valid | mask |", "no input is in two splits"} {
		if !strings.Contains(string(card), want) {
			t.Errorf("the card does not say %q:\n%s", want, card)
		}
	}
}

// Answers that were made alone are the same when they are asked for again, also
// sampled ones and whatever ran between.
func TestReplayOnTheRealModel(t *testing.T) {
	model := realModel(t)
	dir := t.TempDir()
	shell(t, dir, model, `
agentgraph init g
printf 'defaults: {determinism: solo, sampling: {logprobs: 2}}\n' > g/agentgraph.yaml
echo "Warm, light, and it fits well." > g/agents/rater/input/jacket.txt
agentgraph run --once g
agentgraph sample 1 g/agents/rater g/agents/rater/input/jacket.txt --temperature 1 --seed 5
`)
	out := shell(t, dir, model, "agentgraph replay --json g")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct{ Summary distill.ReplayReport }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if want := (distill.Agreement{Compared: 3, Equal: 3}); last.Summary.Promised != want {
		t.Errorf("%+v\n%s", last.Summary, out)
	}
	// The log probabilities make the answer, byte for byte, and are exported.
	shell(t, dir, model, "agentgraph export g --out set")
	rows, err := os.ReadFile(filepath.Join(dir, "set", "train.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(rows)) {
		var row struct {
			Messages []struct{ Content string }
			Logprobs []struct {
				Token string
				Bytes []byte
				Top   []struct{ Logprob float64 } `json:"top_logprobs"`
			}
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, p := range row.Logprobs {
			if p.Bytes != nil {
				p.Token = string(p.Bytes)
			}
			text += p.Token
			if len(p.Top) != 2 || p.Top[0].Logprob < p.Top[1].Logprob || p.Top[0].Logprob > 0 {
				t.Errorf("token %q: %v", p.Token, p.Top)
			}
		}
		if text != row.Messages[len(row.Messages)-1].Content {
			t.Errorf("the tokens make %q, the answer is %q", text, row.Messages[len(row.Messages)-1].Content)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d rows", n)
	}
}
