package distill

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/record"
)

// MaxListed bounds the problems that a report lists; they are all counted.
const MaxListed = 1000

// ScanReport is what Scan found.
type ScanReport struct {
	Root    string       `json:"root"` // what paths are relative to
	Agents  []*AgentScan `json:"agents"`
	Answers int          `json:"answers"`
	// Problems are the first MaxListed of ProblemCount.
	Problems     []*Problem `json:"problems"`
	ProblemCount int        `json:"problem_count"`
}

// AgentScan is one agent with its answers.
type AgentScan struct {
	Agent string `json:"agent"`
	Path  string `json:"path"`
	// Schema is the schema file as it is now; null: none, or one that cannot
	// be used, which is among the problems.
	Schema *SchemaScan `json:"schema"`
	// Pattern is how answers are called under it.
	Pattern string `json:"pattern"`
	Answers int    `json:"answers"`
	// Groups are the answers by what they were made under, the current schema
	// first.
	Groups []*Group `json:"groups"`
	// WithoutRecord counts the answers that only their names tell of.
	WithoutRecord int `json:"without_record"`
	Records       int `json:"records"`
	// Statuses counts the records by outcome; "refused" is one before
	// admission.
	Statuses map[string]int `json:"statuses"`
	// Missing counts files that a record names and that are not there.
	Missing int `json:"missing"`
	Strays  int `json:"strays"` // files of output/ that are no answers
}

// SchemaScan is a schema file.
type SchemaScan struct {
	Path      string          `json:"path"`
	Format    string          `json:"format"`
	Extension string          `json:"extension"`
	Kind      constraint.Kind `json:"kind"`
	SHA256    string          `json:"sha256"` // of the file
	// SourceSHA256 is what records have: without a byte-order mark and, of a
	// regular expression, without one newline.
	SourceSHA256 string `json:"source_sha256"`
}

// Group is the answers that were made under one schema.
type Group struct {
	Schema  *Schema `json:"schema"` // null: free text
	Current bool    `json:"current"`
	Answers int     `json:"answers"`
	First   string  `json:"first"` // names, in the order of turns and times
	Last    string  `json:"last"`
}

// Scan says what the graph or folder at root holds. each, which may be nil, is
// told of every answer in order.
func Scan(ctx context.Context, root string, opt Options, each func(*Answer) error) (*ScanReport, error) {
	rep := &ScanReport{Agents: []*AgentScan{}, Problems: []*Problem{}}
	for f, err := range Folders(ctx, root, opt) {
		if err != nil {
			if err := rep.problem(err); err != nil {
				return nil, err
			}
			continue
		}
		rep.Root = f.Root()
		a := &AgentScan{Agent: f.Agent, Path: f.Path, Pattern: f.Pattern.String(), Groups: []*Group{}, Statuses: map[string]int{}}
		if s := f.SchemaFile; s != nil {
			a.Schema = &SchemaScan{
				Path: agents.Rel(f.Root(), s.Path), Format: s.Name.Format, Extension: s.Name.Ext,
				Kind: s.Kind(), SHA256: s.SHA256, SourceSHA256: f.Schema.SHA256,
			}
		}
		rep.Agents = append(rep.Agents, a)
		groups := map[Schema]*Group{}
		for answer, err := range f.Answers(ctx) {
			if err != nil {
				if err := rep.problem(err); err != nil {
					return nil, err
				}
				var p *Problem
				if errors.As(err, &p) && p.Kind == Stray {
					a.Strays++
				}
				continue
			}
			a.add(groups, answer)
			if each != nil {
				if err := each(answer); err != nil {
					return nil, err
				}
			}
		}
		rep.Answers += a.Answers
		a.count(f)
	}
	return rep, nil
}

// problem keeps a Problem; any other error it returns.
func (rep *ScanReport) problem(err error) error {
	var p *Problem
	if !errors.As(err, &p) {
		return err
	}
	rep.ProblemCount++
	if len(rep.Problems) < MaxListed {
		rep.Problems = append(rep.Problems, p)
	}
	return nil
}

func (a *AgentScan) add(groups map[Schema]*Group, answer *Answer) {
	a.Answers++
	if answer.TurnID == "" {
		a.WithoutRecord++
	}
	var key Schema
	if answer.Schema != nil {
		key = *answer.Schema
	}
	g := groups[key]
	if g == nil {
		g = &Group{Schema: answer.Schema, Current: answer.Current, First: answer.Name}
		groups[key] = g
		a.Groups = append(a.Groups, g)
	}
	g.Answers++
	g.Last = answer.Name
}

// count adds what the records say.
func (a *AgentScan) count(f *Folder) {
	slices.SortStableFunc(a.Groups, func(x, y *Group) int {
		switch {
		case x.Current == y.Current:
			return 0
		case x.Current:
			return -1
		}
		return 1
	})
	if f.index == nil {
		return
	}
	a.Records = f.index.records
	for status, n := range f.index.statuses {
		if status == "" {
			status = "refused"
		}
		a.Statuses[string(status)] = n
	}
	for e := range maps.Values(f.index.byName) {
		if !e.met {
			a.Missing++
		}
	}
}

// StatusList is the keys of Statuses, completed first.
func (a *AgentScan) StatusList() []string {
	names := slices.SortedFunc(maps.Keys(a.Statuses), func(x, y string) int {
		if done := string(record.Completed); x == done || y == done {
			if x == done {
				return -1
			}
			return 1
		}
		return strings.Compare(x, y)
	})
	return names
}
