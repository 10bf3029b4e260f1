package distill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/record"
)

// CheckStatus is what came of checking one answer.
type CheckStatus string

// The statuses of a check.
const (
	CheckValid     CheckStatus = "valid"     // conforms to the schema it was made under
	CheckFree      CheckStatus = "free"      // no schema; where there is a record, it agrees
	CheckFailed    CheckStatus = "failed"    // Reasons say why
	CheckUnchecked CheckStatus = "unchecked" // this build cannot decide
)

// Check is one answer as Verify found it.
type Check struct {
	Agent  string      `json:"agent"`
	Path   string      `json:"path"`
	TurnID string      `json:"turn_id,omitempty"`
	Status CheckStatus `json:"status"`
	// Schema is what it was held against; null: free text.
	Schema      *Schema                 `json:"schema"`
	Reasons     []string                `json:"reasons,omitempty"`
	Diagnostics []constraint.Diagnostic `json:"diagnostics,omitempty"`
}

// Error prints "path: what is wrong" on one line.
func (c *Check) Error() string {
	return agents.Printable(c.Path) + ": " + agents.Printable(strings.Join(c.Reasons, "; "))
}

// VerifyReport counts what Verify found.
type VerifyReport struct {
	Root      string `json:"root"`
	Answers   int    `json:"answers"`
	Valid     int    `json:"valid"`
	Free      int    `json:"free"`
	Failed    int    `json:"failed"`
	Unchecked int    `json:"unchecked"`
	// WithoutRecord counts the answers that were held against the schema file
	// as it is now, because no record says which it was.
	WithoutRecord int `json:"without_record"`
	// Problems counts records, files and folders that cannot be read. Files
	// of output/ that are no answers are not among them.
	Problems int `json:"problems"`
}

// OK says that every answer was checked and none failed.
func (r *VerifyReport) OK() bool { return r.Failed+r.Unchecked+r.Problems == 0 }

// Verify checks every answer in the graph or folder at root against the schema
// it was made under, and its file against its record. found is told of what
// is not as it should be, in order: a *Check for an answer, or a *Problem.
func Verify(ctx context.Context, root string, opt Options, found func(check *Check, problem *Problem) error) (*VerifyReport, error) {
	rep := &VerifyReport{}
	v := &verifier{limits: map[string]constraint.Limits{}, graphs: map[string]*agents.Graph{}}
	for c, err := range Map(ctx, Answers(ctx, root, opt), v.check) {
		var p *Problem
		switch {
		case errors.As(err, &p):
			if p.Kind == Stray {
				continue
			}
			rep.Problems++
			if err := found(nil, p); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		}
		rep.Answers++
		if c.TurnID == "" {
			rep.WithoutRecord++
		}
		switch c.Status {
		case CheckValid:
			rep.Valid++
			continue
		case CheckFree:
			rep.Free++
			continue
		case CheckUnchecked:
			rep.Unchecked++
		default:
			rep.Failed++
		}
		if err := found(c, nil); err != nil {
			return nil, err
		}
	}
	return rep, nil
}

// verifier keeps the bounds that the agents' settings allow, by path.
type verifier struct {
	mu     sync.Mutex
	limits map[string]constraint.Limits
	graphs map[string]*agents.Graph
}

func (v *verifier) check(ctx context.Context, a *Answer) *Check {
	c := &Check{Agent: a.Agent, Path: a.Path, TurnID: a.TurnID, Schema: a.Schema, Status: CheckFree}
	fail := func(format string, args ...any) {
		c.Status = CheckFailed
		c.Reasons = append(c.Reasons, fmt.Sprintf(format, args...))
	}
	rec, err := a.Record()
	if err != nil {
		fail("its record cannot be read: %v", err)
	}
	limits := v.limitsOf(a.Folder)
	most := int64(MaxAnswerBytes)
	if a.Schema != nil {
		most = int64(limits.AnswerBytes)
	}
	data, err := a.Read(most)
	if err != nil {
		fail("the answer %s", plain(err))
		return c
	}
	if rec != nil {
		agree(rec, a, data, fail)
	}
	spec, formats := a.promise(rec)
	if spec == nil || a.TurnID != "" && rec == nil {
		return c
	}
	con, err := constraint.Compile(*spec, constraint.Options{Enforce: constraint.EnforceValidate, Formats: formats, Limits: limits})
	if err != nil {
		why := "its schema cannot be used: " + err.Error()
		var ref *constraint.Refusal
		if c.Status == CheckFree && (errors.Is(err, constraint.ErrNotBuilt) || errors.As(err, &ref) && ref.NotNative) {
			c.Status, c.Reasons = CheckUnchecked, []string{why}
		} else {
			fail("%s", why)
		}
		return c
	}
	verdict := con.Validate(ctx, string(data))
	if !verdict.Valid {
		c.Diagnostics = verdict.Diagnostics
		fail("not valid against %s: %s", schemaText(a.Schema), diagnosticText(verdict.Diagnostics))
	} else if c.Status == CheckFree {
		c.Status = CheckValid
	}
	return c
}

// agree compares a file with its record, and the record with itself.
func agree(rec *record.Record, a *Answer, data []byte, fail func(string, ...any)) {
	sum := hashOf(data)
	if sum != a.Output.SHA256 || int64(len(data)) != a.Output.Bytes {
		fail("file and record disagree: the file has %d bytes, sha256 %s; the record says %d, %s",
			len(data), short(sum), a.Output.Bytes, short(a.Output.SHA256))
	} else if text, ok := rec.FileText(); !ok || hashOf([]byte(text)) != sum {
		fail("file and record disagree: the record's answer is another text")
	}
	if r := rec.Request; r != nil && r.Constraint != nil {
		if hashOf([]byte(r.Constraint.Source)) != r.Constraint.SHA256 {
			fail("the record's schema is not the one that its hash %s names", short(r.Constraint.SHA256))
		}
		if rec.OutputValidation.Status != record.Valid {
			fail("the record says that the answer is %s", rec.OutputValidation.Status)
		}
	}
}

// promise is what an answer has to keep: what its record says, without one
// the agent's schema file.
func (a *Answer) promise(rec *record.Record) (*constraint.Spec, constraint.Formats) {
	if rec == nil {
		s := a.Folder.SchemaFile
		if s == nil {
			return nil, ""
		}
		return &constraint.Spec{Kind: s.Kind(), Source: s.Source, File: agents.Rel(a.Folder.Root(), s.Path)}, ""
	}
	if rec.Request == nil || rec.Request.Constraint == nil {
		return nil, ""
	}
	c := rec.Request.Constraint
	return &constraint.Spec{Kind: c.Kind, Source: []byte(c.Source), File: c.File}, c.Formats
}

// limitsOf are the bounds of an agent's settings; never less than the
// standard, under which most answers were made.
func (v *verifier) limitsOf(f *Folder) constraint.Limits {
	v.mu.Lock()
	defer v.mu.Unlock()
	l, ok := v.limits[f.Path]
	if ok {
		return l
	}
	l = constraint.Standard
	if g := v.graph(f.graphRoot()); g != nil {
		for _, a := range g.Agents {
			if agents.Rel(f.Root(), a.Dir) == f.Path {
				l = larger(l, a.Settings.Constraint.Limits)
			}
		}
	}
	v.limits[f.Path] = l
	return l
}

func (v *verifier) graph(root string) *agents.Graph {
	g, ok := v.graphs[root]
	if !ok && root != "" {
		g, _ = agents.Load(root) // a folder that is no graph has no settings
		v.graphs[root] = g
	}
	return g
}

func larger(a, b constraint.Limits) constraint.Limits {
	return constraint.Limits{
		SchemaBytes: max(a.SchemaBytes, b.SchemaBytes), SchemaNodes: max(a.SchemaNodes, b.SchemaNodes),
		SchemaDepth: max(a.SchemaDepth, b.SchemaDepth), SchemaVisits: max(a.SchemaVisits, b.SchemaVisits),
		AnswerBytes: min(max(a.AnswerBytes, b.AnswerBytes), MaxAnswerBytes), AnswerNodes: max(a.AnswerNodes, b.AnswerNodes),
		AnswerDepth: max(a.AnswerDepth, b.AnswerDepth), ValidationWork: max(a.ValidationWork, b.ValidationWork),
	}
}

func schemaText(s *Schema) string {
	if s == nil {
		return "its schema"
	}
	if s.File == "" {
		return "the schema " + short(s.SHA256)
	}
	return s.File + " (" + short(s.SHA256) + ")"
}

func diagnosticText(list []constraint.Diagnostic) string {
	var parts []string
	for _, d := range list {
		text := string(d.Code)
		if d.Instance != "" || d.Schema != "" {
			text += fmt.Sprintf(" at %q (schema %q)", d.Instance, d.Schema)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// short is the beginning of a hash, enough to tell it from others.
func short(sum string) string { return sum[:min(len(sum), 12)] }
