// Package cli is the command line: commands, flags, exit codes and what
// people see. It wires the concrete parts of the other packages together and
// holds no logic that one of them could own.
//
// # Contract
//
// stdout carries data only; people's text and progress go to stderr. Exit
// codes: 0 completed, 1 admitted but not completed, 2 arguments, settings or
// a refusal, 130 cancelled.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK           = 0
	exitNotCompleted = 1
	exitRefused      = 2
	exitCancelled    = 130
)

// exitError ends a command with a code. A nil err prints nothing more.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitWith ends a command whose findings are printed already.
func exitWith(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}

// app is one invocation.
type app struct {
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	signals *signals
	json    bool
}

// Main runs one command line and returns its exit code. ctx ends it as an
// interrupt would.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, sig := watchSignals(ctx)
	defer sig.stop()
	out := &watchedWriter{w: stdout}
	a := &app{stdin: stdin, stdout: out, stderr: stderr, signals: sig}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	err, ended := execute(ctx, root)
	if !ended {
		fmt.Fprintln(stderr, "agentgraph: cancelled")
		return exitCancelled
	}
	if err == nil {
		err = out.failed()
	}
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.err != nil {
			warn(stderr, exit.err)
		}
		if ctx.Err() != nil {
			return exitCancelled // what it found may come of that
		}
		return exit.code
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "agentgraph: cancelled")
		return exitCancelled
	}
	warn(stderr, err)
	return exitRefused
}

// endTime is how long a command may take to end when it is to end at once.
// Longer takes only what knows of no context, such as the opening of a FIFO
// for a model or a single step of a large one; nothing depends on its end. A
// server that was started is waited for, which has a bound of its own.
const endTime = 1500 * time.Millisecond

// execute runs the command; ended is false for one that does not end with ctx.
func execute(ctx context.Context, root *cobra.Command) (err error, ended bool) {
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	select {
	case err := <-done:
		return err, true
	case <-ctx.Done():
	}
	late := time.NewTimer(endTime)
	defer late.Stop()
	for {
		select {
		case err := <-done:
			return err, true
		case <-late.C:
			if serversEnding.Load() == 0 {
				return nil, false
			}
			late.Reset(endTime / 10)
		}
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "agentgraph",
		Short: "A folder is an agent, a file is a message, a schema file holds for every answer",
		Long: `agentgraph watches a folder of agents. A file dropped into an agent's input/
becomes a prompt, the answer becomes a file in its output/, and a
.schema-<format>.<ext> file in its system/ makes every answer conform: JSON
Schema, regular expression, Lark grammar or llguidance grammar, held token by
token while a local model (any GGUF file) generates.`,
		Example: `  agentgraph init mygraph && agentgraph run --once mygraph
  agentgraph respond --choice yes,no "Is water wet?"
  echo "It leaks, but it boils fast." | agentgraph respond --schema rating.json`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{err, cmd.CommandPath()}
	})
	root.AddGroup(
		&cobra.Group{ID: "work", Title: "Work:"},
		&cobra.Group{ID: "look", Title: "Look before and after:"},
		&cobra.Group{ID: "data", Title: "The answers as data:"},
		&cobra.Group{ID: "control", Title: "A running graph:"},
		&cobra.Group{ID: "other", Title: "Other:"},
	)
	root.SetHelpCommandGroupID("other")
	for _, g := range []struct {
		id   string
		cmds []*cobra.Command
	}{
		{"work", a.workCommands()},
		{"look", a.lookCommands()},
		{"data", a.dataCommands()},
		{"control", a.controlCommands()},
		{"other", a.otherCommands()},
	} {
		for _, c := range g.cmds {
			c.GroupID = g.id
			plainArgs(c)
			c.Example = strings.Trim(c.Example, "\n")
			root.AddCommand(c)
		}
	}
	return root
}

// plainArgs words what is wrong with the number of arguments of a command and
// those below it.
func plainArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		plainArgs(sub)
	}
	check := c.Args
	if check == nil || c.HasSubCommands() {
		return
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		return &usageError{fmt.Errorf("%s does not take %s; it is used as: %s", cmd.CommandPath(), counted(len(args), "argument"), cmd.UseLine()), cmd.CommandPath()}
	}
}

// jsonFlag gives cmd --json.
func (a *app) jsonFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&a.json, "json", false, usage)
}
