package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentgraph/agents"
)

// importing is an import on its way.
type importing struct {
	plan *Plan
	// base is the folder that relative paths of the configuration start at.
	base   string
	models settings // of agentgraph.yaml
	known  map[string]bool
	agents []*agent
	// written has the files of the plan, by path.
	written map[string]bool
	read    int64 // bytes of system folders
}

// Read plans the import of the configuration at path into dir. Nothing is
// written but into a scratch folder, where the result is checked.
func Read(path, dir string) (*Plan, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	target, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	im := &importing{
		plan: &Plan{Source: path, Dir: target, Files: []File{}, Folders: []string{}, Notes: []Note{}},
		base: filepath.Dir(abs), known: map[string]bool{}, written: map[string]bool{},
	}
	var models, agentKeys []node
	found := false
	for _, k := range root.keys() {
		switch name := k.name(); {
		case name == "models":
			models, found = im.keysOf(k, "models by name"), true
		case name == "agents":
			agentKeys, found = im.keysOf(k, "agents by name"), true
		case name == "shutdown_on_idle":
			im.lost(k, "agentgraph run works until it is stopped, and frees the models then")
		case name == "model_idle_secs":
			im.lost(k, "models stay in memory while the graph runs")
		case name == "api" || strings.HasPrefix(name, "api-"):
			im.lost(k, "there is no such front end here; agentgraph mcp and agentgraph acp serve programs")
		case strings.HasPrefix(name, "provider-"):
			im.lost(k, "settings of a provider go into its environment: models: plugin: env")
		default:
			im.unknown(k)
		}
	}
	if !found {
		return nil, fmt.Errorf("%s: no configuration of AgentGraph: it has neither models: nor agents:", path)
	}
	for _, m := range models {
		im.model(m)
	}
	for _, a := range agentKeys {
		im.newAgent(a)
	}
	for _, a := range im.agents {
		im.agent(a)
	}
	if err := im.breakCycles(); err != nil {
		return nil, err
	}
	im.finish()
	return im.plan, nil
}

func (im *importing) note(kind Kind, n node, format string, args ...any) {
	im.plan.Notes = append(im.plan.Notes, Note{kind, n.key, n.at.Line, n.at.Column, fmt.Sprintf(format, args...)})
}

func (im *importing) lost(n node, format string, args ...any) { im.note(Lost, n, format, args...) }

func (im *importing) changed(n node, format string, args ...any) {
	im.note(Changed, n, format, args...)
}

func (im *importing) unknown(n node) {
	im.lost(n, "AgentGraph has no such key, as far as is known here")
}

func (im *importing) wrong(n node, want string) { im.lost(n, "its value is not %s", want) }

// keysOf lists what stands under a mapping, and says so where there is another value.
func (im *importing) keysOf(n node, want string) []node {
	if !n.isNull() && !n.isMapping() {
		im.wrong(n, want)
	}
	return n.keys()
}

// file adds a file to the plan; the first of a name wins.
func (im *importing) file(path, from string, data []byte) bool {
	if im.written[path] {
		return false
	}
	im.written[path] = true
	f := File{Path: path, From: from, Data: data}
	if from == "" {
		f.Text = string(data)
	}
	im.plan.Files = append(im.plan.Files, f)
	return true
}

// finish writes the settings and puts everything in order.
func (im *importing) finish() {
	from := "# From " + filepath.Base(im.plan.Source) + " of AgentGraph.\n"
	if !im.models.empty() {
		top := &settings{}
		top.set("models", &im.models)
		im.file(agents.GraphFile, "", []byte(from+top.yaml("")))
	}
	for _, a := range im.agents {
		im.file(a.dir()+"/"+agents.AgentFile, "", []byte(from+a.settings.yaml("")))
		for _, sub := range []string{"input", "system"} {
			im.plan.Folders = append(im.plan.Folders, a.dir()+"/"+sub)
		}
	}
	slices.SortFunc(im.plan.Files, func(x, y File) int { return strings.Compare(x.Path, y.Path) })
	slices.Sort(im.plan.Folders)
	slices.SortStableFunc(im.plan.Notes, func(x, y Note) int { return (x.Line-y.Line)*1000 + x.Column - y.Column })
}

// breakCycles finds agents that feed each other, which AgentGraph allows, and
// bounds how often a message may go round.
func (im *importing) breakCycles() error {
	scratch, err := os.MkdirTemp("", "agentgraph-import-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, a := range im.agents {
		dir := filepath.Join(scratch, filepath.FromSlash(a.dir()))
		if err := os.MkdirAll(filepath.Join(dir, "system"), 0o700); err != nil {
			return err
		}
		text := "inputs: " + scalar(a.inputs) + "\n"
		if err := os.WriteFile(filepath.Join(dir, agents.AgentFile), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if len(im.agents) == 0 {
		return nil
	}
	g, err := agents.LoadWith(scratch, agents.LoadOptions{DefaultModel: "script:none.yaml"})
	if err != nil {
		return err
	}
	for _, a := range im.agents {
		if loaded := g.Agent(a.name); loaded != nil && loaded.Err != nil && strings.Contains(loaded.Err.Error(), "max_hops") {
			a.settings.set("max_hops", agents.DefaultMaxHops)
			im.changed(a.at, "it is part of a cycle; an answer goes round it at most %d times (max_hops)", agents.DefaultMaxHops)
		}
	}
	return nil
}
