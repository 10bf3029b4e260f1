package distill_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/distill"
	"agentgraph/record"
)

// mixed is a graph with all that a scan tells apart: agent rater with a schema
// file, answers under it, under an earlier one and from before it.
func mixed(t testing.TB) *graphDir {
	g := newGraphDir(t)
	g.write("agents/rater/system/.schema-rating.json", ratingSchema)
	for i := range 11 {
		g.turn("rater", fmt.Sprintf("input %d", i), fmt.Sprintf(`{"rating":%d}`, i), shaped)
	}
	g.turn("rater", "a", `{"score":1}`, shaped, func(m *made) {
		c := m.rec.Request.Constraint
		c.Source = `{"properties":{"score":{"type":"integer"}}}`
		c.SHA256, c.File, m.name = hex64(c.Source), ".schema-score.json", "score_0.json"
	})
	g.turn("rater", "b", "free text", func(m *made) { m.name = "out-1700000000000.txt" })
	g.turn("rater", "c", "cut off", func(m *made) {
		m.rec.Outcome.Status, m.rec.Outcome.Limit = record.LimitExceeded, "output_tokens"
		m.rec.Error = &record.Error{Code: record.Truncated, Message: "cut off"}
	})
	g.write("agents/rater/output/rating_99.json", `{"rating":5}`)
	g.write("agents/rater/output/notes.md", "mine")
	return g
}

func scan(t testing.TB, root string, opt distill.Options) *distill.ScanReport {
	t.Helper()
	rep, err := distill.Scan(context.Background(), root, opt, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func problems(rep *distill.ScanReport) []string {
	var list []string
	for _, p := range rep.Problems {
		list = append(list, string(p.Kind)+" "+p.Error())
	}
	return list
}

func TestScan(t *testing.T) {
	g := mixed(t)
	if err := os.Remove(filepath.Join(g.root, "agents/rater/output/rating_3.json")); err != nil {
		t.Fatal(err)
	}
	rep := scan(t, g.root, distill.Options{})
	current := &distill.Schema{Kind: "json", File: ".schema-rating.json", SHA256: hex64(ratingSchema)}
	want := &distill.AgentScan{
		Agent: "rater", Path: "agents/rater", Pattern: "rating_{turn}.json", Answers: 13,
		Schema: &distill.SchemaScan{Path: "agents/rater/system/.schema-rating.json", Format: "rating", Extension: "json", Kind: "json",
			SHA256: hex64(ratingSchema), SourceSHA256: hex64(ratingSchema)},
		Groups: []*distill.Group{
			{Schema: current, Current: true, Answers: 11, First: "rating_1.json", Last: "rating_99.json"},
			{Schema: &distill.Schema{Kind: "json", File: ".schema-score.json", SHA256: hex64(`{"properties":{"score":{"type":"integer"}}}`)},
				Answers: 1, First: "score_0.json", Last: "score_0.json"},
			{Answers: 1, First: "out-1700000000000.txt", Last: "out-1700000000000.txt"},
		},
		WithoutRecord: 1, Records: 14, Statuses: map[string]int{"completed": 13, "limit_exceeded": 1}, Missing: 1, Strays: 1,
	}
	if diff := cmp.Diff([]*distill.AgentScan{want}, rep.Agents); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"stray agents/rater/output/notes.md: is no answer: it is not called rating_{turn}.json, and no record names it"}, problems(rep)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The same from inside: an agent's folder, and the folder of agents.
	for _, dir := range []string{"agents", "agents/rater"} {
		if diff := cmp.Diff(rep.Agents, scan(t, filepath.Join(g.root, dir), distill.Options{}).Agents); diff != "" {
			t.Errorf("%s (-graph +%s):\n%s", dir, dir, diff)
		}
	}
}

// Answers come in the order of their numbers, not of the bytes of their names.
func TestAnswersInOrder(t *testing.T) {
	g := mixed(t)
	var got []string
	for a, err := range distill.Answers(context.Background(), g.root, distill.Options{}) {
		if err != nil {
			continue
		}
		if strings.HasPrefix(a.Name, "rating_") {
			got = append(got, a.Name)
		}
		rec, err := a.Record()
		if err != nil || (rec == nil) != (a.TurnID == "") {
			t.Errorf("%s: %v, %v", a.Path, rec, err)
		}
		if data, err := a.Read(1 << 20); err != nil || a.TurnID != "" && hex64(string(data)) != a.Output.SHA256 {
			t.Errorf("%s: %q, %v", a.Path, data, err)
		}
	}
	want := "rating_1.json rating_2.json rating_3.json rating_4.json rating_5.json rating_6.json rating_7.json rating_8.json rating_9.json rating_10.json rating_11.json rating_99.json"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got %s", s)
	}
}

// Folders that only follow the naming rules: no records, no settings, agents
// below agents, names as the schema files of SCHEMA.md give them.
func TestScanByNamesAlone(t *testing.T) {
	g := newGraphDir(t)
	g.write("team/lead/system/role.md", "Lead.")
	g.write("team/lead/output/out-1712345678000.txt", "free")
	g.write("team/lead/output/rating_0.json", "{}")
	g.write("team/lead/helpers/log/system/.schema-log.txt@regex", "[a-z]+\n")
	g.write("team/lead/helpers/log/output/log_0.txt", "abc")
	g.write("team/lead/helpers/log/output/log_1.txt", "ABC")
	g.write("team/lead/helpers/log/output/logs_2.txt", "abc")
	g.write("stamps/system/.schema-out-{timestamp}.json", `{"type":"object"}`)
	g.write("stamps/output/out-1712345678000.json", "{}")
	g.write("nobody/notes.txt", "no agent")
	rep := scan(t, g.root, distill.Options{})
	got := map[string]int{}
	for _, a := range rep.Agents {
		got[a.Agent] = a.Answers
		if a.Answers != a.WithoutRecord || a.Records != 0 {
			t.Errorf("%s: %+v", a.Agent, a)
		}
	}
	if diff := cmp.Diff(map[string]int{"team/lead": 1, "team/lead/helpers/log": 2, "stamps": 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if rep.ProblemCount != 2 {
		t.Errorf("%v", problems(rep))
	}
	failed, v := verify(t, g.root, distill.Options{})
	if want := []string{"team/lead/helpers/log/output/log_1.txt: not valid against .schema-log.txt@regex (" + hex64("[a-z]+")[:12] + `): grammar_violation`}; !cmp.Equal(want, failed) {
		t.Errorf("%q", failed)
	}
	if v.Answers != 4 || v.Valid != 2 || v.Free != 1 || v.Failed != 1 || v.WithoutRecord != 4 {
		t.Errorf("%+v", v)
	}

	// One folder of answers, its schema file elsewhere.
	dir, schema := filepath.Join(g.root, "team/lead/helpers/log/output"), filepath.Join(g.root, "team/lead/helpers/log/system/.schema-log.txt@regex")
	if rep := scan(t, dir, distill.Options{Schema: schema}); rep.Answers != 2 || rep.ProblemCount != 1 {
		t.Errorf("%+v", rep)
	}
	// An agent by itself, also when it was moved away with its records.
	m := mixed(t)
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(filepath.Join(m.root, "agents/rater"), moved); err != nil {
		t.Fatal(err)
	}
	if rep := scan(t, moved, distill.Options{}); len(rep.Agents) != 1 || rep.Answers != 14 || rep.Agents[0].WithoutRecord != 1 {
		t.Errorf("%+v", rep.Agents[0])
	}
}

func TestScanOptions(t *testing.T) {
	g := mixed(t)
	g.write("agents/other/system/x.md", "x")
	for _, tc := range []struct {
		dir    string
		agents []string
		want   string
	}{
		{"", []string{"other"}, ""},
		{"", []string{"nobody"}, `no agent is called "nobody"`},
		{"nowhere", nil, "is gone"},
		{"agents/rater/output", nil, "--schema"},
		{"agents/rater/output/notes.md", nil, "is a file"},
	} {
		rep, err := distill.Scan(context.Background(), filepath.Join(g.root, tc.dir), distill.Options{Agents: tc.agents}, nil)
		if tc.want == "" {
			if err != nil || len(rep.Agents) != 1 || rep.Agents[0].Agent != "other" {
				t.Errorf("%v: %+v, %v", tc, rep, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v", tc, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := distill.Scan(ctx, g.root, distill.Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
