package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/record"
	"agentgraph/record/recordtest"
	"agentgraph/record/store"
	"agentgraph/schemafile"
)

// realModel is the small model, or the test is skipped; where CI says that
// everything must run, its absence fails.
func realModel(t *testing.T) string {
	t.Helper()
	path := os.Getenv("AGENTGRAPH_TEST_MODEL")
	if path == "" {
		path = filepath.Join(cacheDir(), smallModel)
	}
	switch {
	case !constraint.LocalEngine("").Masks:
		t.Skip("the native library is not linked")
	case checkGGUF(path) == nil:
		return path
	case os.Getenv("CI") == "true":
		t.Fatalf("the small model is not at %s; 'make model' fetches it", path)
	}
	t.Skipf("the small model is not at %s; 'make model' fetches it", path)
	return ""
}

// example is one graph of examples/ and what must come of it.
type example struct {
	name   string
	inputs map[string]int // agent → turns
	// answers are the files an agent makes, by pattern of their names.
	answers map[string][]string
	shape   map[string]*regexp.Regexp // agent → whole answer
}

var examples = []example{
	{
		name:    "reviews",
		inputs:  map[string]int{"rater": 3},
		answers: map[string][]string{"rater": {`rating_0\.json`, `rating_1\.json`, `rating_2\.json`}},
		shape:   map[string]*regexp.Regexp{"rater": regexp.MustCompile(`^\{"rating":[1-5],"reasoning":".*"\}$`)},
	},
	{
		name:    "headline",
		inputs:  map[string]int{"desk": 2},
		answers: map[string][]string{"desk": {`headline-0\.txt`, `headline-1\.txt`}},
		shape:   map[string]*regexp.Regexp{"desk": regexp.MustCompile(`^[A-Z][a-z]{0,13}( [A-Za-z0-9][a-z0-9']{0,13}){3,9}$`)},
	},
	{
		name:    "verdict",
		inputs:  map[string]int{"judge": 2},
		answers: map[string][]string{"judge": {`verdict_0\.txt`, `verdict_1\.txt`}},
		shape: map[string]*regexp.Regexp{"judge": regexp.MustCompile(
			`^verdict: (approved|rejected|needs a receipt)\nbecause: [A-Z][a-z]{0,12}( [a-z0-9']{1,14}){2,11}\.\n$`)},
	},
	{
		name:    "raw",
		inputs:  map[string]int{"clerk": 1},
		answers: map[string][]string{"clerk": {`order_0\.txt`}},
		shape:   map[string]*regexp.Regexp{"clerk": regexp.MustCompile(`^ORDER [A-Z]{2,12}\n\[\{"item":".*"\}?.*\]$`)},
	},
	{
		name:   "newsroom",
		inputs: map[string]int{"writer": 1, "editor": 1, "supervisor": 1},
		answers: map[string][]string{
			"writer": {`out-\d{13}\.txt`}, "editor": {`article_0\.json`}, "supervisor": {`rating_0\.json`},
		},
		shape: map[string]*regexp.Regexp{
			"writer":     regexp.MustCompile(`(?s)^.{20,}$`),
			"editor":     regexp.MustCompile(`^\{"headline":".{8,}","summary":".{20,}","section":"(local|world|business|sport|culture)"\}$`),
			"supervisor": regexp.MustCompile(`^\{"rating":[1-5],"why":".{10,}"\}$`),
		},
	},
}

// TestExamples runs each graph of examples/ on the real model, in a copy, and
// looks at the files.
func TestExamples(t *testing.T) {
	model := realModel(t)
	entries, err := os.ReadDir("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	var have, tested []string
	for _, e := range entries {
		// A Go module is a program; it has a test of its own.
		_, err := os.Stat(filepath.Join("../../examples", e.Name(), "go.mod"))
		if e.IsDir() && err != nil {
			have = append(have, e.Name())
		}
	}
	for _, ex := range examples {
		tested = append(tested, ex.name)
	}
	slices.Sort(tested)
	if d := cmp.Diff(have, tested); d != "" {
		t.Errorf("examples/ and what is tested differ:\n%s", d)
	}
	for _, ex := range examples {
		t.Run(ex.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), ex.name)
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../examples", ex.name))); err != nil {
				t.Fatal(err)
			}
			runOnce(t, model, dir, 0)
			before := listing(t, dir)
			for agent := range ex.inputs {
				ex.check(t, dir, agent)
			}
			// A second run has nothing to do.
			runOnce(t, model, dir, 0)
			if d := cmp.Diff(before, listing(t, dir)); d != "" {
				t.Errorf("a second run changed files:\n%s", d)
			}
		})
	}
}

func runOnce(t *testing.T, model, dir string, want int) {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(context.Background(), []string{"run", "--once", "--model", model, dir}, strings.NewReader(""), &out, &errs)
	if code != want {
		t.Fatalf("run --once ended with %d, want %d\n%s%s", code, want, out.String(), errs.String())
	}
}

// listing is every file of the graph but what the runner keeps for itself.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".agentgraph" {
			return filepath.SkipDir
		}
		if !d.IsDir() {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (ex example) check(t *testing.T, dir, agent string) {
	agentDir := filepath.Join(dir, "agents", agent)
	entries, err := os.ReadDir(filepath.Join(agentDir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	want := ex.answers[agent]
	if len(entries) != len(want) {
		t.Fatalf("%s has %d answers, want %d: %v", agent, len(entries), len(want), entries)
	}
	answers := map[string][]byte{} // path in the graph → text
	for i, e := range entries {
		if !regexp.MustCompile("^" + want[i] + "$").MatchString(e.Name()) {
			t.Errorf("%s: answer %d is called %s, want %s", agent, i, e.Name(), want[i])
		}
		text, err := os.ReadFile(filepath.Join(agentDir, "output", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s/%s: %s", agent, e.Name(), text)
		if !ex.shape[agent].Match(text) {
			t.Errorf("%s: %s does not have the shape %v: %q", agent, e.Name(), ex.shape[agent], text)
		}
		answers["agents/"+agent+"/output/"+e.Name()] = text
	}
	ex.checkRecords(t, dir, agent, answers)
}

func (ex example) checkRecords(t *testing.T, dir, agent string, answers map[string][]byte) {
	agentDir := filepath.Join(dir, "agents", agent)
	file, err := schemafile.Find(filepath.Join(agentDir, "system"))
	if err != nil {
		t.Fatal(err)
	}
	turns := 0
	err = store.Open(filepath.Join(agentDir, "turns")).Each(func(id string, r *record.Record) error {
		turns++
		recordtest.Check(t, r)
		text, ok := r.Answer()
		if !ok || len(r.Outputs) != 1 {
			t.Fatalf("turn %s is not a completed one: %+v", id, r.Outcome)
		}
		published, ok := answers[r.Outputs[0].Path]
		if !ok || text != string(published) || sum(published) != r.Outputs[0].SHA256 {
			t.Errorf("turn %s says it made %+v with %q", id, r.Outputs[0], text)
		}
		for _, in := range r.Inputs {
			data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(in.Path)))
			if err != nil || sum(data) != in.SHA256 {
				t.Errorf("turn %s: input %+v is not what is on disk (%v)", id, in, err)
			}
		}
		if file != nil {
			c, err := constraint.Compile(constraint.Spec{Kind: file.Kind(), Source: file.Source, File: file.Path}, constraint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if v := c.Validate(context.Background(), text); !v.Valid {
				t.Errorf("turn %s: the answer is not valid: %v", id, v.Diagnostics)
			}
			if r.OutputValidation.Status != record.Valid || *r.OutputValidation.EnforcedBy != constraint.ByMask {
				t.Errorf("turn %s: output_validation is %+v", id, r.OutputValidation)
			}
			if got := r.Request.Constraint; got == nil || got.Source != string(file.Source) || got.File != filepath.Base(file.Path) {
				t.Errorf("turn %s: the record's constraint is %+v", id, got)
			}
		}
		if ex.name == "newsroom" {
			roots := r.Lineage.Roots
			if len(roots) != 1 || roots[0].Path != "agents/writer/input/harbour.txt" {
				t.Errorf("%s: the lineage is %+v", agent, r.Lineage)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if turns != ex.inputs[agent] {
		t.Errorf("%s has %d records, want %d", agent, turns, ex.inputs[agent])
	}
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// TestRespondOnTheRealModel asks for all four kinds of promise.
func TestRespondOnTheRealModel(t *testing.T) {
	model := realModel(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	lark := filepath.Join(t.TempDir(), "answer.lark")
	if err := os.WriteFile(lark, []byte("start: (\"yes\" | \"no\") \", \" REASON\nREASON: /[a-z ]{5,40}/\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"json", []string{"--schema", `{"type":"object","properties":{"city":{"type":"string","maxLength":20}},"required":["city"],"additionalProperties":false}`, "Which city is the capital of France?"}, `^\{"city":".{1,20}"\}\n$`},
		{"regex", []string{"--regex", `[0-9]{4}`, "In which year did the second world war end?"}, `^[0-9]{4}\n$`},
		{"lark", []string{"--lark", lark, "Is water wet?"}, `^(yes|no), [a-z ]{5,40}\n$`},
		{"llg", []string{"--llg", "../../examples/raw/agents/clerk/system/.schema-order.txt@llg", "This is Anna. One teapot, please."}, `^ORDER [A-Z]{2,12}\n\[.*\]\n$`},
		{"choice", []string{"--choice", "positive,negative", "I love it"}, `^(positive|negative)\n$`},
		{"free", []string{"--max-output-tokens", "200", "Say hello."}, `(?s)^.+\n$`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := Main(context.Background(), append([]string{"respond", "--model", model}, tt.args...), strings.NewReader(""), &out, &errs)
			t.Logf("%s", out.String())
			if code != 0 || !regexp.MustCompile(tt.want).Match(out.Bytes()) {
				t.Errorf("code %d, stdout %q, stderr %q; want %s", code, out.String(), errs.String(), tt.want)
			}
		})
	}
	t.Run("record", func(t *testing.T) {
		var out, errs bytes.Buffer
		code := Main(context.Background(), []string{"respond", "--json", "--model", model, "--schema", `{"enum":["a","b"]}`, "Which?"}, strings.NewReader(""), &out, &errs)
		if code != 0 {
			t.Fatalf("code %d: %s", code, errs.String())
		}
		if err := record.Check(bytes.TrimSpace(out.Bytes())); err != nil {
			t.Error(err)
		}
		var r record.Record
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Request.Prompt == nil || r.Request.Model.WeightsSHA256 == "" || r.Accounting.Usage.OutputTokens == nil {
			t.Errorf("the record does not say what was sent, to which weights, and what it cost: %s", out.String())
		}
	})
}
