//go:build cgo && !nonative

package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

const smallModel = "SmolLM2-135M-Instruct.Q4_1.gguf"

// testModel is the path of the small model, or the end of the test.
func testModel(t testing.TB) string {
	t.Helper()
	path := os.Getenv("AGENTGRAPH_TEST_MODEL")
	if path == "" {
		dir, err := os.UserCacheDir()
		if err == nil {
			path = filepath.Join(dir, "agentgraph", smallModel)
		}
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the small model is missing: %v; run make model", err)
		}
		t.Skipf("the small model is missing: %v; run make model", err)
	}
	return path
}

// shared is one open model for the tests that do not change it.
var shared struct {
	sync.Mutex
	open map[string]*local
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, l := range shared.open {
		l.Close()
	}
	os.Exit(code)
}

// sharedModel returns a model that the tests have in common.
func sharedModel(t testing.TB, cfg Config) *local {
	t.Helper()
	cfg.Path = testModel(t)
	shared.Lock()
	defer shared.Unlock()
	key := fmt.Sprintf("%+v", cfg)
	if l := shared.open[key]; l != nil {
		return l
	}
	l, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if shared.open == nil {
		shared.open = map[string]*local{}
	}
	shared.open[key] = l
	return l
}

func compile(t testing.TB, kind constraint.Kind, source string) *constraint.Constraint {
	t.Helper()
	c, err := constraint.Compile(constraint.Spec{Kind: kind, Source: []byte(source)}, constraint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask(system, user string) []model.Message {
	return []model.Message{{Role: model.System, Content: system}, {Role: model.User, Content: user}}
}

func generate(t testing.TB, m model.Model, req *model.Request) *model.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := m.Generate(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
