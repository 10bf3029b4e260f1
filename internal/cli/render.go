package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/turn"
)

func (a *app) renderCommand() *cobra.Command {
	var graph, modelFlag string
	cmd := &cobra.Command{
		Use:   "render AGENT INPUT",
		Short: "The exact prompt of an agent for an input, before a token",
		Long: `Prints the text the model would read, as its chat template makes it. AGENT is
an agent's name in the graph around the working folder (or --graph), or the
path of an agent's folder. INPUT is a file, anywhere.`,
		Example: `
  agentgraph render mygraph/agents/rater review.txt
  agentgraph render --graph mygraph --json rater review.txt`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.render(cmd.Context(), graph, modelFlag, args[0], args[1])
		},
	}
	cmd.Flags().StringVar(&graph, "graph", "", "the graph in `DIR`")
	cmd.Flags().StringVar(&modelFlag, "model", "", "render for this `MODEL` instead of the agent's")
	a.jsonFlag(cmd, "print one JSON object: prompt, tokens, messages")
	return cmd
}

// findAgent resolves AGENT: a name in the graph at dir, or an agent's folder.
func findAgent(dir, model, name string) (*agents.Graph, *agents.Agent, error) {
	if dir == "" {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			abs, err := filepath.Abs(name)
			if err != nil {
				return nil, nil, err
			}
			if filepath.Base(filepath.Dir(abs)) == agents.AgentsDir {
				dir, name = filepath.Dir(filepath.Dir(abs)), filepath.Base(abs)
			}
		}
	}
	if dir == "" {
		if dir = graphAround(workingDir()); dir == "" {
			dir = "."
		}
	}
	g, err := loadGraph(dir, model)
	if err != nil {
		return nil, nil, err
	}
	ag := g.Agent(name)
	if ag == nil {
		var names []string
		for _, x := range g.Agents {
			names = append(names, x.Name)
		}
		return nil, nil, fmt.Errorf("%s has no agent %q; its agents: %v", dir, name, names)
	}
	return g, ag, nil
}

func (a *app) render(ctx context.Context, dir, modelFlag, name, input string) error {
	_, ag, err := findAgent(dir, modelFlag, name)
	if err != nil {
		return err
	}
	data, err := readFile(ctx, "the input", input)
	if err != nil {
		return err
	}
	req, err := ag.Turn([]agents.Input{{Path: filepath.ToSlash(input), Data: data}})
	if err != nil {
		return err
	}
	m, err := openSpec(ctx, ag.Settings.ModelSpec)
	if err != nil {
		return err
	}
	defer m.Close()
	req.Model = m
	rendered, msgs, err := turn.Render(ctx, req)
	if errors.Is(err, model.ErrNotRendered) && a.json {
		err = nil
	}
	if err != nil {
		var re *record.Error
		if errors.As(err, &re) {
			return errors.New(recordErrorText(re))
		}
		return err
	}
	if !a.json {
		if rendered.Context > 0 {
			fmt.Fprintf(a.stderr, "%d tokens of %d\n", rendered.Tokens, rendered.Context)
		}
		_, err := fmt.Fprintln(a.stdout, rendered.Prompt)
		return err
	}
	out := struct {
		Prompt         *string         `json:"prompt"`
		Tokens         *int            `json:"tokens"`
		Context        *int            `json:"context"`
		TemplateSHA256 *string         `json:"template_sha256"`
		Messages       []model.Message `json:"messages"`
	}{orNull(rendered.Prompt), orNull(rendered.Tokens), orNull(rendered.Context), orNull(rendered.TemplateSHA256), msgs}
	return a.printJSON(out)
}

// orNull is nil, JSON's null, for what is not known.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
