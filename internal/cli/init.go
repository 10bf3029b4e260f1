package cli

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentgraph/internal/newfile"
)

//go:embed all:starter
var starter embed.FS

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make a graph to start from",
		Long: `Makes a graph with one agent that rates reviews, its schema and a first input.
Nothing that is there already is replaced.`,
		Example: `
  agentgraph init mygraph
  agentgraph run --once mygraph
  cat mygraph/agents/rater/output/rating_0.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			if err := writeStarter(dir); err != nil {
				return err
			}
			fmt.Fprintf(a.stderr, `A graph with one agent, rater, is in %s.
  its prompt and its schema: %s
  answer what is pending:    agentgraph run --once %s
  or keep watching:          agentgraph run %s
`, dir, filepath.Join(dir, "agents", "rater", "system"), dir, dir)
			return nil
		},
	}
}

func writeStarter(dir string) error {
	for _, name := range []string{"agentgraph.yaml", "agents"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s is there already; give init a new folder", filepath.Join(dir, name))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	root, err := fs.Sub(starter, "starter")
	if err != nil {
		return err
	}
	var set newfile.Set
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return set.Write(filepath.Join(dir, filepath.FromSlash(name)), data)
	})
	if err != nil {
		return fmt.Errorf("no graph was made: %w; nothing is left of it", errors.Join(err, set.Undo()))
	}
	return nil
}
