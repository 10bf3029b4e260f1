package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/model/local"
	"agentgraph/model/script"
)

// smallModel is the file that "make model" fetches.
const smallModel = "SmolLM2-135M-Instruct.Q4_1.gguf"

// cacheDir is where the native library and the small model are kept.
func cacheDir() string {
	if d := os.Getenv("XDG_CACHE_HOME"); d != "" {
		return filepath.Join(d, "agentgraph")
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache", "agentgraph")
}

// stateDir is where audit and threads live outside a graph.
func stateDir() string {
	if d := os.Getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "agentgraph")
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "agentgraph")
}

// absModel makes a model's name from the command line or the environment
// independent of the working folder; names of models: stay as they are.
func absModel(name string) string {
	if spec, ok := agents.ParseModel(name, workingDir()); ok {
		if spec.Script != "" {
			return "script:" + spec.Script
		}
		return spec.GGUF
	}
	return name
}

func workingDir() string {
	d, err := os.Getwd()
	if err != nil {
		return "."
	}
	return d
}

// defaultModel is what answers where neither a flag nor settings name a
// model. The file may not be there; opening it says what to do then.
func defaultModel() string {
	if m := os.Getenv("AGENTGRAPH_MODEL"); m != "" {
		return absModel(m)
	}
	return filepath.Join(cacheDir(), smallModel)
}

// models opens each model once and closes all of them at the end. It is safe
// for use by many goroutines.
type models struct {
	// find resolves a name to what is to be opened.
	find func(name string) (agents.ModelSpec, error)
	// life ends with Close, and what is being opened with it.
	life context.Context
	end  context.CancelFunc

	mu   sync.Mutex
	open map[modelKey]*openModel
}

// modelKey is what makes two entries the same model in memory: all that they
// say but their names.
type modelKey string

func keyOf(s agents.ModelSpec) modelKey {
	s.Name = ""
	b, err := json.Marshal(s)
	if err != nil {
		panic("agentgraph: a model's settings do not marshal: " + err.Error())
	}
	return modelKey(b)
}

type openModel struct {
	ready chan struct{}
	m     model.Model
	err   error
}

func newModels(find func(string) (agents.ModelSpec, error)) *models {
	ms := &models{find: find, open: map[modelKey]*openModel{}}
	ms.life, ms.end = context.WithCancel(context.Background())
	return ms
}

// Model returns the model of that name, opening it when it is not open. A
// failure is not kept: the next call tries again.
func (ms *models) Model(ctx context.Context, name string) (model.Model, error) {
	spec, err := ms.find(name)
	if err != nil {
		return nil, err
	}
	return ms.get(ctx, spec)
}

func (ms *models) get(ctx context.Context, spec agents.ModelSpec) (model.Model, error) {
	key := keyOf(spec)
	ms.mu.Lock()
	o, ok := ms.open[key]
	if !ok {
		o = &openModel{ready: make(chan struct{})}
		ms.open[key] = o
		go func() {
			o.m, o.err = openSpec(ms.life, spec)
			if o.err != nil {
				ms.mu.Lock()
				if ms.open[key] == o {
					delete(ms.open, key)
				}
				ms.mu.Unlock()
			}
			close(o.ready)
		}()
	}
	ms.mu.Unlock()
	select {
	case <-o.ready:
		if o.err != nil {
			return nil, callIt(o.err, spec)
		}
		if r, ok := o.m.(interface{ Ready(context.Context) error }); ok {
			if err := r.Ready(ctx); err != nil {
				return nil, err
			}
		}
		return alias(o.m, spec), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// aliased is a model under the name that the settings give it: two names may
// stand for one file, and people know it by theirs.
type aliased struct {
	model.Model
	spec agents.ModelSpec
}

func alias(m model.Model, spec agents.ModelSpec) model.Model {
	if settingsName(spec) == "" {
		return m
	}
	return aliased{m, spec}
}

func (m aliased) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	resp, err := m.Model.Generate(ctx, req)
	return resp, callIt(err, m.spec)
}

func (m aliased) Render(ctx context.Context, req *model.Request) (model.Rendered, error) {
	r, err := m.Model.Render(ctx, req)
	return r, callIt(err, m.spec)
}

func (m aliased) Admit(ctx context.Context, c *constraint.Constraint) error {
	if a, ok := m.Model.(model.Admitter); ok {
		return callIt(a.Admit(ctx, c), m.spec)
	}
	return nil
}

func (m aliased) Identity() model.Identity {
	id := m.Model.Identity()
	id.Alias = settingsName(m.spec)
	return id
}

// callIt makes an error of a model name it as the settings do.
func callIt(err error, spec agents.ModelSpec) error {
	e, ok := err.(*model.Error) // the outermost: others quote it
	if !ok || settingsName(spec) == "" {
		return err
	}
	named := *e
	named.Model = settingsName(spec)
	return &named
}

// settingsName is the model's key in models:, or empty.
func settingsName(spec agents.ModelSpec) string {
	if strings.ContainsAny(spec.Name, `/\`) || strings.HasPrefix(spec.Name, "script:") {
		return ""
	}
	return spec.Name
}

// Close frees every model that was opened.
func (ms *models) Close() error {
	ms.end()
	ms.mu.Lock()
	open := ms.open
	ms.open = map[modelKey]*openModel{}
	ms.mu.Unlock()
	var errs []error
	for _, o := range open {
		<-o.ready
		if o.m != nil {
			errs = append(errs, o.m.Close())
		}
	}
	return errors.Join(errs...)
}

func openSpec(ctx context.Context, spec agents.ModelSpec) (model.Model, error) {
	switch {
	case spec.Plugin != nil:
		return openPlugin(ctx, spec)
	case spec.Script != "":
		return script.Open(spec.Script)
	case spec.GGUF != "":
		// Before a library that may be missing, or may map the file.
		if err := checkGGUF(spec.GGUF); err != nil {
			return nil, unavailable(spec, err)
		}
		return openGGUF(spec)
	case spec.Server != "":
		m, err := openServer(spec)
		if err != nil {
			return nil, err
		}
		return withServer(m, spec)
	}
	return nil, fmt.Errorf("model %q names no file", spec.Name)
}

// missingModel says what to do about a GGUF file that is not there.
func missingModel(path string) error {
	if path == filepath.Join(cacheDir(), smallModel) {
		return fmt.Errorf("no model is set, and the small one is not in %s; fetch it with 'make model', or name a .gguf file with --model, AGENTGRAPH_MODEL or model: in the settings", filepath.Dir(path))
	}
	return fmt.Errorf("there is no file %s; correct the path, or put the model there", path)
}

// checkGGUF reports what a GGUF file would be refused for, without loading it.
func checkGGUF(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return missingModel(path)
	}
	return local.CheckFile(path)
}

func unavailable(spec agents.ModelSpec, err error) error {
	return &model.Error{Kind: model.Unavailable, Delivery: model.NotSent, Model: modelName(spec), Err: err}
}

// modelName is a short name for people.
func modelName(spec agents.ModelSpec) string {
	switch {
	case settingsName(spec) != "":
		return spec.Name
	case spec.GGUF != "":
		return filepath.Base(spec.GGUF)
	case spec.Script != "":
		return filepath.Base(spec.Script)
	case spec.Server != "":
		return spec.Model
	}
	return spec.Name
}
