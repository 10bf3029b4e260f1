package validate

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedData finds a folder of test data that is kept beside the checkout.
func sharedData(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above this package")
		}
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("test data %s is not beside the checkout (%s)", name, path)
	}
	return path
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// skipped reads testdata/skipped.txt: file, group and reason, tab-separated.
func skipped(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/skipped.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 || f[2] == "" {
			t.Fatalf("skipped.txt: %q is not file, group, reason", line)
		}
		out[f[0]+"\t"+f[1]] = f[2]
	}
	return out
}

// Every required test of the official suite for draft 2020-12. A group may be
// skipped only when its schema is refused; an entry of the list whose group is
// not refused any more, or is not there, fails the test.
func TestSuite(t *testing.T) {
	dir := sharedData(t, "json-schema-test-suite/draft2020-12")
	skip := skipped(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no suite files: %v", err)
	}
	groups, tests := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list []suiteGroup
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
		for _, g := range list {
			name := filepath.Base(file) + "\t" + g.Description
			_, skipIt := skip[name]
			delete(skip, name)
			s, err := JSON(g.Schema, Options{})
			if skipIt {
				var refused *SchemaError
				if !errors.As(err, &refused) || refused.Construct != "$ref" && refused.Construct != "$schema" {
					t.Errorf("%s: on the skip list, but not refused for a reference or a dialect: %v", name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			groups++
			for _, c := range g.Tests {
				tests++
				found := s.Validate(context.Background(), string(c.Data))
				if (found == nil) != c.Valid {
					t.Errorf("%s: %s: valid = %t, want %t (%v)", name, c.Description, found == nil, c.Valid, found)
				}
			}
		}
	}
	for name := range skip {
		t.Errorf("%s: on the skip list, but not in the suite", name)
	}
	if groups < 300 || tests < 1000 {
		t.Errorf("only %d groups with %d tests ran", groups, tests)
	}
	t.Logf("%d groups, %d tests", groups, tests)
}
