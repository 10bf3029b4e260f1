package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// modelsCommand is what the models of a graph can do; commands about models
// stand below it.
func (a *app) modelsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models [DIR]",
		Short: "The models, and what they are shown to enforce",
		Example: `
  agentgraph models
  agentgraph models --json mygraph`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.listModels(dirArg(args))
		},
	}
	a.jsonFlag(cmd, "print one JSON object")
	return cmd
}

// listModels prints what each model of the graph holds.
func (a *app) listModels(dir string) error {
	g, err := loadGraph(dir, "")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(g.Models)) {
		e := engineOf(g.Models[name])
		kinds := make([]string, len(e.Kinds))
		for i, k := range e.Kinds {
			kinds[i] = string(k)
		}
		if _, err := fmt.Fprintf(a.stdout, "%s\t%s\t%s\n", name, e.Name, strings.Join(kinds, ",")); err != nil {
			return err
		}
	}
	return nil
}
