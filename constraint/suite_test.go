package constraint

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentgraph/constraint/internal/jsontree"
	"agentgraph/constraint/internal/relax"
)

// TestMaskAgainstSuite holds the mask against the official test suite. The
// rule: an instance that is valid is one the mask takes, in schema order and
// plain spelling; one that is invalid is one it does not take, where nothing
// was left to validation.
func TestMaskAgainstSuite(t *testing.T) {
	needNative(t)
	files, _ := filepath.Glob(filepath.Join("..", "..", "shared", "data", "json-schema-test-suite", "draft2020-12", "*.json"))
	if len(files) == 0 {
		t.Skip("the JSON Schema test suite is not on this machine")
	}
	admitted, refused, masked, instances := 0, 0, 0, 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []struct {
			Description string
			Schema      json.RawMessage
			Tests       []struct {
				Description string
				Data        json.RawMessage
				Valid       bool
			}
		}
		if err := json.Unmarshal(raw, &groups); err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			name := strings.TrimSuffix(filepath.Base(file), ".json") + ": " + g.Description
			con, err := Compile(Spec{Kind: JSON, Source: g.Schema}, Options{Enforce: EnforceValidate, Formats: FormatsIgnore})
			if err != nil {
				var r *Refusal
				if !errors.As(err, &r) {
					t.Fatalf("%s: %v", name, err)
				}
				for _, c := range g.Tests { // what is refused has no valid instance, or says why
					if c.Valid && strings.Contains(r.Reason, "no answer ") {
						t.Errorf("%s: refused as unsatisfiable, but %s is valid (%v)", name, c.Data, err)
					}
				}
				refused++
				t.Logf("refused: %s: %v", name, err)
				continue
			}
			admitted++
			schema, err := jsontree.Parse(g.Schema, jsontree.Bounds{})
			if err != nil {
				t.Fatal(err)
			}
			if len(con.Unmasked()) == 0 {
				masked++
			}
			for _, c := range g.Tests {
				tree, err := jsontree.Parse(c.Data, jsontree.Bounds{})
				if err != nil {
					t.Fatal(err)
				}
				if schema.Kind == jsontree.Object {
					relax.Reorder(schema, tree)
				}
				relax.Respell(tree)
				text := string(tree.Compact())
				instances++
				took := maskTakes(t, con, text)
				switch {
				case c.Valid && !took:
					t.Errorf("%s: %s: the mask rejects %s (%s)", name, c.Description, text, con.grammar.text)
				case !c.Valid && took && len(con.Unmasked()) == 0:
					t.Errorf("%s: %s: the mask takes the invalid %s (%s)", name, c.Description, text, con.grammar.text)
				}
				if got := con.Validate(context.Background(), text).Valid; got != c.Valid {
					t.Errorf("%s: %s: Validate(%s) = %v", name, c.Description, text, got)
				}
			}
		}
	}
	t.Logf("%d groups admitted (%d by the mask alone), %d refused, %d instances", admitted, masked, refused, instances)
}
