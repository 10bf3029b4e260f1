package distill_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/distill"
	"agentgraph/record"
)

// verify returns what was found, one line each.
func verify(t testing.TB, root string, opt distill.Options) ([]string, *distill.VerifyReport) {
	t.Helper()
	var found []string
	rep, err := distill.Verify(context.Background(), root, opt, func(c *distill.Check, p *distill.Problem) error {
		if c != nil {
			found = append(found, c.Error())
		} else {
			found = append(found, p.Error())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, rep
}

func TestVerifyGood(t *testing.T) {
	g := mixed(t)
	found, rep := verify(t, g.root, distill.Options{})
	if want := (distill.VerifyReport{Answers: 14, Valid: 13, Free: 1, WithoutRecord: 1}); found != nil || *rep != want || !rep.OK() {
		t.Errorf("%q, %+v", found, rep)
	}
	// The schema file may change: answers are held against what they were
	// made under, and those without a record against what is there.
	g.write("agents/rater/system/.schema-rating.json", `{"type":"string"}`)
	found, rep = verify(t, g.root, distill.Options{})
	if len(found) != 1 || !strings.HasPrefix(found[0], "agents/rater/output/rating_99.json: not valid against .schema-rating.json") || rep.Failed != 1 || rep.OK() {
		t.Errorf("%q, %+v", found, rep)
	}
}

func TestVerifyFailures(t *testing.T) {
	tests := []struct {
		name   string
		change func(m *made)
		after  func(t *testing.T, g *graphDir, answer string)
		want   []string
	}{
		{name: "the file was edited", change: func(m *made) { m.file = `{"rating":2}` },
			want: []string{"file and record disagree: the file has 12 bytes, sha256 " + hex64(`{"rating":2}`)[:12]}},
		{name: "edited into what the schema forbids", change: func(m *made) { m.file = `{"rating":"2"}` },
			want: []string{"file and record disagree", "not valid against .schema-rating.json", `schema_violation at "/rating"`}},
		{name: "an answer that never was valid", change: func(m *made) {
			bad := `{"rating":"1"}`
			m.rec.Outcome.Output = &bad
		}, want: []string{"not valid against"}},
		{name: "record of an invalid answer", change: func(m *made) { m.file, m.rec.OutputValidation.Status = `{"rating":1}`, record.Invalid },
			after: func(t *testing.T, g *graphDir, answer string) {
				editRecord(t, g, func(r map[string]any) {
					r["outputs"] = []any{map[string]any{"path": answer, "sha256": hex64(`{"rating":1}`), "bytes": 12}}
				})
				g.write(answer, `{"rating":1}`)
			}, want: []string{"the record's answer is another text", "the record says that the answer is invalid"}},
		{name: "the record's text was edited", after: func(t *testing.T, g *graphDir, answer string) {
			editRecord(t, g, func(r map[string]any) { r["outcome"].(map[string]any)["output"] = `{"rating":3}` })
		}, want: []string{"the record's answer is another text"}},
		{name: "the record's schema was edited", after: func(t *testing.T, g *graphDir, answer string) {
			editRecord(t, g, func(r map[string]any) {
				r["request"].(map[string]any)["constraint"].(map[string]any)["source"] = `{"type":"string"}`
			})
		}, want: []string{"the record's schema is not the one that its hash", "not valid against"}},
		{name: "a schema that cannot be used", change: func(m *made) {
			c := m.rec.Request.Constraint
			c.Source = `{"type":"strng"}`
			c.SHA256 = hex64(c.Source)
		}, want: []string{"its schema cannot be used: .schema-rating.json:1:2"}},
		{name: "a format is asserted", change: func(m *made) {
			c := m.rec.Request.Constraint
			c.Source, c.Formats = `{"properties":{"rating":{"type":"integer"},"d":{"type":"string","format":"date"}}}`, constraint.FormatsAssert
			c.SHA256 = hex64(c.Source)
			bad := `{"rating":1,"d":"no date"}`
			m.rec.Outcome.Output = &bad
		}, want: []string{`schema_violation at "/d"`}},
		{name: "a torn record", after: func(t *testing.T, g *graphDir, answer string) {
			path := filepath.Join(g.root, "agents/rater/turns/turn000001.json")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			g.write("agents/rater/turns/turn000001.json", string(b[:len(b)/2]))
		}, want: []string{"agents/rater/turns/turn000001.json: the record is torn or no record"}},
		{name: "a record of something else", after: func(t *testing.T, g *graphDir, answer string) {
			g.write("agents/rater/turns/other.json", `{"hello":"world"}`)
		}, want: []string{`agents/rater/turns/other.json: the record is none: schema_version is ""`}},
		{name: "a shared text is gone", change: func(m *made) {
			m.rec.Request.Messages[0].Content = strings.Repeat("long ", 1000)
		}, after: func(t *testing.T, g *graphDir, answer string) {
			if err := os.RemoveAll(filepath.Join(g.root, "agents/rater/turns/sources")); err != nil {
				t.Fatal(err)
			}
		}, want: []string{"its record cannot be read", "sources/"}},
		{name: "a shared text was edited", change: func(m *made) {
			m.rec.Request.Messages[0].Content = strings.Repeat("long ", 1000)
		}, after: func(t *testing.T, g *graphDir, answer string) {
			g.write("agents/rater/turns/sources/"+hex64(strings.Repeat("long ", 1000)), "short")
		}, want: []string{"is not the one it was"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			g := newGraphDir(t)
			g.write("agents/rater/system/.schema-rating.json", ratingSchema)
			m := g.turn("rater", "in", `{"rating":1}`, append([]func(*made){shaped}, changes(tc.change)...)...)
			answer := "agents/rater/output/" + m.name
			if tc.after != nil {
				tc.after(t, g, answer)
			}
			good := g.turn("rater", "in", `{"rating":1}`, shaped) // the rest goes on
			found, rep := verify(t, g.root, distill.Options{})
			all := strings.Join(found, "\n")
			for _, w := range tc.want {
				if !strings.Contains(all, w) {
					t.Errorf("%q is not in:\n%s", w, all)
				}
			}
			if len(found) != 1 || rep.OK() || strings.Contains(all, good.name) {
				t.Errorf("%+v, found:\n%s", rep, all)
			}
		})
	}
}

func changes(f func(*made)) []func(*made) {
	if f == nil {
		return nil
	}
	return []func(*made){f}
}

// editRecord changes the one record of agent rater.
func editRecord(t *testing.T, g *graphDir, change func(map[string]any)) {
	t.Helper()
	name := "agents/rater/turns/turn000001.json"
	b, err := os.ReadFile(filepath.Join(g.root, name))
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	change(r)
	if b, err = json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	g.write(name, string(b))
}

// Bounds come from the agent's settings where these allow more.
func TestVerifyLimits(t *testing.T) {
	g := newGraphDir(t)
	long := `{"rating":1` + strings.Repeat(" ", 2<<20) + `}`
	g.turn("rater", "in", long, shaped)
	found, _ := verify(t, g.root, distill.Options{})
	if len(found) != 1 || !strings.Contains(found[0], "more than the 1048576 that are read") {
		t.Errorf("%q", found)
	}
	g.write("agents/rater/agent.yaml", "limits: {answer_bytes: 3000000}\n")
	if found, rep := verify(t, g.root, distill.Options{}); found != nil || rep.Valid != 1 {
		t.Errorf("%q, %+v", found, rep)
	}
}

// Without the native library the grammar kinds cannot be decided; with it they
// are.
func TestVerifyKinds(t *testing.T) {
	_, err := constraint.ByteVocabulary()
	native := err == nil
	g := newGraphDir(t)
	g.write("agents/l/system/.schema-l.txt@lark", `start: "yes" | "no"`)
	g.write("agents/l/output/l_0.txt", "yes")
	g.write("agents/l/output/l_1.txt", "maybe")
	g.write("agents/r/system/.schema-r.txt@regex", "[a-z]+")
	g.write("agents/r/output/r_0.txt", "yes")
	found, rep := verify(t, g.root, distill.Options{})
	want := distill.VerifyReport{Answers: 3, Valid: 2, Failed: 1, WithoutRecord: 3}
	if !native {
		want = distill.VerifyReport{Answers: 3, Valid: 1, Unchecked: 2, WithoutRecord: 3}
	}
	if diff := cmp.Diff(want, *rep); diff != "" {
		t.Errorf("%q (-want +got):\n%s", found, diff)
	}
}

// A check of some answers is none of all.
func TestVerifyCancelled(t *testing.T) {
	g := newGraphDir(t)
	for i := range 3 {
		made := g.turn("writer", fmt.Sprint("input ", i), fmt.Sprint("answer ", i))
		g.write(made.rec.Outputs[0].Path, "changed since")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := distill.Verify(ctx, g.root, distill.Options{}, func(*distill.Check, *distill.Problem) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
