package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/runner"
	"agentgraph/tools"
)

// approver asks the person at the terminal; where there is none, it is nil.
func (a *app) approver() tools.Approver {
	if !isTerminal(a.stdin) || !isTerminal(a.stderr) {
		return nil
	}
	return terminalApprover{a}
}

type terminalApprover struct{ a *app }

func (t terminalApprover) Approve(ctx context.Context, q tools.Question) (bool, error) {
	fmt.Fprintf(t.a.stderr, "agentgraph: run the tool %s with %s? [y/N] ", agents.Printable(q.Tool), agents.Printable(string(q.Arguments)))
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(t.a.stdin).ReadString('\n')
		said <- line
	}()
	select {
	case line := <-said:
		line = strings.ToLower(strings.TrimSpace(line))
		return line == "y" || line == "yes", nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (a *app) approveCommand() *cobra.Command {
	var deny bool
	cmd := &cobra.Command{
		Use:   "approve [ID]",
		Short: "Let a tool's call that waits go on, or list those that wait",
		Long: `Tools with policy: ask wait for a person. Without an id the waiting calls are
listed; with one the call runs, or with --deny does not, and its turn ends as
policy_denied.`,
		Example: `
  agentgraph approve --graph mygraph
  agentgraph approve --graph mygraph 3fa9c1
  agentgraph approve --deny 3fa9c1`,
		Args: cobra.MaximumNArgs(1),
	}
	dir := graphFlag(cmd)
	cmd.Flags().BoolVar(&deny, "deny", false, "do not run the call")
	a.jsonFlag(cmd, "print the waiting calls as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := optional(args, "a call by its id")
		if err != nil {
			return err
		}
		req := runner.Request{Command: runner.CmdApprove, ID: id, Deny: deny}
		if id == "" && deny {
			return errors.New("--deny: name the call's id; agentgraph approve lists those that wait")
		}
		resp, err := ask(dir(), req)
		if err != nil {
			return err
		}
		if req.ID != "" {
			what := "approved"
			if deny {
				what = "denied"
			}
			fmt.Fprintf(a.stderr, "%s: %s\n", req.ID, what)
			return nil
		}
		if a.json {
			if resp.Waiting == nil {
				resp.Waiting = []tools.Question{}
			}
			return a.printJSON(resp.Waiting)
		}
		for _, q := range resp.Waiting {
			fmt.Fprintln(a.stdout, questionText(q))
		}
		return nil
	}
	return cmd
}

// questionText is a waiting call for people.
func questionText(q tools.Question) string {
	args := string(q.Arguments)
	if len(args) > 200 {
		args = strings.ToValidUTF8(args[:200], "") + "…"
	}
	return agents.Printable(fmt.Sprintf("%s  %s: %s %s", q.ID, q.Agent, q.Tool, args))
}
