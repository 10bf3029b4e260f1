package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/internal/server"
	"agentgraph/model"
)

// served is a model on a server that this program starts.
type served struct {
	model.Model
	spec   agents.ModelSpec
	server *server.Server
}

// withServer wraps the model of a server where the settings have a command for it.
func withServer(m model.Model, spec agents.ModelSpec) (model.Model, error) {
	if spec.ServerCommand == nil {
		return m, nil
	}
	s, err := server.New(processConfig(spec))
	if err != nil {
		m.Close()
		return nil, unavailable(spec, err)
	}
	return &served{m, spec, s}, nil
}

func processConfig(spec agents.ModelSpec) server.Config {
	c := spec.ServerCommand
	cfg := server.Config{
		Model: modelName(spec), Command: c.Command, Env: c.Env, URL: spec.URL, Startup: spec.Startup(),
		StateDir: filepath.Join(spec.Root, agents.StateDir, "servers"),
	}
	if c.Dir != nil {
		cfg.Dir = *c.Dir
	}
	return cfg
}

// checkCommand finds what would keep a server from being started.
func checkCommand(spec agents.ModelSpec) error {
	if spec.ServerCommand == nil {
		return nil
	}
	if _, err := server.New(processConfig(spec)); err != nil {
		return err
	}
	program := spec.ServerCommand.Command[0]
	if _, err := exec.LookPath(program); err != nil && !(errors.Is(err, exec.ErrDot) || strings.Contains(program, "/") && errors.Is(err, exec.ErrNotFound)) {
		return fmt.Errorf("server_command: there is no program %s; install it, or correct the path", program)
	}
	return nil
}

// Ready starts the server where it does not run, and waits for it.
func (m *served) Ready(ctx context.Context) error {
	err := m.server.Ready(ctx)
	if err == nil {
		return nil
	}
	e := &model.Error{Kind: model.Unavailable, Delivery: model.NotSent, Model: modelName(m.spec), Err: err}
	var se *server.Error
	switch {
	case errors.As(err, &se):
		e.Retry = se.Retry
	case errors.Is(err, context.DeadlineExceeded):
		e.Kind = model.TimedOut
	case errors.Is(err, context.Canceled):
		e.Kind = model.Cancelled
	}
	return e
}

func (m *served) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	if err := m.Ready(ctx); err != nil {
		return nil, err
	}
	return m.Model.Generate(ctx, req)
}

func (m *served) Admit(ctx context.Context, c *constraint.Constraint) error {
	a, ok := m.Model.(model.Admitter)
	if !ok {
		return nil
	}
	if err := m.Ready(ctx); err != nil {
		return err
	}
	return a.Admit(ctx, c)
}

// serversEnding counts the servers that were started and are being ended.
var serversEnding atomic.Int32

func (m *served) Close() error {
	serversEnding.Add(1)
	defer serversEnding.Add(-1)
	return errors.Join(m.Model.Close(), m.server.Close())
}

// superviseCommand is the other end of internal/server; people do not call it.
func (a *app) superviseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   server.SupervisorCommand,
		Short: "Keep one model server for agentgraph run",
		Long: `Starts the server that it is told of on stdin, and ends it when stdin ends.
agentgraph runs this itself for server_command:, so that no server outlives it.`,
		Example: "  agentgraph supervise-server <job.json",
		Args:    cobra.NoArgs,
		Hidden:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return server.Supervise(cmd.Context(), a.stdin, a.stdout)
		},
	}
}
