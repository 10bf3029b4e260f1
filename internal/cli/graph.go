package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentgraph/agents"
)

// loadGraph reads the graph at dir. model is --model, or empty.
func loadGraph(dir, model string) (*agents.Graph, error) {
	return agents.LoadWith(dir, loadOptions(model))
}

func loadOptions(model string) agents.LoadOptions {
	opt := agents.LoadOptions{DefaultModel: defaultModel()}
	if model != "" {
		opt.Model = absModel(model)
	}
	return opt
}

// graphAround is the nearest folder at or above dir that holds
// agentgraph.yaml, or "".
func graphAround(dir string) string {
	for {
		if _, err := os.Stat(filepath.Join(dir, agents.GraphFile)); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// graphOf is the graph that path lies in: the nearest folder above it that
// holds agents/ with path below it, or "".
func graphOf(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	for dir := filepath.Dir(abs); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if filepath.Base(dir) == agents.AgentsDir {
			return filepath.Dir(dir)
		}
	}
	return ""
}

// dirArg is the one optional folder argument.
func dirArg(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

func (a *app) graphCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "graph [DIR]",
		Short: "Draw who reads whose answers",
		Example: `
  agentgraph graph mygraph
  agentgraph graph --format dot mygraph | dot -Tsvg >graph.svg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := loadGraph(dirArg(args), "")
			if err != nil {
				return err
			}
			if a.json {
				format = "json"
			}
			switch format {
			case "mermaid":
				_, err = fmt.Fprint(a.stdout, g.Mermaid())
			case "dot":
				_, err = fmt.Fprint(a.stdout, g.DOT())
			case "json":
				var b []byte
				if b, err = g.JSON(); err == nil {
					_, err = fmt.Fprintf(a.stdout, "%s\n", b)
				}
			default:
				return fmt.Errorf("--format %s: it is mermaid, dot or json", format)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", "mermaid", "`FORMAT`: mermaid, dot or json")
	a.jsonFlag(cmd, "the same as --format json")
	return cmd
}
