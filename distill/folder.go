package distill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentgraph/agents"
	"agentgraph/output"
	"agentgraph/schemafile"
)

// Folder is one agent.
type Folder struct {
	// Agent is its name: its path below agents/, or in the graph where it
	// lies elsewhere.
	Agent string
	Path  string // relative to the graph; "." is the graph itself
	// SchemaFile is the agent's schema file as it is now; nil when there is
	// none, or when SchemaErr says why it cannot be used.
	SchemaFile *schemafile.File
	SchemaErr  error
	// Schema is SchemaFile as records name it.
	Schema *Schema
	// Pattern gives the names of answers under SchemaFile.
	Pattern output.Pattern

	graph                  *graph
	system, answers, turns string // relative to the graph, without links; empty: none
	linked                 []*Problem
	index                  *index
}

// Dir is the agent's folder in the file system.
func (f *Folder) Dir() string { return filepath.Join(f.graph.root, filepath.FromSlash(f.Path)) }

// Root is the folder that paths are relative to.
func (f *Folder) Root() string { return f.graph.root }

// agentFolder looks at an agent's folder; nothing of it is read but its schema
// file.
func (g *graph) agentFolder(dir string) *Folder {
	f := &Folder{Agent: agentName(g.root, dir), Path: dir, graph: g, Pattern: output.Default}
	for name, part := range map[string]*string{"system": &f.system, "output": &f.answers, "turns": &f.turns} {
		p := path.Join(dir, name)
		if _, err := os.Lstat(filepath.Join(g.root, filepath.FromSlash(p))); err != nil {
			continue
		}
		real, ok := g.real(p)
		if !ok {
			f.linked = append(f.linked, &Problem{Kind: OutOfGraph, Agent: f.Agent, Path: p, Msg: "is a link that leads nowhere or out of the graph; not read"})
			continue
		}
		*part = real
	}
	slices.SortFunc(f.linked, func(a, b *Problem) int { return strings.Compare(a.Path, b.Path) })
	f.readSchema()
	return f
}

// answersFolder is a folder of answers by itself, with its schema file.
func (g *graph) answersFolder(schema string) (*Folder, error) {
	file, err := schemafile.Read(schema)
	if err != nil {
		return nil, err
	}
	f := &Folder{Agent: filepath.Base(g.root), Path: ".", graph: g, answers: ".", SchemaFile: file}
	f.setSchema(file)
	return f, nil
}

func agentName(root, dir string) string {
	if dir == "." {
		return filepath.Base(root)
	}
	return strings.TrimPrefix(dir, agents.AgentsDir+"/")
}

func (f *Folder) readSchema() {
	if f.system == "" {
		return
	}
	dir := filepath.Join(f.graph.root, filepath.FromSlash(f.system))
	file, err := schemafile.Find(dir, schemafile.WithCheck(func(path string) error {
		if agents.LeadsOut(f.graph.root, path) {
			return &Problem{Kind: OutOfGraph, Agent: f.Agent, Path: agents.Rel(f.graph.root, path), Msg: "the schema file is a link that leads out of the graph; not read"}
		}
		return nil
	}))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// The folder went away just now.
	case err != nil:
		f.SchemaErr = f.schemaProblem(err)
	case file != nil:
		f.setSchema(file)
	}
}

func (f *Folder) setSchema(file *schemafile.File) {
	f.SchemaFile = file
	f.Schema = &Schema{Kind: file.Kind(), File: filepath.Base(file.Path), SHA256: hashOf(file.Source)}
	f.Pattern, _ = patternOf(file.Name.Format, file.Name.Ext) // the name was parsed, so it is one
}

// schemaProblem words what is wrong with a schema file with a path that is
// relative to the graph.
func (f *Folder) schemaProblem(err error) *Problem {
	var own *Problem
	if errors.As(err, &own) {
		return own
	}
	p := &Problem{Kind: BadSchema, Agent: f.Agent, Path: f.system, Msg: err.Error(), Err: err}
	var se *schemafile.Error
	if errors.As(err, &se) {
		p.Path = agents.Rel(f.graph.root, se.File)
		p.Msg = se.Msg
		if se.Line > 0 {
			p.Msg = fmt.Sprintf("%d:%d: %s", se.Line, se.Col, se.Msg)
		}
		if se.Hint != "" {
			p.Msg += "; " + se.Hint
		}
	}
	return p
}

// named is one name of the output folder, as a walk keeps it.
type named struct {
	name        string
	turn        uint64
	stamp       int64
	numbers     uint8 // hasTurn, hasStamp
	matches     bool
	link        bool
	entry       *entry
	schemaIndex int32 // into index.schemas; -1: free text, -2: no record
}

const (
	hasTurn  = 1
	hasStamp = 2
)

// Answers yields the answers of one agent; see the function of that name.
func (f *Folder) Answers(ctx context.Context) iter.Seq2[*Answer, error] {
	return func(yield func(*Answer, error) bool) {
		for _, p := range f.linked {
			if !yield(nil, p) {
				return
			}
		}
		if f.SchemaErr != nil && !yield(nil, f.SchemaErr) {
			return
		}
		index, problems, err := f.readIndex(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		f.index = index
		for _, p := range problems {
			if !yield(nil, p) {
				return
			}
		}
		list, more := f.names(ctx, index, yield)
		if !more {
			return
		}
		for i := range list {
			if i%1024 == 0 && ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			n := &list[i]
			if n.entry != nil {
				n.entry.met = true
			}
			a, p := f.answer(n, index)
			if p != nil {
				if !yield(nil, p) {
					return
				}
			} else if !yield(a, nil) {
				return
			}
		}
	}
}

// names lists the answers of the output folder, sorted; what is none is
// yielded as a Problem.
func (f *Folder) names(ctx context.Context, index *index, yield func(*Answer, error) bool) (list []named, more bool) {
	if f.answers == "" {
		return nil, true
	}
	unreadable := func(err error) bool {
		return yield(nil, &Problem{Kind: Unreadable, Agent: f.Agent, Path: f.answers, Msg: "the folder " + plain(err), Err: err})
	}
	d, err := f.graph.files.Open(filepath.FromSlash(f.answers))
	if err != nil {
		return nil, unreadable(err)
	}
	defer d.Close()
	for {
		if ctx.Err() != nil {
			yield(nil, ctx.Err())
			return nil, false
		}
		batch, err := d.ReadDir(4096)
		for _, e := range batch {
			n, why := f.look(e, index)
			if why == "" {
				list = append(list, n)
				continue
			}
			p := &Problem{Kind: Stray, Agent: f.Agent, Path: path.Join(f.answers, e.Name()), Msg: why}
			if !yield(nil, p) {
				return nil, false
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			if !unreadable(err) {
				return nil, false
			}
			break
		}
	}
	slices.SortFunc(list, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.stamp, b.stamp), strings.Compare(a.name, b.name))
	})
	return list, true
}

// look decides what one name of the output folder is; why says that it is no
// answer.
func (f *Folder) look(e fs.DirEntry, index *index) (n named, why string) {
	name := e.Name()
	n = named{name: name, schemaIndex: noRecord, link: e.Type()&fs.ModeSymlink != 0}
	switch {
	case f.answers == "." && f.SchemaFile != nil && name == filepath.Base(f.SchemaFile.Path):
		return n, "is the schema file, not an answer"
	case strings.HasPrefix(name, "."):
		return n, "is no answer: its name begins with a dot"
	case e.IsDir():
		return n, "is no answer: it is a folder"
	case !n.link && !e.Type().IsRegular():
		return n, "is no answer: it is no regular file"
	}
	pattern := f.Pattern
	n.entry = index.byName[name]
	if f.SchemaErr == nil {
		n.matches = pattern.Match(name)
	}
	if n.entry != nil {
		n.schemaIndex = n.entry.schema
		pattern = index.patterns[n.schemaIndex+1]
	} else if !n.matches {
		if f.SchemaErr != nil {
			return n, "may be an answer, but the schema file cannot be used and no record names it"
		}
		return n, fmt.Sprintf("is no answer: it is not called %s, and no record names it", f.Pattern)
	}
	if turn, ok := pattern.Turn(name); ok {
		n.turn, n.numbers = turn, n.numbers|hasTurn
	}
	if at, ok := pattern.Timestamp(name); ok {
		n.stamp, n.numbers = at.UnixMilli(), n.numbers|hasStamp
	}
	return n, ""
}

// answer makes what is yielded of a name.
func (f *Folder) answer(n *named, index *index) (*Answer, *Problem) {
	a := &Answer{Agent: f.Agent, Folder: f, Name: n.name, Path: path.Join(f.answers, n.name), Matches: n.matches}
	a.file = a.Path
	if n.link {
		real, ok := f.graph.real(a.Path)
		if !ok {
			return nil, &Problem{Kind: OutOfGraph, Agent: f.Agent, Path: a.Path, Msg: "is a link that leads nowhere or out of the graph; not read"}
		}
		a.file = real
	}
	if n.numbers&hasTurn != 0 {
		turn := n.turn
		a.Turn = &turn
	}
	if n.numbers&hasStamp != 0 {
		at := time.UnixMilli(n.stamp)
		a.Timestamp = &at
	}
	if n.entry == nil {
		a.Schema, a.Current = f.Schema, true
		return a, nil
	}
	a.TurnID = n.entry.turnID
	a.Output = n.entry.ref(a.Path)
	a.Schema = index.schemas[n.schemaIndex+1]
	a.Current = sameSchema(a.Schema, f.Schema) && f.SchemaErr == nil
	return a, nil
}

// sameSchema compares what schemas say, not what their files are called.
func sameSchema(a, b *Schema) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.SHA256 == b.SHA256
}

// graphRoot is the nearest graph that the agent lies in; empty: none that may
// be read.
func (f *Folder) graphRoot() string {
	if f.Path == "." {
		return ""
	}
	root := graphRoot(filepath.Dir(f.Dir()))
	if !filepath.IsAbs(filepath.FromSlash(agents.Rel(f.graph.root, root))) {
		return root
	}
	return ""
}
