package serve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/model/script"
)

// scripts opens scripted models by the names that the service resolves.
type scripts struct {
	s    *Service
	mu   sync.Mutex
	open map[string]model.Model
}

func (m *scripts) Model(_ context.Context, name string) (model.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x := m.open[name]; x != nil {
		return x, nil
	}
	spec, err := m.s.ModelSpec(name)
	if err != nil {
		return nil, err
	}
	if spec.Script == "" {
		return nil, errors.New("the model is not here today")
	}
	x, err := script.Open(spec.Script)
	if err != nil {
		return nil, err
	}
	m.open[name] = x
	return x, nil
}

// newService serves a graph made of name, content pairs; names that end in /
// are folders. Without files there is no graph.
func newService(t *testing.T, files ...string) *Service {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i+1 < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if strings.HasSuffix(files[i], "/") {
			must(t, os.MkdirAll(path, 0o777))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must(t, os.WriteFile(path, []byte(files[i+1]), 0o666))
	}
	ms := &scripts{open: map[string]model.Model{}}
	cfg := Config{Models: ms, Warn: func(err error) { t.Log("warning:", err) }}
	if len(files) > 0 {
		cfg.Graph = dir
	} else {
		cfg.StateDir = filepath.Join(dir, "state")
	}
	var err error
	ms.s, err = New(cfg)
	must(t, err)
	t.Cleanup(func() {
		if err := ms.s.Close(); err != nil {
			t.Error(err)
		}
	})
	return ms.s
}

// plain is a scripted model without masks, so that no test of this package
// needs the native library unless it says so.
func plain(t *testing.T, src string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.yaml")
	must(t, os.WriteFile(path, []byte("constraints: none\n"+src), 0o666))
	return "script:" + path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func needNative(t *testing.T) {
	t.Helper()
	_, err := constraint.ByteVocabulary()
	if !errors.Is(err, constraint.ErrNotBuilt) {
		return
	}
	if os.Getenv("CI") == "true" && os.Getenv("CGO_ENABLED") != "0" {
		t.Fatal(err)
	}
	t.Skip(err)
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
