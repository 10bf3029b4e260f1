package distill_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/distill"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/record/store"
)

// graphDir is a graph that tests fill with finished turns.
type graphDir struct {
	t      testing.TB
	root   string
	stores map[string]*store.Store
	n      int
}

func newGraphDir(t testing.TB) *graphDir {
	t.Helper()
	return &graphDir{t: t, root: t.TempDir(), stores: map[string]*store.Store{}}
}

// made is a finished turn that tests may change before it is written.
type made struct {
	agent, name string // of the answer's file
	rec         *record.Record
	file        string // what output/ holds; empty: the record's own text
}

const ratingSchema = `{"type":"object","properties":{"rating":{"type":"integer"}},"required":["rating"],"additionalProperties":false}`

// turn is a completed turn of an agent: this answer to this input.
func (g *graphDir) turn(agent, input, answer string, change ...func(*made)) *made {
	g.t.Helper()
	g.n++
	id := fmt.Sprintf("turn%06d", g.n)
	in := fileRef(fmt.Sprintf("agents/%s/input/%06d.txt", agent, g.n), input)
	started := time.Date(2026, 1, 1, 0, 0, g.n, 0, time.UTC)
	stop, one, two := model.Stop, int64(1), int64(2)
	m := &made{agent: agent, name: fmt.Sprintf("out-%d.txt", started.UnixMilli()), rec: &record.Record{
		TurnID: &id, RunID: &id, SessionID: &agent, TraceID: &id, Agent: &agent, Attempt: 1,
		Outcome:          &record.Outcome{Status: record.Completed, Output: &answer, FinishReason: &stop, Usage: &model.Usage{InputTokens: &one, OutputTokens: &two}},
		OutputValidation: record.Validation{Status: record.NotRequested},
		Accounting:       &record.Accounting{ModelCalls: "1", ToolCalls: "0"},
		Request: &record.Request{
			Messages:    []model.Message{{Role: model.System, Content: "Be " + agent + "."}, {Role: model.User, Content: input}},
			Model:       model.Identity{Engine: "script", Name: "small", WeightsSHA256: hex64("weights")},
			Determinism: "fast",
		},
		Inputs: []record.FileRef{in}, Lineage: &record.Lineage{Roots: []record.FileRef{in}},
		Timing: &record.Timing{Started: started, Finished: started.Add(time.Second)},
	}}
	for _, f := range change {
		f(m)
	}
	text, ok := m.rec.FileText()
	if m.file == "" && ok {
		m.file = text
	}
	dir := filepath.Join(g.root, "agents", agent)
	if ok {
		m.rec.Outputs = []record.FileRef{fileRef("agents/"+agent+"/output/"+m.name, text)}
		g.write(filepath.Join("agents", agent, "output", m.name), m.file)
	}
	g.write(filepath.Join("agents", agent, "system", "role.md"), "Be "+agent+".\n")
	s := g.stores[agent]
	if s == nil {
		s = store.Open(filepath.Join(dir, "turns"))
		g.stores[agent] = s
	}
	if _, err := s.Write(*m.rec.TurnID, m.rec); err != nil {
		g.t.Fatal(err)
	}
	return m
}

// shaped puts an answer under a JSON Schema.
func shaped(m *made) {
	by := constraint.ByMask
	m.name = fmt.Sprintf("rating_%s.json", (*m.rec.TurnID)[4:])
	for len(m.name) > len("rating_0.json") && m.name[7] == '0' {
		m.name = "rating_" + m.name[8:]
	}
	m.rec.OutputValidation = record.Validation{Status: record.Valid, EnforcedBy: &by}
	m.rec.Request.Constraint = &record.Constraint{Kind: constraint.JSON, File: ".schema-rating.json", Source: ratingSchema,
		SHA256: hex64(ratingSchema), Enforce: constraint.EnforceMask, Formats: constraint.FormatsMask}
}

// about makes a turn read another's answer, with its lineage.
func about(of *made) func(*made) {
	return func(m *made) {
		m.rec.Inputs = of.rec.Outputs
		m.rec.Lineage = &record.Lineage{Roots: of.rec.Lineage.Roots, Hops: of.rec.Lineage.Hops + 1}
	}
}

func (g *graphDir) write(name, text string) {
	g.t.Helper()
	path := filepath.Join(g.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

func fileRef(path, text string) record.FileRef {
	return record.FileRef{Path: path, SHA256: hex64(text), Bytes: int64(len(text))}
}

func hex64(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// export exports the graph into a new folder.
func (g *graphDir) export(opt distill.ExportOptions) (*distill.ExportReport, string) {
	g.t.Helper()
	opt.Dir = filepath.Join(g.t.TempDir(), "dataset")
	r, err := distill.Export(context.Background(), g.root, opt)
	if err != nil {
		g.t.Fatal(err)
	}
	return r, opt.Dir
}

// rows are the rows of a JSONL file.
func rows(t testing.TB, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	for line := range bytes.Lines(data) {
		var row map[string]any
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s: %v: %s", file, err, line)
		}
		list = append(list, row)
	}
	return list
}

func get(row map[string]any, path ...any) any {
	var v any = row
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}
