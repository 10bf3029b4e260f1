package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/schemafile"
)

// specFlags are the flags that shape one answer; at most one is given.
type specFlags struct {
	schema, regex, lark, llg string
	choice                   []string
}

var specFlagNames = []string{"schema", "regex", "lark", "llg", "choice"}

func (f *specFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.schema, "schema", "", "JSON Schema: a `FILE`, - for stdin, or the schema itself; a .schema-* file may be of any type")
	fl.StringVar(&f.regex, "regex", "", "regular `EXPRESSION` that the whole answer matches")
	fl.StringVar(&f.lark, "lark", "", "Lark grammar `FILE`, or - for stdin")
	fl.StringVar(&f.llg, "llg", "", "llguidance grammar `FILE` (TopLevelGrammar JSON), or - for stdin")
	fl.StringSliceVar(&f.choice, "choice", nil, "the answer is one of `a,b,…`")
}

// read returns the promise, or nil where the answer is free. usesStdin says
// that it was read from there.
func (f *specFlags) read(cmd *cobra.Command, stdin io.Reader) (spec *constraint.Spec, usesStdin bool, err error) {
	changed := cmd.Flags().Changed
	var given []string
	for _, name := range specFlagNames {
		if changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) > 1 {
		return nil, false, fmt.Errorf("%s are given together; an answer is held to one of --%s", strings.Join(given, " and "), strings.Join(specFlagNames, ", --"))
	}
	switch {
	case changed("schema"):
		text := strings.TrimSpace(f.schema)
		if strings.HasPrefix(text, "{") || text == "true" || text == "false" {
			return &constraint.Spec{Kind: constraint.JSON, Source: []byte(text)}, false, nil
		}
		return sourceFile(cmd.Context(), f.schema, constraint.JSON, stdin)
	case changed("regex"):
		if f.regex == "" {
			return nil, false, errors.New("--regex is empty; an empty answer is no answer")
		}
		return &constraint.Spec{Kind: constraint.Regex, Source: []byte(f.regex)}, false, nil
	case changed("lark"):
		return sourceFile(cmd.Context(), f.lark, constraint.Lark, stdin)
	case changed("llg"):
		return sourceFile(cmd.Context(), f.llg, constraint.LLG, stdin)
	case changed("choice"):
		expr, err := choiceExpression(f.choice)
		if err != nil {
			return nil, false, err
		}
		return &constraint.Spec{Kind: constraint.Regex, Source: []byte(expr)}, false, nil
	}
	return nil, false, nil
}

// sourceFile reads a promise of the given kind. A file that is named as a
// schema file is read by its own name's rules, whatever its type.
func sourceFile(ctx context.Context, path string, kind constraint.Kind, stdin io.Reader) (*constraint.Spec, bool, error) {
	if path == "-" {
		b, err := readStdin(ctx, "the schema", stdin)
		if err != nil {
			return nil, true, err
		}
		return &constraint.Spec{Kind: kind, Source: dropBOM(b), File: "stdin"}, true, nil
	}
	if strings.HasPrefix(filepath.Base(path), ".schema-") {
		if leadsOut(path) {
			return nil, false, fmt.Errorf("%s is a link that leads out of its graph; copy the file into system", path)
		}
		f, err := schemafile.Read(path)
		if err != nil {
			return nil, false, err
		}
		if f.Name.Kind() != kind && kind != constraint.JSON {
			return nil, false, fmt.Errorf("%s is named as %s, not %s", path, f.Name.Kind(), kind)
		}
		return &constraint.Spec{Kind: f.Name.Kind(), Source: f.Source, File: path}, false, nil
	}
	b, err := readFile(ctx, "the schema", path)
	if err != nil {
		return nil, false, err
	}
	return &constraint.Spec{Kind: kind, Source: dropBOM(b), File: path}, false, nil
}

// leadsOut reports a file of an agent's system folder that is a link out of
// the graph.
func leadsOut(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	system, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return false
	}
	all := filepath.Dir(filepath.Dir(system))
	return filepath.Base(system) == "system" && filepath.Base(all) == agents.AgentsDir && agents.LeadsOut(filepath.Dir(all), abs)
}

func dropBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) }

// choiceExpression matches exactly the given texts.
func choiceExpression(choices []string) (string, error) {
	seen := map[string]bool{}
	var quoted []string
	for _, c := range choices {
		if c == "" {
			return "", errors.New("--choice has an empty choice")
		}
		if seen[c] {
			return "", fmt.Errorf("--choice names %q twice", c)
		}
		seen[c] = true
		quoted = append(quoted, regexp.QuoteMeta(c))
	}
	if len(quoted) == 0 {
		return "", errors.New("--choice is empty; give the choices as a,b,c")
	}
	return strings.Join(quoted, "|"), nil
}
