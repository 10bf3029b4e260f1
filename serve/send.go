package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"agentgraph/agents"
	"agentgraph/output"
	"agentgraph/record"
	"agentgraph/turn"
)

// Message is an input for an agent.
type Message struct {
	Agent string
	// Text is the content, whole and in UTF-8.
	Text string
	// Name of the file; empty means one that nobody has. A name that is taken
	// is refused: an input is never replaced.
	Name string
	// Folder is one of the agent's inputs, relative to the graph; empty means
	// the first that no agent writes to.
	Folder string
}

// Sent is an input that was dropped.
type Sent struct {
	Agent string
	Input record.FileRef // relative to the graph
	turns string
	since string // an id that is older than the turn's
}

// maxName bounds the name of an input, in bytes.
const maxName = 200

// Send drops an input into an agent's folder, whole and under a name nobody
// had, and sees to it that a runner works the graph.
func (s *Service) Send(ctx context.Context, m Message) (*Sent, error) {
	g, err := s.Graph()
	if err != nil {
		return nil, err
	}
	ag, err := agentOf(g, m.Agent)
	if err != nil {
		return nil, err
	}
	if ag.Err != nil {
		return nil, argument("agent", "%s cannot run: %v", ag.Name, ag.Err)
	}
	folder, err := inputFolder(g, ag, m.Folder)
	if err != nil {
		return nil, err
	}
	if err := checkText(ag, m.Text); err != nil {
		return nil, err
	}
	id := record.NewID()
	name := m.Name
	if name == "" {
		name = id + ".txt"
	} else if err := checkName(name); err != nil {
		return nil, err
	}
	path, err := drop(ctx, folder, id, name, []byte(m.Text))
	if errors.Is(err, fs.ErrExist) {
		return nil, argument("name", "%s has a file %s already, and an input is never replaced; take another name, or none", g.Rel(folder), name)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(m.Text))
	sent := &Sent{
		Agent: ag.Name, turns: ag.TurnsDir, since: id,
		Input: record.FileRef{Path: g.Rel(path), SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(m.Text))},
	}
	c, err := s.running(ctx)
	if err != nil {
		return sent, fmt.Errorf("%s is in its folder, but no runner takes it: %w", sent.Input.Path, err)
	}
	return sent, c.Close()
}

// inputFolder is where a message to the agent goes.
func inputFolder(g *agents.Graph, ag *agents.Agent, wanted string) (string, error) {
	var dir string
	if wanted != "" {
		i := slices.IndexFunc(ag.Inputs, func(in string) bool { return g.Rel(in) == filepath.ToSlash(filepath.Clean(wanted)) })
		if i < 0 {
			return "", argument("folder", "%q is no input of %s", wanted, ag.Name)
		}
		dir = ag.Inputs[i]
	}
	for _, in := range ag.Inputs {
		written := slices.ContainsFunc(g.Agents, func(o *agents.Agent) bool { return o.OutputDir == in })
		switch {
		case written && in == dir:
			return "", argument("folder", "%s holds the answers of an agent, and nothing else is put there", wanted)
		case dir == "" && !written:
			dir = in
		}
	}
	if dir == "" {
		return "", argument("agent", "%s reads the answers of other agents alone, and has no folder for messages", ag.Name)
	}
	if rel := g.Rel(dir); filepath.IsAbs(filepath.FromSlash(rel)) || agents.LeadsOut(g.Root, dir) {
		return "", argument("agent", "the input folder of %s lies outside the graph", ag.Name)
	}
	return dir, nil
}

func checkText(ag *agents.Agent, text string) error {
	if text == "" {
		return argument("text", "it is empty, and an empty file is no input")
	}
	if n := ag.Settings.InputBytes; len(text) > n {
		return argument("text", "it has %d bytes, more than input_bytes allows (%d); split it, or raise limits: input_bytes", len(text), n)
	}
	if msg, hint := turn.NotText("the text", []byte(text)); msg != "" {
		return argument("text", "%s; %s", msg, hint)
	}
	return nil
}

func checkName(name string) error {
	switch why := agents.IgnoredName(name); {
	case strings.ContainsAny(name, `/\:`) || filepath.Base(name) != name:
		return argument("name", "%q is no plain file name", name)
	case len(name) > maxName:
		return argument("name", "it has %d bytes; take at most %d", len(name), maxName)
	case why != "":
		return argument("name", "%q would be no input: %s", name, why)
	}
	return nil
}

// drop writes the file whole, then gives it its name.
func drop(ctx context.Context, dir, id, name string, data []byte) (string, error) {
	pending, err := output.Open(dir).Prepare(ctx, id, data)
	if err != nil {
		return "", err
	}
	path, err := pending.Commit(name)
	if err != nil {
		_ = pending.Discard()
	}
	return path, err
}
