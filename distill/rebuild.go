package distill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/record"
)

// The two ways to a request.
const (
	FromRecord = "record" // what the turn's record says
	FromFolder = "folder" // system/, the schema file and the input, by the rule of SCHEMA.md
)

// RebuildOptions say how a request is rebuilt.
type RebuildOptions struct {
	// From is FromRecord or FromFolder; empty takes the record where there is
	// one.
	From string
	// Inputs are the files that the turn answered, for FromFolder; empty takes
	// those that the record names, or the one file in input/.
	Inputs []string
	// First asks for the turn's first request instead of the one that the
	// answer answers, which differ where tools were called or the answer was
	// repaired.
	First bool
	// Open opens the agent's model to render the prompt for FromFolder; nil
	// renders none.
	Open func(agents.ModelSpec) (model.Model, error)
	// Model stands in for the agent's model; DefaultModel is for agents that
	// name none.
	Model, DefaultModel string
}

// Rebuilt is a request, as it was or would be sent. Its members are those of a
// record's request.
type Rebuilt struct {
	From   string           `json:"from"`
	Agent  string           `json:"agent"`
	File   string           `json:"file"` // relative to the graph
	TurnID *string          `json:"turn_id"`
	Inputs []record.FileRef `json:"inputs"`

	Messages []model.Message `json:"messages"`
	// Prompt is what the chat template made of them; null where it is not
	// known.
	Prompt         *string            `json:"prompt"`
	TemplateSHA256 *string            `json:"template_sha256"`
	Clock          *time.Time         `json:"clock"`
	Constraint     *record.Constraint `json:"constraint"`
	Sampling       model.Sampling     `json:"sampling"`
	Tools          []model.Tool       `json:"tools"`
	Model          *model.Identity    `json:"model"` // null: none is set
	Determinism    string             `json:"determinism"`

	// Note says why the prompt is null.
	Note string `json:"note,omitempty"`
}

// Rebuild returns the request behind an answer or a record. The file may also
// be one of a folder without records.
func Rebuild(ctx context.Context, file string, opt RebuildOptions) (*Rebuilt, error) {
	f, a, rec, err := locate(ctx, file)
	if err != nil {
		return nil, err
	}
	switch opt.From {
	case "":
		opt.From = FromFolder
		if rec != nil {
			opt.From = FromRecord
		}
	case FromRecord, FromFolder:
	default:
		return nil, fmt.Errorf("a request is rebuilt from %s or %s, not from %q", FromRecord, FromFolder, opt.From)
	}
	b := &Rebuilt{From: opt.From, Agent: f.Agent, File: a}
	if opt.From == FromFolder {
		return b, b.fromFolder(ctx, f, rec, opt)
	}
	switch {
	case rec == nil:
		return nil, fmt.Errorf("no record in %s names %s; rebuild it from the folder, and say with --input what it answers", path.Join(f.Path, "turns"), a)
	case rec.Request == nil:
		return nil, fmt.Errorf("the turn of %s was refused before there was a request", a)
	}
	b.fromRecord(rec, opt.First)
	return b, nil
}

// locate finds the agent that a file belongs to and the record of its turn,
// where there is one. name is the file relative to the graph.
func locate(ctx context.Context, file string) (f *Folder, name string, rec *record.Record, err error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, "", nil, err
	}
	if info, err := os.Stat(abs); err != nil {
		return nil, "", nil, fmt.Errorf("%s %s", file, plain(err))
	} else if info.IsDir() {
		return nil, "", nil, fmt.Errorf("%s is a folder; name an answer or a record in it", file)
	}
	dir, err := realDir(filepath.Dir(abs))
	if err != nil {
		return nil, "", nil, err
	}
	f, err = agentOf(ctx, abs, dir)
	if err != nil {
		return nil, "", nil, err
	}
	if f == nil {
		return nil, "", nil, fmt.Errorf("%s lies in no agent's output or turns folder", file)
	}
	name, rec, err = f.turnOf(ctx, dir, filepath.Base(abs))
	return f, name, rec, err
}

// agentOf is the agent whose output or turns folder dir is, where file lies
// without its links; nil: none.
func agentOf(ctx context.Context, file, dir string) (*Folder, error) {
	owns := func(f *Folder) bool {
		rel := agents.Rel(f.Root(), dir)
		return f.answers == rel || f.turns == rel
	}
	// The folder above is the agent, unless its output is a link.
	for _, start := range []string{filepath.Dir(filepath.Dir(file)), filepath.Dir(dir)} {
		g, err := openGraph(start, Options{})
		if err != nil {
			return nil, err
		}
		if f := g.agentFolder(g.start); owns(f) {
			return f, nil
		}
	}
	root := graphRoot(dir)
	if root == dir {
		root = graphAbove(dir)
	}
	if root == "" {
		return nil, nil
	}
	for f, err := range Folders(ctx, root, Options{}) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil && owns(f) {
			return f, nil
		}
	}
	return nil, nil
}

// graphAbove is the nearest folder above dir that holds agentgraph.yaml, or "".
func graphAbove(dir string) string {
	for d := filepath.Dir(dir); d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, agents.GraphFile)); err == nil {
			return d
		}
	}
	return ""
}

// turnOf reads the record that a file of the agent is, or that names it.
func (f *Folder) turnOf(ctx context.Context, dir, name string) (string, *record.Record, error) {
	rel := agents.Rel(f.Root(), dir)
	file := path.Join(rel, name)
	if rel == f.turns {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok {
			return "", nil, fmt.Errorf("%s is no record", file)
		}
		rec, err := f.record(id)
		return file, rec, err
	}
	if agents.LeadsOut(f.Root(), filepath.Join(dir, name)) {
		return "", nil, fmt.Errorf("%s is a link that leads out of the graph; not read", file)
	}
	index, problems, err := f.readIndex(ctx)
	if err != nil {
		return "", nil, err
	}
	if e := index.byName[name]; e != nil {
		rec, err := f.record(e.turnID)
		return file, rec, err
	}
	if index.records == 0 && len(problems) > 0 {
		return "", nil, problems[0]
	}
	return file, nil, nil
}

// fromRecord takes what the record has.
func (b *Rebuilt) fromRecord(rec *record.Record, first bool) {
	r := rec.Request
	b.TurnID, b.Inputs = rec.TurnID, rec.Inputs
	b.Messages, b.Prompt, b.TemplateSHA256, b.Clock = r.Messages, r.Prompt, r.TemplateSHA256, r.Clock
	b.Constraint, b.Sampling, b.Tools, b.Determinism = r.Constraint, r.Sampling, r.Tools, r.Determinism
	b.Model = &r.Model
	if r.Prompt == nil {
		b.Note = "the record has no prompt: " + r.Model.Engine + " did not say what it made of the messages"
	}
	if first {
		return
	}
	if last := LastMessages(rec); len(last) > len(b.Messages) {
		b.Messages, b.Prompt = last, nil
		b.Note = "the record has the prompt of the turn's first request; this is its last one"
	}
}

// LastMessages are the messages of the last request of a turn, the one that
// its answer answers: those of its request, the tool rounds and, where the
// answer was repaired, the rejected one with what was said about it.
func LastMessages(rec *record.Record) []model.Message {
	if rec.Request == nil {
		return nil
	}
	msgs := slices.Clone(rec.Request.Messages)
	calls := rec.ToolCalls
	for _, round := range rec.ToolRounds {
		n := min(round.Calls, len(calls))
		reply := model.Message{Role: model.Assistant, Content: round.Text, Reasoning: round.Reasoning}
		var results []model.Message
		for _, c := range calls[:n] {
			if c.Result == nil {
				continue // the turn ended there
			}
			reply.ToolCalls = append(reply.ToolCalls, model.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
			results = append(results, model.Message{Role: model.ToolRole, Content: *c.Result, ToolCallID: c.ID, Name: c.Name})
		}
		calls = calls[n:]
		msgs = append(append(msgs, reply), results...)
	}
	if r := rec.Repair; r != nil && r.Rejected != nil && r.Feedback != nil {
		msgs = append(msgs, model.Message{Role: model.Assistant, Content: *r.Rejected}, model.Message{Role: model.User, Content: *r.Feedback})
	}
	return msgs
}

var errNoInput = errors.New("what it answers is not known: no record names it, and input/ does not hold one file; say with --input")
