package cli

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/serve"
	"agentgraph/serve/acp"
)

func (a *app) acpCommand() *cobra.Command {
	var graph, model, agent string
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Serve editors over the Agent Client Protocol (stdin and stdout)",
		Long: `Speaks the Agent Client Protocol on stdin and stdout, for an editor or another
program that starts it. Sessions are threads of the graph, its agents are the
session's modes; nothing is published into the agents' folders.

Answers come from the graph around the working folder or --graph; outside one,
from --model, AGENTGRAPH_MODEL or the small model that "make model" fetched.

docs/acp.md has the metadata: the turn record with each response, and a schema
for a prompt.`,
		Example: `
  agentgraph acp --graph mygraph
  agentgraph acp --graph mygraph --agent rater
  agentgraph acp --model models/small.gguf`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.acp(cmd.Context(), graph, model, agent)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&graph, "graph", "", "serve the graph in `DIR` (default: the graph around the working folder)")
	fl.StringVar(&model, "model", "", "a `MODEL` for every session: a name from models:, a .gguf path, or script:FILE")
	fl.StringVar(&agent, "agent", "", "the `AGENT` that sessions begin with (default: none, the graph's defaults)")
	return cmd
}

func (a *app) acp(ctx context.Context, graph, model, agent string) error {
	load := agents.LoadOptions{DefaultModel: defaultModel()}
	if model != "" {
		load.Model = absModel(model)
		load.DefaultModel = load.Model
	}
	svc, done, err := a.service(cmp.Or(graph, graphAround(workingDir())), load)
	if err != nil {
		return err
	}
	defer done()
	err = acp.Serve(ctx, acp.Config{
		Service: svc, Agent: agent, Version: version,
		Warn: func(err error) { warn(a.stderr, err) },
	}, a.stdin, a.stdout)
	var wrong *serve.ArgumentError
	switch {
	case errors.As(err, &wrong):
		return flagError(wrong)
	case errors.Is(err, io.ErrClosedPipe), errors.Is(err, context.Canceled):
		return exitWith(exitCancelled)
	}
	return err
}
