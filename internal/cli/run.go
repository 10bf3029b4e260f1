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
Ctrl-C finishes the running turns; a second one stops at once. What is left is
done the next time.

Exit codes: 0 everything that came was done; 1 with --once: something failed or
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
	var stopped atomic.Bool
	a.signals.finishFirst(func() {
		stopped.Store(true)
		r.Finish()
		printer.live.print(a.stderr, "agentgraph: "+finishingText(r.Status())+"\n")
	})
	var sum runner.Summary
	if once {
		if sum, err = r.Once(ctx); err == nil {
			fmt.Fprintln(a.stderr, summaryText(sum))
		}
	} else {
		err = r.Run(ctx)
		stopped.Store(true)
	}
	if err != nil {
		return err
	}
	atOnce := ctx.Err() != nil
	n := r.Left()
	if n > 0 && (stopped.Load() || atOnce) {
		fmt.Fprintf(a.stderr, "agentgraph: %s left for the next run\n", counted(n, "turn"))
	} else if sum.Interrupted {
		fmt.Fprintln(a.stderr, "agentgraph: stopped before everything was looked at; the next run does what is left")
	}
	if atOnce || n > 0 && stopped.Load() {
		return exitWith(exitCancelled)
	}
	return exitWith(sum.ExitCode())
}

// maxNamed bounds the turns that are named when a run is interrupted.
const maxNamed = 3

// finishingText says which turns are waited for after the first Ctrl-C.
func finishingText(s runner.Status) string {
	var names []string
	for _, ag := range s.Agents {
		for _, t := range ag.Running {
			text := eventLabel(ag.Name, t.Inputs)
			if t.Tokens > 0 {
				text += fmt.Sprintf(" (%s, %.0f s)", counted(t.Tokens, "token"), t.Elapsed.Seconds())
			}
			names = append(names, text)
		}
	}
	if len(names) == 0 {
		return "stopping"
	}
	more := ""
	if n := len(names) - maxNamed; n > 0 {
		names, more = names[:maxNamed], fmt.Sprintf(" and %s more", counted(n, "turn"))
	}
	return "finishing " + strings.Join(names, ", ") + more + "; Ctrl-C again stops at once"
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
		{s.Held, fmt.Sprintf("%d held because the answer or its record cannot be written; the next run tries again", s.Held)},
		{s.Paused, fmt.Sprintf("%d waiting for a paused agent", s.Paused)},
	} {
		if p.n > 0 {
			parts = append(parts, p.text)
		}
	}
	return strings.Join(parts, ", ")
}
