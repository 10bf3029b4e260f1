package agents

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentgraph/record"
)

// GraphSettings are the settings of the graph itself.
type GraphSettings struct {
	Rescan time.Duration
	Watch  string // "auto", "notify" or "poll"
}

// LoadOptions change what Load makes of the settings.
type LoadOptions struct {
	// Model stands in for the model of every agent (--model).
	Model string
	// DefaultModel is for agents that name none anywhere.
	DefaultModel string
}

// Names of the files and folders of a graph.
const (
	GraphFile = "agentgraph.yaml"
	AgentFile = "agent.yaml"
	AgentsDir = "agents"
	StateDir  = ".agentgraph"
)

// Load reads the graph at dir. The error is for what leaves nothing to run:
// no such folder, or no agents/ in it. Everything else is in Findings and in
// the Err of the agent that it stops.
func Load(dir string) (*Graph, error) { return LoadWith(dir, LoadOptions{}) }

// LoadWith is Load with options.
func LoadWith(dir string, opt LoadOptions) (*Graph, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("no graph at %s: %w; create one with 'agentgraph init %s'", dir, unpath(err), dir)
	}
	if outer := outerGraph(root); outer != "" {
		return nil, fmt.Errorf("the graph at %s lies inside the graph at %s; move one of them, or run the outer one", root, outer)
	}
	l := &loader{opt: opt, g: &Graph{Root: root, Models: map[string]ModelSpec{}}}
	entries, err := os.ReadDir(filepath.Join(root, AgentsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no graph: it has no %s folder; create one with 'agentgraph init %s'", dir, AgentsDir, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the agents of %s: %w", dir, err)
	}
	l.graphFile()
	l.g.Defaults = effective(&l.file, &agentFile{})
	l.g.Defaults.Tools = resolveTools(l.g.Defaults.Tools, root)
	l.inlineSchema()
	l.defaultFallback()
	for _, e := range entries {
		l.agent(e)
	}
	slices.SortFunc(l.g.Agents, func(a, b *Agent) int { return strings.Compare(a.Name, b.Name) })
	l.cycles()
	l.samples()
	slices.SortStableFunc(l.g.Findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Col-b.Col)
	})
	return l.g, nil
}

// unpath drops the path that an error of the os package repeats.
func unpath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// outerGraph is the graph that has root inside one of its agents, or "".
func outerGraph(root string) string {
	for g := filepath.Dir(root); g != filepath.Dir(g); g = filepath.Dir(g) {
		if !inside(filepath.Join(g, AgentsDir), root) {
			continue
		}
		for _, mark := range []string{GraphFile, StateDir} {
			if _, err := os.Lstat(filepath.Join(g, mark)); err == nil {
				return g
			}
		}
	}
	return ""
}

type loader struct {
	opt    LoadOptions
	g      *Graph
	file   graphFile
	broken *Error // agentgraph.yaml cannot be read
	// badModels are entries of models: that cannot be used, with the reason.
	badModels map[string]*Error
}

func (l *loader) add(f Finding) *Error {
	l.g.Findings = append(l.g.Findings, f)
	return &Error{Code: record.SettingsInvalid, Finding: f}
}

// settings decodes a settings file, which may be missing, and reports what is
// wrong in it. Errors that concern one model only are not returned.
func (l *loader) settings(path, agent string, dst any) (map[string]place, []*Error) {
	relPath := rel(l.g.Root, path)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(path); lerr != nil {
			return map[string]place{}, nil
		}
	}
	var data []byte
	if err == nil {
		if !info.Mode().IsRegular() {
			err = errors.New("not a file")
		} else if info.Size() > maxSettingsBytes {
			err = fmt.Errorf("it has %d bytes, more than settings can have (%d)", info.Size(), maxSettingsBytes)
		} else if real, rerr := filepath.EvalSymlinks(path); rerr != nil {
			err = rerr
		} else if !inside(l.g.Root, real) {
			err = errors.New("it is a link that leads out of the graph")
		} else {
			data, err = os.ReadFile(real)
		}
	}
	if err != nil {
		return nil, []*Error{l.add(Finding{File: relPath, Severity: SeverityError, Agent: agent, Msg: "settings cannot be read: " + unpath(err).Error()})}
	}
	places, problems := decodeStrict(data, dst)
	var errs []*Error
	for _, p := range problems {
		e := &Error{Code: record.SettingsInvalid, Finding: Finding{
			File: relPath, Line: p.line, Col: p.col, Severity: SeverityError, Agent: agent, Msg: p.msg, Hint: p.hint,
		}}
		if p.model != "" {
			// What is wrong with a model stops the agents that use it only.
			l.badModel(p.model, e)
		} else {
			errs = append(errs, e)
		}
		l.g.Findings = append(l.g.Findings, e.Finding)
	}
	return places, errs
}

func (l *loader) badModel(name string, e *Error) {
	if l.badModels == nil {
		l.badModels = map[string]*Error{}
	}
	if l.badModels[name] == nil {
		l.badModels[name] = e
	}
}

func (l *loader) graphFile() {
	path := filepath.Join(l.g.Root, GraphFile)
	places, errs := l.settings(path, "", &l.file)
	if len(errs) > 0 {
		l.broken = errs[0]
	}
	l.g.places = places
	l.g.Settings = GraphSettings{
		Rescan: time.Duration(or(l.file.Rescan, Duration(30*time.Second))),
		Watch:  or(l.file.Watch, "auto"),
	}
	for name, spec := range l.file.Models {
		at := places["models."+name]
		spec.Name, spec.Root = name, l.g.Root
		if spec.GGUF != "" {
			spec.GGUF = absFrom(l.g.Root, spec.GGUF)
		}
		if spec.Script != "" {
			spec.Script = absFrom(l.g.Root, spec.Script)
		}
		spec.resolve(l.g.Root)
		if l.badModels[name] == nil {
			if msg, hint := spec.problem(); msg != "" {
				l.badModel(name, l.add(Finding{File: GraphFile, Line: at.line, Col: at.col, Severity: SeverityError, Msg: fmt.Sprintf("model %q %s", name, msg), Hint: hint}))
			}
		}
		if l.badModels[name] == nil {
			l.g.Models[name] = *spec
		}
	}
}

// inlineSchema reads the schema of the defaults.
func (l *loader) inlineSchema() {
	if l.file.Defaults == nil || l.file.Defaults.Output == nil || l.file.Defaults.Output.Schema == nil {
		return
	}
	text, f := inlineSchema(l.file.Defaults.Output.Schema)
	if f != nil {
		f.File = GraphFile
		l.add(*f)
	}
	l.g.Defaults.Schema = text
}

func absFrom(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// agent loads agents/<name>.
func (l *loader) agent(e fs.DirEntry) {
	name := e.Name()
	if strings.HasPrefix(name, ".") {
		return
	}
	dir := filepath.Join(l.g.Root, AgentsDir, name)
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	if !isAgent(dir) {
		l.add(Finding{File: rel(l.g.Root, dir), Severity: SeverityWarning, Msg: "not an agent: it has no system folder, no input folder and no agent.yaml", Hint: "add a system folder, or move it out of agents"})
		return
	}
	a := &Agent{Name: name, root: l.g.Root, graph: l.g, Dir: dir}
	l.g.Agents = append(l.g.Agents, a)
	stop := func(errs ...*Error) {
		for _, e := range errs {
			if a.Err == nil && e != nil {
				a.Err = e
			}
		}
	}
	folderError := func(msg, hint string) *Error {
		return l.add(Finding{File: rel(l.g.Root, dir), Severity: SeverityError, Agent: name, Msg: msg, Hint: hint})
	}

	real, err := filepath.EvalSymlinks(dir)
	out := err != nil || !inside(l.g.Root, real)
	if !out {
		a.Dir = real
	}
	a.SystemDir = filepath.Join(a.Dir, "system")
	a.OutputDir = filepath.Join(a.Dir, "output")
	a.TurnsDir = filepath.Join(a.Dir, "turns")
	if out {
		// All that is in it leads out too, and none of it is read.
		a.Settings = effective(&l.file, &agentFile{})
		stop(folderError("the agent's folder is a link that leads out of the graph", "move the folder into the graph"))
		return
	}
	if p := nameProblem(name); p != "" {
		stop(folderError("the agent cannot run: "+p, "rename the folder"))
	}
	for _, p := range []*string{&a.SystemDir, &a.OutputDir, &a.TurnsDir} {
		real, err := realPath(*p)
		if err != nil || !inside(l.g.Root, real) {
			stop(folderError(filepath.Base(*p)+" is a link that leads nowhere or out of the graph", "make it a folder"))
			continue
		}
		*p = real
	}
	for _, inner := range []string{GraphFile, AgentsDir, StateDir} {
		if _, err := os.Lstat(filepath.Join(a.Dir, inner)); err == nil {
			stop(folderError(fmt.Sprintf("a graph lies inside this agent (%s)", inner), "move the inner graph elsewhere"))
			break
		}
	}

	var file agentFile
	places, errs := l.settings(filepath.Join(a.Dir, AgentFile), name, &file)
	a.places = places
	stop(errs...)
	stop(l.broken)
	a.Settings = effective(&l.file, &file)
	if file.Output != nil && file.Output.Schema != nil {
		stop(l.at(a, "output.schema", "output.schema is for respond, under defaults: in agentgraph.yaml", "put the schema into system/.schema-NAME.json"))
	}
	l.chooseModel(a, stop)
	l.tools(a, stop)
	l.inputs(a, stop)
}

func isAgent(dir string) bool {
	for _, n := range []string{"system", "input", AgentFile} {
		if _, err := os.Lstat(filepath.Join(dir, n)); err == nil {
			return true
		}
	}
	return false
}

// at is a finding about a key of the agent's settings, or about the file of
// the graph when the key stands there.
func (l *loader) at(a *Agent, key, msg, hint string) *Error {
	f := Finding{File: rel(l.g.Root, filepath.Join(a.Dir, AgentFile)), Severity: SeverityError, Agent: a.Name, Msg: msg, Hint: hint}
	if p, ok := a.places[key]; ok {
		f.Line, f.Col = p.line, p.col
	}
	return l.add(f)
}

func (l *loader) chooseModel(a *Agent, stop func(...*Error)) {
	name := a.Settings.Model
	_, own := a.places["model"]
	if l.opt.Model != "" {
		name = l.opt.Model
	} else if name != "" {
		a.modelText = name
	} else {
		name = l.opt.DefaultModel
	}
	a.Settings.Model = name
	if name == "" {
		stop(l.at(a, "model", "no model is set", "write model: NAME here or under defaults: in agentgraph.yaml, or give --model"))
		return
	}
	if bad := l.badModels[name]; bad != nil {
		stop(bad)
		return
	}
	// A relative path starts at the file it stands in.
	base := l.g.Root
	if own && l.opt.Model == "" {
		base = a.Dir
	}
	spec, err := l.g.modelSpec(name, base)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{Finding: Finding{Msg: err.Error()}}
		}
		stop(l.at(a, "model", e.Msg, e.Hint))
		return
	}
	a.Settings.ModelSpec = spec
	l.fallback(a, stop)
}

// ModelSpec resolves a model's name: a key of models:, a path that ends in
// .gguf, or script:FILE. Relative paths start at the graph.
func (g *Graph) ModelSpec(name string) (ModelSpec, error) { return g.modelSpec(name, g.Root) }

func (g *Graph) modelSpec(name, base string) (ModelSpec, error) {
	if s, ok := g.Models[name]; ok {
		return s, nil
	}
	if s, ok := ParseModel(name, base); ok {
		return g.roomy(s), nil
	}
	names := make([]string, 0, len(g.Models))
	for n := range g.Models {
		names = append(names, n)
	}
	slices.Sort(names)
	hint := "add it under models: in agentgraph.yaml, or write a path that ends in .gguf, or script:FILE"
	if len(names) > 0 {
		hint = "known models: " + strings.Join(names, ", ") + "; or " + hint
	}
	return ModelSpec{}, &Error{Code: record.SettingsInvalid, Finding: Finding{Severity: SeverityError, Msg: fmt.Sprintf("no model is called %q", name), Hint: hint}}
}

// ParseModel reads a model that is written as a path ending in .gguf or as
// script:FILE; relative paths start at base. Its name is then the absolute
// form, which means the same everywhere.
func ParseModel(name, base string) (ModelSpec, bool) {
	if file, ok := strings.CutPrefix(name, "script:"); ok && file != "" {
		path := absFrom(base, file)
		return ModelSpec{Name: "script:" + path, Script: path}, true
	}
	if strings.HasSuffix(strings.ToLower(name), ".gguf") {
		path := absFrom(base, name)
		return ModelSpec{Name: path, GGUF: path}, true
	}
	return ModelSpec{}, false
}

func (l *loader) inputs(a *Agent, stop func(...*Error)) {
	seen := map[string]bool{}
	if len(a.Settings.Inputs) == 0 {
		stop(l.at(a, "inputs", "inputs is empty", "list a folder, or remove the key for the default, [input]"))
	}
	for i, in := range a.Settings.Inputs {
		key := fmt.Sprintf("inputs[%d]", i)
		if in == "" || strings.ContainsRune(in, 0) || len(in) > 4096 {
			stop(l.at(a, key, "an input folder's path is empty, too long or holds a zero byte", "write a path relative to the agent's folder"))
			continue
		}
		path, err := realPath(absFrom(a.Dir, in))
		if err != nil {
			stop(l.at(a, key, fmt.Sprintf("the input folder %s cannot be reached: %v", shorten(in), unpath(err)), "correct the path"))
			continue
		}
		if !inside(l.g.Root, path) {
			stop(l.at(a, key, fmt.Sprintf("the input folder %s lies outside the graph", shorten(in)), "nothing leaves the graph; move the folder into it"))
			continue
		}
		if path == l.g.Root || inside(filepath.Join(l.g.Root, StateDir), path) {
			stop(l.at(a, key, fmt.Sprintf("%s cannot be an input folder", shorten(in)), "the graph's own files live there"))
			continue
		}
		if path == a.TurnsDir || path == a.SystemDir || path == a.Dir {
			stop(l.at(a, key, fmt.Sprintf("%s is the agent's own %s", shorten(in), filepath.Base(path)), "list an input folder or another agent's output"))
			continue
		}
		for _, c := range strings.Split(path, string(filepath.Separator)) {
			if len(c) > 255 {
				stop(l.at(a, key, fmt.Sprintf("the input folder %s has a name of more than 255 bytes", shorten(in)), "use a shorter name"))
				path = ""
				break
			}
		}
		if path == "" || seen[path] {
			continue
		}
		seen[path] = true
		a.Inputs = append(a.Inputs, path)
	}
	l.dangling(a, stop)
}

// dangling finds inputs that name the output of an agent that does not exist.
func (l *loader) dangling(a *Agent, stop func(...*Error)) {
	agentsDir := filepath.Join(l.g.Root, AgentsDir)
	for i, in := range a.Settings.Inputs {
		path, err := realPath(absFrom(a.Dir, in))
		if err != nil || !inside(agentsDir, path) || filepath.Base(path) != "output" {
			continue
		}
		owner := filepath.Dir(path)
		if filepath.Dir(owner) != agentsDir || owner == a.Dir {
			continue
		}
		if !isAgent(owner) {
			hint := "correct the name, or create the agent"
			if near := nearest(filepath.Base(owner), l.agentNames()); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			stop(l.at(a, fmt.Sprintf("inputs[%d]", i), fmt.Sprintf("no agent is called %q", filepath.Base(owner)), hint))
		}
	}
}

func (l *loader) agentNames() []string {
	entries, _ := os.ReadDir(filepath.Join(l.g.Root, AgentsDir))
	var names []string
	for _, e := range entries {
		if isAgent(filepath.Join(l.g.Root, AgentsDir, e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names
}

func shorten(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:77], "") + "…"
}

// cycles refuses loops in which no agent has set max_hops itself.
func (l *loader) cycles() {
	bounded := func(name string) bool {
		a := l.g.Agent(name)
		return a == nil || a.Settings.MaxHopsSet
	}
	for _, set := range loops(l.g.Edges(), bounded) {
		path := strings.Join(append(slices.Clone(set), set[0]), " → ")
		for _, name := range set {
			a := l.g.Agent(name)
			msg := fmt.Sprintf("the agents feed each other: %s", path)
			if len(set) == 1 {
				msg = "the agent's output folder is its input folder"
			}
			e := l.at(a, "inputs", msg, "break the cycle, or bound it with max_hops: N in one of its agents")
			if a.Err == nil {
				a.Err = e
			}
		}
	}
}
