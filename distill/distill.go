// Package distill reads a folder of answers as the data set it is: it finds
// the answers, checks them, and rebuilds the request behind each.
//
// # What is read
//
// A folder is an agent when it holds system/, output/, turns/ or agent.yaml;
// agents are found below any folder, with or without agentgraph.yaml. An
// answer is a file of output/ that a record in turns/ names, or whose whole
// name is one that the agent's schema file gives. So folders that only follow
// the naming rules are read like those that have records.
//
// # What is not trusted
//
// Nothing is read outside the graph: no link is followed out of it, and what
// a record says about paths only finds files in its own agent's output
// folder. Every read has a bound. What cannot be read or does not belong is a
// [*Problem], one line each, and the rest goes on.
//
// # Memory
//
// A walk keeps the names and hashes of one agent's answers, about 250 bytes
// each, and no texts. Records and answers are read when they are asked for.
package distill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/output"
	"agentgraph/record"
)

// MaxAnswerBytes bounds the file of one answer.
const MaxAnswerBytes = 16 << 20

// Options of a walk.
type Options struct {
	// Agents are the names of the agents to read; empty: all.
	Agents []string
	// Schema is the path of a schema file. The folder is then one folder of
	// answers that it holds for, not a graph.
	Schema string
}

// Answer is one file of an agent's output folder. Its methods may be called
// from any goroutine, also after the walk has gone on.
type Answer struct {
	Agent  string
	Folder *Folder
	Path   string // relative to the graph, with forward slashes
	Name   string
	// Turn and Timestamp are the numbers in the name; nil where it has none.
	Turn      *uint64
	Timestamp *time.Time
	// Matches says that the name is one of the agent's schema file as it is
	// now (without one: out-<timestamp>.txt).
	Matches bool
	// TurnID is the turn whose record names the file; empty: there is none.
	TurnID string
	// Output is the file as the record has it; zero without one.
	Output record.FileRef
	// Schema is what the answer was made under: what the record says, without
	// a record the agent's schema file; nil is free text.
	Schema *Schema
	// Current says that Schema is the agent's schema file as it is now.
	Current bool

	file string // relative to the graph, without links
}

// Schema names a promise without its text.
type Schema struct {
	Kind constraint.Kind `json:"kind"`
	File string          `json:"file,omitempty"` // the schema file's name
	// SHA256 is the hash of the source, as records have it: without a
	// byte-order mark and, of a regular expression, without one newline.
	SHA256 string `json:"sha256"`
}

// Read returns the bytes of the answer's file; a larger file than most is
// refused with ErrTooLarge.
func (a *Answer) Read(most int64) ([]byte, error) {
	return a.Folder.graph.read(a.file, min(most, MaxAnswerBytes))
}

// Record reads the whole record of the answer's turn; nil and no error mean
// that there is none.
func (a *Answer) Record() (*record.Record, error) {
	if a.TurnID == "" {
		return nil, nil
	}
	return a.Folder.record(a.TurnID)
}

// ProblemKind sorts problems.
type ProblemKind string

// What can be wrong with a file of a graph.
const (
	Stray      ProblemKind = "stray"      // in output/, and no answer
	BadRecord  ProblemKind = "record"     // a record that cannot be used
	BadSchema  ProblemKind = "schema"     // a schema file that cannot be used
	Unreadable ProblemKind = "unreadable" // a file or folder that cannot be read
	OutOfGraph ProblemKind = "link"       // a link that leads out of the graph
)

// Problem is one file that a walk could not take as it is.
type Problem struct {
	Kind  ProblemKind `json:"kind"`
	Agent string      `json:"agent,omitempty"`
	Path  string      `json:"path"` // relative to the graph
	Msg   string      `json:"message"`
	Err   error       `json:"-"`
}

// Error prints "path: what is wrong" on one line that does nothing to a
// terminal.
func (p *Problem) Error() string { return agents.Printable(p.Path) + ": " + agents.Printable(p.Msg) }

func (p *Problem) Unwrap() error { return p.Err }

// Answers yields the answers of every agent in the graph or folder at root, in
// the order of agents, turns and times. A *Problem is yielded without an
// answer and the walk goes on; any other error ends it.
func Answers(ctx context.Context, root string, opt Options) iter.Seq2[*Answer, error] {
	return func(yield func(*Answer, error) bool) {
		for f, err := range Folders(ctx, root, opt) {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			for a, err := range f.Answers(ctx) {
				if !yield(a, err) {
					return
				}
			}
		}
	}
}

// Folders yields the agents in the graph or folder at root, sorted by path.
// Errors are those of Answers.
func Folders(ctx context.Context, root string, opt Options) iter.Seq2[*Folder, error] {
	return func(yield func(*Folder, error) bool) {
		g, err := openGraph(root, opt)
		if err != nil {
			yield(nil, err)
			return
		}
		g.folders(ctx, opt, yield)
	}
}

// patternOf is how a schema file calls its answers.
func patternOf(format, ext string) (output.Pattern, bool) {
	p, err := output.NewPattern(format, ext)
	return p, err == nil
}

// plain is an error of the os package without the path that a Problem names.
func plain(err error) string {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is gone"
	case errors.Is(err, fs.ErrPermission):
		return "cannot be read: permission denied"
	case errors.As(err, &pe):
		return "cannot be read: " + pe.Err.Error()
	}
	return err.Error()
}

// realDir is a folder's absolute path without links.
func realDir(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("%s %s; name a graph, an agent's folder or a folder of answers", path, plain(err))
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is a file; name a graph, an agent's folder or a folder of answers", path)
	}
	return real, nil
}
