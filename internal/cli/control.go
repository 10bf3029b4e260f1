package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/runner"
)

// graphFlag gives cmd --graph and returns what it says, or the graph around
// the working folder.
func graphFlag(cmd *cobra.Command) func() string {
	var dir string
	cmd.Flags().StringVar(&dir, "graph", "", "the graph in `DIR` (default: the one around the working folder)")
	return func() string {
		if dir != "" {
			return dir
		}
		if around := graphAround(workingDir()); around != "" {
			return around
		}
		return "."
	}
}

// optional is the argument that may be left out. An empty one is most likely a
// variable of a script that is not set, and no wish for all there is.
func optional(args []string, what string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	if args[0] == "" {
		return "", fmt.Errorf("the argument is empty; name %s, or leave it out", what)
	}
	return args[0], nil
}

// ask sends one command to the runner of the graph at dir.
func ask(dir string, req runner.Request) (runner.Response, error) {
	c, err := runner.Dial(dir)
	if err != nil {
		return runner.Response{}, err
	}
	defer c.Close()
	return c.Do(req)
}

// simpleCommand is one that sends a command, about an agent or about all.
func (a *app) simpleCommand(cmd *cobra.Command, send func(agent string) runner.Request, said string) *cobra.Command {
	dir := graphFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		agent, err := optional(args, "an agent")
		if err != nil {
			return err
		}
		if _, err = ask(dir(), send(agent)); err != nil {
			return err
		}
		what := agent
		if what == "" {
			what = "all agents"
		}
		fmt.Fprintf(a.stderr, "%s: %s\n", what, said)
		return nil
	}
	return cmd
}

func (a *app) pauseCommand() *cobra.Command {
	return a.simpleCommand(&cobra.Command{
		Use:     "pause [AGENT]",
		Short:   "Start no more turns of an agent, or of all",
		Long:    "Running turns end as they would. It holds over restarts, until resume.",
		Example: "  agentgraph pause --graph mygraph rater",
		Args:    cobra.MaximumNArgs(1),
	}, func(agent string) runner.Request {
		return runner.Request{Command: runner.CmdPause, Agent: agent}
	}, "paused")
}

func (a *app) resumeCommand() *cobra.Command {
	return a.simpleCommand(&cobra.Command{
		Use:     "resume [AGENT]",
		Short:   "Let a paused agent, or all, go on",
		Example: "  agentgraph resume --graph mygraph rater",
		Args:    cobra.MaximumNArgs(1),
	}, func(agent string) runner.Request {
		return runner.Request{Command: runner.CmdResume, Agent: agent}
	}, "go on")
}

func (a *app) stopCommand() *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "stop [AGENT]",
		Short: "Stop the runner, or the running turns of one agent",
		Long: `Without an agent the runner finishes its running turns and ends; --now stops
them at once, and they are done again the next time. With an agent its turns are
stopped and it is paused, until resume.`,
		Example: `
  agentgraph stop --graph mygraph
  agentgraph stop --graph mygraph rater`,
		Args: cobra.MaximumNArgs(1),
	}
	a.simpleCommand(cmd, func(agent string) runner.Request {
		if agent == "" && !now {
			return runner.Request{Command: runner.CmdFinish}
		}
		return runner.Request{Command: runner.CmdStop, Agent: agent}
	}, "stopping")
	cmd.Flags().BoolVar(&now, "now", false, "do not wait for running turns")
	return cmd
}

func (a *app) reloadCommand() *cobra.Command {
	return a.simpleCommand(&cobra.Command{
		Use:     "reload",
		Short:   "Read settings and folders anew now",
		Long:    "A runner does this by itself when files change; reload does not wait for that.",
		Example: "  agentgraph reload --graph mygraph",
		Args:    cobra.NoArgs,
	}, func(string) runner.Request {
		return runner.Request{Command: runner.CmdReload}
	}, "reloaded")
}

func (a *app) retryCommand() *cobra.Command {
	var opt runner.RetryOptions
	cmd := &cobra.Command{
		Use:   "retry (TURN | AGENT | --all)",
		Short: "Do failed and refused turns again",
		Long: `Makes failed and refused turns pending again, under their own name; with --force
completed ones are repeated too, as new turns with answers of their own. Works
with and without a running runner. Turns whose input is gone or has changed are
left out, and listed. Prints the ids of the turns.`,
		Example: `
  agentgraph retry --graph mygraph rater
  agentgraph retry --all
  agentgraph retry --force 01a22a86-b948-7c1c-9a7c-480b6caaed84`,
		Args: cobra.MaximumNArgs(1),
	}
	dir := graphFlag(cmd)
	cmd.Flags().BoolVar(&opt.All, "all", false, "every agent")
	cmd.Flags().BoolVar(&opt.Force, "force", false, "repeat completed turns too")
	a.jsonFlag(cmd, "print one JSON object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			opt.Target = args[0]
		}
		if (opt.Target == "") != opt.All {
			return errors.New("name a turn or an agent, or give --all")
		}
		res, err := retry(dir(), opt)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(res)
		}
		for _, id := range res.Turns {
			fmt.Fprintln(a.stdout, id)
		}
		for _, id := range slices.Sorted(maps.Keys(res.Skipped)) {
			fmt.Fprintf(a.stderr, "%s: left out: %s\n", id, agents.Printable(res.Skipped[id]))
		}
		fmt.Fprintf(a.stderr, "%s pending again\n", counted(len(res.Turns), "turn"))
		return nil
	}
	return cmd
}

// retry asks the runner, or does it here where none runs.
func retry(dir string, opt runner.RetryOptions) (runner.RetryResult, error) {
	resp, err := ask(dir, runner.Request{Command: runner.CmdRetry, Retry: opt})
	switch {
	case errors.Is(err, runner.ErrNotRunning):
		return runner.RetryOffline(dir, opt)
	case err != nil:
		return runner.RetryResult{}, err
	case resp.Retry == nil:
		return runner.RetryResult{}, errors.New("the runner did not say what it retries")
	}
	return *resp.Retry, nil
}

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "status [DIR]",
		Short: "What the runner of a graph is doing",
		Long: `A line per agent: its state, what is pending, running and done, and the rates of
the last minute. Exit code 2 when no runner works the graph.`,
		Example: `
  agentgraph status mygraph
  agentgraph status --watch mygraph
  agentgraph status --json mygraph | jq '.agents[].pending'`,
		Args: cobra.MaximumNArgs(1),
	}
	dir := graphFlag(cmd)
	cmd.Flags().BoolVar(&watch, "watch", false, "print again every second, until Ctrl-C or the runner ends")
	a.jsonFlag(cmd, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		at := dir()
		if len(args) == 1 {
			at = args[0]
		}
		return a.status(cmd.Context(), at, watch)
	}
	return cmd
}

func (a *app) status(ctx context.Context, dir string, watch bool) error {
	c, err := runner.Dial(dir)
	if err != nil {
		return err
	}
	defer c.Close()
	redraw := watch && !a.json && isTerminal(a.stdout)
	shown := 0
	for {
		s, err := c.Status()
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(s); err != nil {
				return err
			}
		} else {
			text := statusText(s)
			if redraw && shown > 0 {
				fmt.Fprintf(a.stdout, "\x1b[%dA\x1b[J", shown)
			}
			shown = strings.Count(text, "\n")
			fmt.Fprint(a.stdout, text)
		}
		if !watch {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// statusText is the status for people.
func statusText(s runner.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: process %d, since %s", agents.Printable(s.Root), s.PID, s.Started.Local().Format(time.DateTime))
	if s.Polled > 0 {
		fmt.Fprintf(&b, ", %d of %d folders polled", s.Polled, s.Watched)
	}
	if s.Ending {
		b.WriteString(", ending")
	}
	b.WriteByte('\n')
	for _, q := range s.Waiting {
		fmt.Fprintf(&b, "  %s\n", questionText(q))
	}
	width := len("agent")
	for _, ag := range s.Agents {
		width = max(width, len([]rune(agents.Printable(ag.Name))))
	}
	fmt.Fprintf(&b, "%-*s  state    pending  running     done   failed  refused  turns/min  tokens/min\n", width, "agent")
	for _, ag := range s.Agents {
		fmt.Fprintf(&b, "%-*s  %-7s  %7d  %7d  %7d  %7d  %7d  %9d  %10d\n", width, agents.Printable(ag.Name), ag.State,
			ag.Pending+ag.Settling+ag.Retrying, len(ag.Running), ag.Done, ag.Failed, ag.Refused, ag.TurnsPerMinute, ag.TokensPerMinute)
		for _, t := range ag.Running {
			fmt.Fprintf(&b, "  %s: %s, %.1f s", agents.Printable(strings.Join(t.Inputs, ", ")), counted(t.Tokens, "token"), t.Elapsed.Seconds())
			if t.TokensPerSecond > 0 {
				fmt.Fprintf(&b, ", %.1f tokens/s", t.TokensPerSecond)
			}
			if t.Attempt > 1 {
				fmt.Fprintf(&b, ", attempt %d", t.Attempt)
			}
			b.WriteByte('\n')
		}
		if ag.Error != "" {
			fmt.Fprintf(&b, "  %s\n", agents.Printable(ag.Error))
		}
		for _, set := range ag.Incomplete {
			fmt.Fprintf(&b, "  incomplete: %s\n", agents.Printable(set))
		}
		if ag.Held > 0 {
			fmt.Fprintf(&b, "  %s cannot be published now; 'agentgraph retry %s' tries again\n", counted(ag.Held, "answer"), agents.Printable(ag.Name))
		}
		if ag.Unreadable > 0 {
			fmt.Fprintf(&b, "  %s cannot be read; 'agentgraph doctor' says why\n", counted(ag.Unreadable, "input"))
		}
	}
	return b.String()
}
