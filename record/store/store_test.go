package store_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/record/recordtest"
	"agentgraph/record/store"
)

func ptr[T any](v T) *T { return &v }

var (
	longSystem = "You rate reviews.\n" + strings.Repeat("Be fair & <kind>. ", 80)
	longSchema = `{"description":"` + strings.Repeat("x", 1100) + `"}`
	longOld    = strings.Repeat("an earlier answer ", 70)
	longInput  = strings.Repeat("the new input ", 90)
)

// sample is a record whose long texts repeat in the prompt.
func sample(user string) *record.Record {
	sum := sha256.Sum256([]byte(longSchema))
	prompt := "<s>" + longSystem + "</s><u>q</u><a>" + longOld + "</a><u>" + user + "</u>"
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return record.Normal(&record.Record{
		TurnID: ptr("t"), RunID: ptr("r"), SessionID: ptr("s"), TraceID: ptr("tr"), Attempt: 1,
		Outcome:    &record.Outcome{Status: record.Completed, Output: ptr("<yes> & \u2028"), FinishReason: ptr(model.Stop)},
		Accounting: &record.Accounting{ModelCalls: "1", ToolCalls: "0"},
		Timing:     &record.Timing{Started: at, Finished: at},
		Request: &record.Request{
			Messages: []model.Message{
				{Role: model.System, Content: longSystem}, {Role: model.User, Content: "q"},
				{Role: model.Assistant, Content: longOld}, {Role: model.User, Content: user},
			},
			Prompt: &prompt,
			Constraint: &record.Constraint{Kind: constraint.JSON, Source: longSchema, SHA256: hex.EncodeToString(sum[:]),
				Enforce: constraint.EnforceMask, Formats: constraint.FormatsMask},
			Model: model.Identity{Engine: "e", Name: "n"}, Determinism: "fast",
		},
	})
}

func write(t *testing.T, s *store.Store, id string, r *record.Record) string {
	t.Helper()
	path, err := s.Write(id, r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Check(b); err != nil {
		t.Errorf("the stored form: %v\n%s", err, b)
	}
	return string(b)
}

func sources(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "sources"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestRoundTrip(t *testing.T) {
	refused := record.Normal(&record.Record{Error: &record.Error{Code: record.SchemaRefused, Message: "no"}})
	reordered := sample("short")
	reordered.Request.Prompt = ptr("a template that trims: " + strings.TrimSpace(longSystem))
	only := sample(longInput)
	only.Request.Messages = only.Request.Messages[3:]
	empty := sample("")
	empty.Request.Prompt = ptr("")
	for name, r := range map[string]*record.Record{
		"short input": sample("short"), "long input": sample(longInput), "refused": refused,
		"changed by the template": reordered, "no system message": only, "empty": empty,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, store.Open(dir), "t1", r)
			got, err := store.Open(dir).Read("t1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r, got); diff != "" {
				t.Error(diff)
			}
			recordtest.Check(t, got)
		})
	}
}

// Long texts that repeat are stored once; this turn's own input is not one.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	s := store.Open(dir)
	a := write(t, s, "a", sample(longInput))
	b := write(t, s, "b", sample("short"))
	if got := sources(t, dir); len(got) != 3 {
		t.Errorf("sources %v, want the system message, the earlier answer and the schema", got)
	}
	for _, text := range []string{longSystem[:100], longSchema[:100], longOld[:100]} {
		if strings.Contains(a, text) || strings.Contains(b, text) {
			t.Errorf("a record repeats %q", text)
		}
	}
	if strings.Count(a, longInput) != 2 {
		t.Error("the input is not in the record")
	}
	for _, name := range sources(t, dir) {
		text, err := os.ReadFile(filepath.Join(dir, "sources", name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != name {
			t.Errorf("%s holds another text", name)
		}
	}
}

// The Python function in the documentation puts the texts back.
func TestDocumentedReader(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	doc, err := os.ReadFile("../../docs/turn-record.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(doc)
	if found == nil {
		t.Fatal("no function")
	}
	dir := t.TempDir()
	s := store.Open(dir)
	refused := record.Normal(&record.Record{Error: &record.Error{Code: record.SchemaRefused, Message: "no"}})
	for id, want := range map[string]*record.Record{"a": sample(longInput), "b": refused} {
		write(t, s, id, want)
		cmd := exec.Command(python, "-c", string(found[1])+"\nimport sys\nprint(json.dumps(read_record(sys.argv[1])))", s.Path(id))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got, whole any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(recordtest.Check(t, want), &whole); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestReadFaults(t *testing.T) {
	dir := t.TempDir()
	s := store.Open(dir)
	text := write(t, s, "good", sample("x"))
	put := func(name, data string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("cut.json", text[:len(text)/2])
	put("empty.json", "")
	put("list.json", "[]")
	put("old.json", strings.Replace(text, record.SchemaVersion, "agentgraph.turn/0", 1))
	put("escape.json", strings.Replace(text, `"sha256": "`, `"sha256": "../../x`, 1))
	if err := os.Mkdir(filepath.Join(dir, "folder.json"), 0o777); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]error{
		"cut": store.ErrMalformed, "empty": store.ErrMalformed, "list": store.ErrMalformed,
		"old": store.ErrMalformed, "escape": store.ErrMalformed, "folder": store.ErrMalformed,
		"none": fs.ErrNotExist, "": store.ErrBadID, "../good": store.ErrBadID, ".good": store.ErrBadID,
		"a\nb": store.ErrBadID, strings.Repeat("x", 201): store.ErrBadID,
	} {
		if _, err := s.Read(id); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", id, err, want)
		}
		if want == store.ErrBadID {
			if _, err := s.Write(id, sample("x")); !errors.Is(err, want) {
				t.Errorf("write %q: got %v", id, err)
			}
		}
	}
	sum := sha256.Sum256([]byte(longSystem))
	source := filepath.Join("sources", hex.EncodeToString(sum[:]))
	put(source, "something else")
	if _, err := s.Read("good"); !errors.Is(err, store.ErrCorruptSource) || !strings.Contains(err.Error(), source) {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(filepath.Join(dir, source)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read("good"); !errors.Is(err, store.ErrMissingSource) {
		t.Errorf("got %v", err)
	}
	// The next record that needs the text brings it back, also for the old one.
	write(t, s, "next", sample("x"))
	if _, err := s.Read("good"); err != nil {
		t.Errorf("got %v", err)
	}
	put(source, strings.Repeat("y", len(longSystem)))
	write(t, store.Open(dir), "next2", sample("x")) // a new process looks inside
	if _, err := s.Read("good"); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestEach(t *testing.T) {
	dir := t.TempDir()
	s := store.Open(dir)
	if err := store.Open(filepath.Join(dir, "none")).Each(nil); err != nil {
		t.Errorf("no folder: %v", err)
	}
	for _, id := range []string{"b", "a", "c"} {
		write(t, s, id, sample(id))
	}
	for _, name := range []string{"bad.json", "notes.txt", ".agentgraph-1.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("?"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	err := s.Each(func(id string, r *record.Record) error {
		ids = append(ids, id+r.Request.Messages[3].Content)
		return nil
	})
	if diff := cmp.Diff([]string{"aa", "bb", "cc"}, ids); diff != "" {
		t.Error(diff)
	}
	var e *store.Error
	if !errors.As(err, &e) || filepath.Base(e.Path) != "bad.json" {
		t.Errorf("got %v", err)
	}
	stop := errors.New("stop")
	if err := s.Each(func(string, *record.Record) error { return stop }); err != stop {
		t.Errorf("got %v", err)
	}
	removed, err := s.Sweep()
	if err != nil || len(removed) != 1 {
		t.Errorf("swept %v, %v", removed, err)
	}
}

func TestWriteReplaces(t *testing.T) {
	dir := t.TempDir()
	s := store.Open(dir)
	write(t, s, "t", sample("first"))
	write(t, s, "t", sample("second"))
	r, err := s.Read("t")
	if err != nil || r.Request.Messages[3].Content != "second" {
		t.Errorf("got %v", err)
	}
	if ids, err := s.IDs(); err != nil || len(ids) != 1 {
		t.Errorf("ids %v, %v", ids, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestConcurrentWrites(t *testing.T) {
	dir := t.TempDir()
	s := store.Open(dir)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 5 {
				if _, err := s.Write(fmt.Sprintf("t%d", j), sample(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
				if _, err := s.Read(fmt.Sprintf("t%d", j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := sources(t, dir); len(got) != 3 {
		t.Errorf("sources %v", got)
	}
}

func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "turns")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(file).Write("t", sample("x")); err == nil {
		t.Error("written into a file")
	}
}

func BenchmarkWrite(b *testing.B) {
	s := store.Open(b.TempDir())
	r := sample("short")
	for i := 0; b.Loop(); i++ {
		if _, err := s.Write(fmt.Sprint("t", i), r); err != nil {
			b.Fatal(err)
		}
	}
}
