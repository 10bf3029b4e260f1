package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"agentgraph/serve"
	"agentgraph/serve/acp"
)

func (a *app) acpCommand() *cobra.Command {
	var model, agent string
	cmd := &cobra.Command{
		Use:   "acp [DIR]",
		Short: "Serve a graph to editors over the Agent Client Protocol",
		Long: `Speaks the Agent Client Protocol on stdin and stdout, for an editor or another
program that starts it. Sessions are threads of the graph, its agents are the
session's modes, and the MCP servers that the client lists are connected for
the session; nothing is published into the agents' folders. Without DIR it
serves the graph around the working folder, or where there is none, a model
alone.

docs/acp.md has the metadata: the turn record with each response, and a schema
for a prompt.`,
		Example: `
  agentgraph acp mygraph
  agentgraph acp --agent rater mygraph
  agentgraph acp --model models/small.gguf`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := graphAround(workingDir())
			if len(args) == 1 {
				dir = args[0]
			}
			return a.acp(cmd.Context(), dir, model, agent)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&model, "model", "", "a `MODEL` for every agent and prompt that names none: a name from models:, a .gguf path, or script:FILE")
	fl.StringVar(&agent, "agent", "", "the `AGENT` that sessions begin with (default: none, the graph's defaults)")
	return cmd
}

func (a *app) acp(ctx context.Context, dir, model, agent string) error {
	svc, done, err := a.service(dir, loadOptions(model))
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
	case ctx.Err() != nil:
		return nil // that is how a server ends
	}
	return err
}
