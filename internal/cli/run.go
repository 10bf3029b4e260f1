package cli

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/internal/watch"
	"agentgraph/runner"
)

func (a *app) runCommand() *cobra.Command {
	var once bool
	var model, mode string
	cmd := &cobra.Command{
		Use:   "run [DIR]",
		Short: "Watch a graph and answer what is dropped into it",
		Long: `Answers every file in the input folders, those that were there before and those
that come, until it is stopped. Prompts, schema files and settings are read anew
for each turn. With --once it answers what is pending anywhere in the graph and
ends.

Each answer is a line on stdout, or with --json every event is an object.
Ctrl-C finishes the running turns; a second one stops at once, and they are
done again the next time.

Exit codes: 0 stopped, or with --once everything answered; 1 something failed or
was refused; 2 the graph cannot run; 130 stopped before the work was done.`,
		Example: `
  agentgraph run mygraph
  agentgraph run --once --json mygraph | jq -r 'select(.event=="finished").output'
  agentgraph run --once --model script:answers.yaml mygraph`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch watch.Mode(mode) {
			case "", watch.Auto, watch.Notify, watch.Poll:
			default:
				return fmt.Errorf("--watch %s: it is auto, notify or poll", mode)
			}
			return a.run(cmd.Context(), dirArg(args), model, watch.Mode(mode), once)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "answer what is pending and end")
	cmd.Flags().StringVar(&model, "model", "", "a `MODEL` for every agent: a name from models:, a .gguf path, or script:FILE")
	cmd.Flags().StringVar(&mode, "watch", "", "how changes are found: `auto`, notify or poll")
	a.jsonFlag(cmd, "print every event as one JSON object")
	return cmd
}

func (a *app) run(ctx context.Context, dir, model string, mode watch.Mode, once bool) error {
	var r *runner.Runner
	ms := newModels(func(name string) (agents.ModelSpec, error) { return r.Graph().ModelSpec(name) })
	defer ms.Close()
	printer := a.newEventPrinter()
	printer.quiet = once
	r, err := runner.New(runner.Config{
		Root: dir, Load: loadOptions(model), Models: ms, Watch: mode, Events: printer.print,
	})
	if err != nil {
		return err
	}
	var finishing atomic.Bool
	a.signals.finishFirst(func() {
		finishing.Store(true)
		fmt.Fprintln(a.stderr, "agentgraph: finishing the running turns; Ctrl-C again stops at once")
		r.Finish()
	})
	if !once {
		err = r.Run(ctx)
		if err == nil && ctx.Err() != nil {
			return exitWith(exitCancelled)
		}
		return err
	}
	sum, err := r.Once(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stderr, summaryText(sum))
	if finishing.Load() || ctx.Err() != nil {
		return exitWith(exitCancelled)
	}
	return exitWith(sum.ExitCode())
}

// summaryText names only what there is to tell.
func summaryText(s runner.Summary) string {
	parts := []string{fmt.Sprintf("%d completed", s.Completed)}
	for _, p := range []struct {
		n    int
		text string
	}{
		{s.Failed, fmt.Sprintf("%d failed", s.Failed)},
		{s.Refused, fmt.Sprintf("%d refused", s.Refused)},
		{s.Incomplete, counted(s.Incomplete, "incomplete set")},
		{s.Unreadable, counted(s.Unreadable, "unreadable file")},
		{s.Stopped, counted(s.Stopped, "agent") + " stopped by wrong settings"},
		{s.Held, fmt.Sprintf("%d held", s.Held)},
	} {
		if p.n > 0 {
			parts = append(parts, p.text)
		}
	}
	return strings.Join(parts, ", ")
}
