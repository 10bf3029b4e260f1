package distill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/turn"
)

// fromFolder makes the request from the agent's folder as it is now, by the
// rule of SCHEMA.md and with the code that makes it for a turn.
func (b *Rebuilt) fromFolder(ctx context.Context, f *Folder, rec *record.Record, opt RebuildOptions) error {
	in, err := f.inputs(rec, opt.Inputs)
	if err != nil {
		return err
	}
	a, err := f.agent(opt)
	if err != nil {
		return err
	}
	req, err := a.Turn(in)
	switch {
	case err != nil:
		return err
	case len(a.Settings.Tools) > 0:
		return fmt.Errorf("the agent %s has tools, and what they say about themselves is in its records alone; rebuild it from the record", f.Agent)
	case a.Settings.History > 0:
		return fmt.Errorf("the agent %s has history: %d, and which turns came before is in its records alone; rebuild it from the record", f.Agent, a.Settings.History)
	}
	if rec != nil {
		b.TurnID = rec.TurnID
	}
	b.Inputs, b.Messages = req.Inputs, turn.Messages(req)
	b.Sampling, b.Tools, b.Determinism = req.Sampling, []model.Tool{}, "fast"
	if req.Solo {
		b.Determinism = "solo"
	}
	if s := req.Spec; s != nil {
		if b.Sampling.MaxTokens == 0 {
			b.Sampling.MaxTokens = turn.DefaultShapedTokens
		}
		o := req.ConstraintOptions
		b.Constraint = &record.Constraint{Kind: s.Kind, File: req.SchemaFile, Source: string(s.Source), SHA256: hashOf(s.Source), Enforce: o.Enforce, Formats: o.Formats}
		if o.Enforce == "" {
			b.Constraint.Enforce = constraint.EnforceMask
		}
		if o.Formats == "" {
			b.Constraint.Formats = constraint.FormatsMask
		}
	}
	b.render(ctx, a, req, opt)
	return nil
}

// render lets the agent's model make the prompt; where it cannot, the note
// says why.
func (b *Rebuilt) render(ctx context.Context, a *agents.Agent, req *turn.Request, opt RebuildOptions) {
	switch {
	case opt.Open == nil:
		b.Note = "no model was opened to render the prompt"
		return
	case a.Settings.Model == "":
		b.Note = "no model is set to render the prompt"
		return
	}
	m, err := opt.Open(a.Settings.ModelSpec)
	if err != nil {
		b.Note = "the prompt was not rendered: " + err.Error()
		return
	}
	defer m.Close()
	req.Model = m
	id := m.Identity()
	b.Model = &id
	rendered, _, err := turn.Render(ctx, req)
	if errors.Is(err, model.ErrNotRendered) {
		b.Note = id.Engine + " does not say what it makes of the messages"
		return
	}
	if err != nil {
		b.Note = "the prompt was not rendered: " + err.Error()
		return
	}
	b.Prompt = &rendered.Prompt
	if rendered.TemplateSHA256 != "" {
		b.TemplateSHA256 = &rendered.TemplateSHA256
	}
	if c := rendered.Clock; !c.IsZero() {
		c = c.UTC()
		b.Clock = &c
	}
}

// agent is the agent with its settings, or with the defaults where it lies in
// no graph.
func (f *Folder) agent(opt RebuildOptions) (*agents.Agent, error) {
	load := agents.LoadOptions{Model: opt.Model, DefaultModel: opt.DefaultModel}
	if opt.Open == nil {
		load = agents.LoadOptions{Model: "script:none"} // the messages do not depend on it
	}
	if root := f.graphRoot(); root != "" && isGraph(root) {
		g, err := agents.LoadWith(root, load)
		if err != nil {
			return nil, err
		}
		for _, a := range g.Agents {
			if agents.Rel(f.Root(), a.Dir) != f.Path {
				continue
			}
			if a.Err != nil {
				return nil, a.Err
			}
			return a, nil
		}
	}
	if _, err := os.Lstat(filepath.Join(f.Dir(), agents.AgentFile)); err == nil {
		return nil, fmt.Errorf("%s has an %s but lies in no graph, and its settings are read in one alone", f.Dir(), agents.AgentFile)
	}
	return agents.Folder(f.Root(), f.Dir()), nil
}

func isGraph(root string) bool {
	info, err := os.Stat(filepath.Join(root, agents.AgentsDir))
	return err == nil && info.IsDir()
}

// inputs are the files that the turn answered: those given, those of the
// record, or the one that is in input/.
func (f *Folder) inputs(rec *record.Record, given []string) ([]agents.Input, error) {
	var in []agents.Input
	for _, file := range given {
		abs, data, err := inputFile(file)
		if err != nil {
			return nil, err
		}
		in = append(in, agents.Input{Path: agents.Rel(f.Root(), abs), Data: data})
	}
	if len(in) > 0 {
		return in, nil
	}
	var files []string
	if rec != nil {
		for _, ref := range rec.Inputs {
			files = append(files, ref.Path)
		}
	} else {
		entries, err := f.graph.list(path.Join(f.Path, "input"))
		if err != nil {
			return nil, errNoInput
		}
		for _, e := range entries {
			p := path.Join(f.Path, "input", e.Name())
			if _, reason, err := agents.Inspect(f.Root(), filepath.Join(f.Root(), filepath.FromSlash(p))); err == nil && reason == "" {
				files = append(files, p)
			}
		}
		if len(files) != 1 {
			return nil, errNoInput
		}
	}
	for i, p := range files {
		data, err := f.graph.read(p, maxInputBytes)
		if err != nil {
			return nil, fmt.Errorf("the input %s %s; say with --input where it is now", p, plain(err))
		}
		if rec != nil && hashOf(data) != rec.Inputs[i].SHA256 {
			return nil, fmt.Errorf("the input %s is not what it was when it was answered; rebuild from the record", p)
		}
		in = append(in, agents.Input{Path: p, Data: data})
	}
	if len(in) == 0 {
		return nil, errNoInput
	}
	return in, nil
}

// maxInputBytes bounds an input that is read to rebuild a request.
const maxInputBytes = 64 << 20

// inputFile reads a regular file that may lie anywhere; abs is its path without
// links.
func inputFile(file string) (abs string, data []byte, err error) {
	if abs, err = filepath.Abs(file); err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", nil, fmt.Errorf("the input %s %s", file, plain(err))
	}
	dir, err := os.OpenRoot(filepath.Dir(abs))
	if err != nil {
		return "", nil, fmt.Errorf("the input %s %s", file, plain(err))
	}
	defer dir.Close()
	if data, err = readIn(dir, filepath.Base(abs), maxInputBytes, nil); err != nil {
		return "", nil, fmt.Errorf("the input %s %s", file, plain(err))
	}
	return abs, data, nil
}
