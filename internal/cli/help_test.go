package cli

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every command says what it does and shows how, with flags that exist.
func TestEveryCommandExplainsItself(t *testing.T) {
	root := (&app{signals: &signals{}}).root()
	flag := regexp.MustCompile(`--([a-z-]+)`)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s has no short help or no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			// What follows a pipe is another program.
			line, _, _ = strings.Cut(strings.TrimSpace(line), " | ")
			for part := range strings.SplitSeq(line, "&&") {
				fields := strings.Fields(part)
				if len(fields) == 0 || fields[0] != "agentgraph" {
					continue
				}
				cmd, _, err := root.Find(fields[1:])
				if err != nil {
					t.Errorf("%s: the example %q: %v", c.CommandPath(), part, err)
					continue
				}
				for _, m := range flag.FindAllStringSubmatch(part, -1) {
					if cmd.Flags().Lookup(m[1]) == nil {
						t.Errorf("%s: the example %q has an unknown flag", c.CommandPath(), part)
					}
				}
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s has no help", c.CommandPath(), f.Name)
			}
		})
	}
	walk(root)
}

// What prints data also prints it as JSON.
func TestJSONFlags(t *testing.T) {
	root := (&app{signals: &signals{}}).root()
	for _, path := range []string{
		"run", "respond", "check", "render", "show", "graph", "status", "retry", "doctor", "models",
		"bench answers", "bench masks", "bench runner", "version",
	} {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil || cmd.CommandPath() != "agentgraph "+path {
			t.Errorf("no command %s: %v", path, err)
			continue
		}
		if cmd.Flags().Lookup("json") == nil {
			t.Errorf("%s has no --json", path)
		}
	}
}

func TestMainEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	graph, model := slowGraph(t, "10m")
	var out, errs bytes.Buffer
	if code := Main(ctx, []string{"run", "--model", model, graph}, strings.NewReader(""), &out, &errs); code != exitCancelled {
		t.Errorf("code %d: %s", code, errs.String())
	}
}
