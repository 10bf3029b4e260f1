package distill_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"agentgraph/distill"
	"agentgraph/internal/clienttest"
	"agentgraph/model"
	"agentgraph/record"
)

// readScript reads one export with each loader and prints what they see; it
// fails where two of them differ.
const readScript = `
import json, pathlib, sys
import datasets, pyarrow.json, pyarrow.parquet
datasets.disable_progress_bars()

for folder, kind in json.load(sys.stdin):
    folder = pathlib.Path(folder)
    by_card = datasets.load_dataset(str(folder))
    rows = {}
    for split, data in by_card.items():
        path = folder / f"{split}.{kind}"
        rows[split] = data.to_list()
        if kind == "parquet":
            plain = pyarrow.parquet.read_table(path).to_pylist()
            again = datasets.load_dataset("parquet", data_files=str(path), split="train").to_list()
            assert again == plain, f"{split}: datasets and pyarrow read different rows"
        else:
            plain = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            assert pyarrow.json.read_json(path).num_rows == len(plain)
        assert plain == rows[split], f"{split}: the card's loader reads {rows[split][:1]}, not {plain[:1]}"
    print(json.dumps(rows))
`

// TestClientsReadExports reads exports with the libraries that trainers use.
func TestClientsReadExports(t *testing.T) {
	if testing.Short() {
		t.Skip("installs Python packages")
	}
	exe := clienttest.Python(t, "datasets==5.2.0", "pyarrow==26.0.1")
	g := newGraphDir(t)
	for i := range 40 {
		in := fmt.Sprintf("topic %d é日本 \u2028 \U0001F600 \"quoted\"", i)
		best := g.turn("writer", in, fmt.Sprintf("Text %d\n<b>é</b>", i), func(m *made) {
			if i == 0 {
				return // the first rows have none
			}
			m.rec.Outcome.Logprobs = []model.TokenLogprob{{Token: "\uFFFD", Bytes: []byte{0xe2}, Logprob: -0.25,
				Top: []model.TokenLogprob{{Token: "a", Logprob: -0.25}, {Token: "b", Logprob: -1.5}}}}
		})
		g.turn("rater", "x", `{"rating":5}`, shaped, about(best))
		if i%2 == 0 {
			worse := g.turn("writer", in, "worse")
			g.turn("rater", "x", `{"rating":1}`, shaped, about(worse))
		}
		if i%8 == 7 {
			g.turn("caller", in, "42", func(m *made) {
				result := "42"
				m.rec.ToolCalls = []record.ToolCall{{ID: "call00001", Name: "add", Arguments: json.RawMessage(`{"a":[1,{"b":2}]}`), Result: &result}}
				m.rec.ToolRounds = []record.ToolRound{{Text: "", Calls: 1}}
				m.rec.Request.Tools = []model.Tool{{Name: "add", Parameters: json.RawMessage(`{"type":"object"}`)}}
			})
		}
	}
	split := []distill.Share{{Name: "train", Weight: 3}, {Name: "test", Weight: 1}}
	tests := map[string]distill.ExportOptions{
		"messages":            {Layout: distill.Chat, Split: split, License: "CC-BY-4.0"},
		"messages with tools": {Layout: distill.Chat, Tools: true, Split: split},
		"prompt-completion":   {Layout: distill.PromptCompletion, Score: "rater.rating"},
		"sharegpt":            {Layout: distill.ShareGPT, Tools: true},
		"preference":          {Layout: distill.Preference, Score: "rater.rating", Filter: distill.Filter{Agents: []string{"writer"}}},
		"redacted":            {HashInputs: true, DropFields: []string{"schema", "logprobs", "inputs", "root_inputs"}},
	}
	type export struct {
		name   string
		format distill.Format
		rows   int
	}
	var exports []export
	var args [][2]string
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		for _, format := range distill.Formats {
			opt := tests[name]
			opt.Format = format
			r, dir := g.export(opt)
			exports = append(exports, export{name, format, r.Rows})
			args = append(args, [2]string{dir, string(format)})
		}
	}
	in, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-c", readScript)
	cmd.Env = append(os.Environ(), "HF_HOME="+t.TempDir(), "HF_HUB_OFFLINE=1", "HF_DATASETS_OFFLINE=1", "HF_HUB_DISABLE_TELEMETRY=1")
	cmd.Stdin = bytes.NewReader(in)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if err != nil {
		t.Fatalf("at %v of %v: %v\n%s", len(lines), exports, err, &stderr)
	}
	for i, e := range exports {
		var got map[string][]map[string]any
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatalf("%v: %s", err, lines[i])
		}
		n := 0
		for _, rows := range got {
			n += len(rows)
		}
		if n != e.rows || n == 0 {
			t.Errorf("%s as %s: %d rows are read, %d were written", e.name, e.format, n, e.rows)
		}
		if i%2 == 1 && lines[i-1] != lines[i] {
			t.Errorf("%s: JSONL and Parquet are read as different rows", e.name)
		}
		switch e.name {
		case "preference":
			row := got["train"][0]
			if get(row, "rejected", 0, "content") != "worse" || get(row, "score_chosen") != 5.0 || get(row, "score_rejected") != 1.0 {
				t.Errorf("%v", row)
			}
		case "prompt-completion":
			if !slices.ContainsFunc(got["train"], func(row map[string]any) bool {
				return get(row, "logprobs", 0, "top_logprobs", 1, "logprob") == -1.5 && get(row, "logprobs", 0, "bytes") == "4g=="
			}) {
				t.Error("no row has the log probabilities")
			}
		}
	}
}
