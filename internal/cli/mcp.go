package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/serve"
	"agentgraph/serve/mcp"
)

// tokenVariable holds the token of the HTTP server, where it is not in a file.
const tokenVariable = "AGENTGRAPH_MCP_TOKEN"

type mcpFlags struct {
	model, http, tokenFile string
	remote                 bool
	hosts                  []string
}

func (a *app) mcpCommand() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp [DIR]",
		Short: "Serve a graph and its models to MCP clients",
		Long: `Speaks the Model Context Protocol on stdin and stdout, with --http as streamable
HTTP on loopback. Tools: respond, with a graph also list_agents, send, answers,
check and approve; answers and records are resources. Without DIR it serves the
graph around the working folder, or where there is none, models alone.

Inputs that clients send are taken by the runner that works the graph; where
there is none, this process works the graph from the first of them on.

Over HTTP each request needs the token, as "Authorization: Bearer TOKEN": from
--token-file, else from ` + tokenVariable + `, else a new one that is printed on
stderr. Web pages cannot reach it: Host and Origin must be this machine's.`,
		Example: `
  agentgraph mcp mygraph
  agentgraph mcp --model script:answers.yaml
  agentgraph mcp --http 127.0.0.1:8420 --token-file ~/.mcp-token mygraph`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := graphAround(workingDir())
			if len(args) == 1 {
				dir = args[0]
			}
			return a.mcp(cmd.Context(), dir, &f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.model, "model", "", "a `MODEL` for every agent and call that names none: a name from models:, a .gguf path, or script:FILE")
	fl.StringVar(&f.http, "http", "", "serve streamable HTTP on `ADDRESS`, e.g. 127.0.0.1:8420, instead of stdin and stdout")
	fl.StringVar(&f.tokenFile, "token-file", "", "read the token of --http from `FILE`")
	fl.BoolVar(&f.remote, "allow-remote", false, "let --http listen for other machines; wants a token of your own, and is not encrypted")
	fl.StringArrayVar(&f.hosts, "allow-host", nil, "with --http: `NAME` by which clients may call this machine, besides localhost; may be repeated")
	return cmd
}

func (a *app) mcp(ctx context.Context, dir string, f *mcpFlags) error {
	var h mcp.HTTP
	var ln net.Listener
	tell := func() {}
	if f.http != "" {
		token, own, err := readToken(ctx, f.tokenFile)
		if err != nil {
			return err
		}
		if f.remote && !own {
			return fmt.Errorf("--allow-remote: give a token of your own, with --token-file or %s", tokenVariable)
		}
		h = mcp.HTTP{Token: token, Hosts: f.hosts, Remote: f.remote}
		if ln, err = h.Listen(f.http); err != nil {
			return err
		}
		defer ln.Close()
		tell = func() {
			if !own {
				fmt.Fprintf(a.stderr, "agentgraph: the token of this run: %s\n", token)
			}
			fmt.Fprintf(a.stderr, "agentgraph: serving MCP at http://%s%s\n", ln.Addr(), mcp.Path)
		}
	} else if f.tokenFile != "" || f.remote || len(f.hosts) > 0 {
		return errors.New("--token-file, --allow-remote and --allow-host are about --http; give an address with it")
	}
	load := loadOptions(f.model)
	svc, done, err := a.service(dir, load)
	if err != nil {
		return err
	}
	defer done()
	server := mcp.New(mcp.Config{Service: svc, Version: version, Check: checkForMCP(svc, load), Warn: func(err error) { warn(a.stderr, err) }})
	if ln == nil {
		err = server.ServeStdio(ctx, a.stdin, a.stdout)
	} else {
		tell()
		err = server.ServeHTTP(ctx, ln, h)
	}
	if ctx.Err() != nil {
		return nil // that is how a server ends
	}
	return err
}

// readToken is the token that the user set, or a new one.
func readToken(ctx context.Context, file string) (token string, own bool, err error) {
	if file != "" {
		b, err := readFile(ctx, "the token", file)
		if err != nil {
			return "", false, err
		}
		token = strings.TrimSpace(string(b))
	} else {
		token = os.Getenv(tokenVariable)
	}
	if token == "" && file == "" {
		return mcp.NewToken(), false, nil
	}
	if len(token) < mcp.MinToken || strings.ContainsAny(token, " \t\r\n") {
		return "", false, fmt.Errorf("the token is not usable: take at least %d characters without spaces, e.g. of 'openssl rand -hex 24'", mcp.MinToken)
	}
	return token, true, nil
}

// checkForMCP is check as a tool.
func checkForMCP(svc *serve.Service, load agents.LoadOptions) func(context.Context, mcp.CheckRequest) (*mcp.CheckReport, error) {
	return func(ctx context.Context, req mcp.CheckRequest) (*mcp.CheckReport, error) {
		var g *agents.Graph
		if svc.Root() != "" {
			var err error
			if g, err = svc.Graph(); err != nil {
				return nil, err
			}
		}
		if req.Spec != nil {
			return checkPromise(req, enginesOf(ctx, g)), nil
		}
		if g == nil {
			return nil, serve.ErrNoGraph
		}
		if req.Agent != "" && g.Agent(req.Agent) == nil {
			return nil, fmt.Errorf("no agent is called %q", req.Agent)
		}
		var report mcp.CheckReport
		for _, f := range graphFindings(ctx, g, load.Model, false) {
			if req.Agent == "" || f.Agent == req.Agent || f.Agent == "" && f.File == agents.GraphFile {
				report.Findings = append(report.Findings, f)
			}
		}
		return &report, nil
	}
}

// checkPromise says what is wrong with a promise and what would hold it.
func checkPromise(req mcp.CheckRequest, engines []modelEngine) *mcp.CheckReport {
	opt := constraint.Options{Enforce: constraint.Enforce(req.Enforce), Formats: constraint.Formats(req.Formats)}
	var report mcp.CheckReport
	seen := map[string]bool{}
	for _, m := range engines {
		for _, f := range checkConstraint(*req.Spec, opt, m.engine, true) {
			if text := f.String(); !seen[text] {
				seen[text] = true
				report.Findings = append(report.Findings, f)
			}
		}
		s := mcp.ModelSupport{Model: m.name, Engine: m.engine.Name}
		c, err := constraint.Compile(*req.Spec, opt)
		if err == nil {
			s.EnforcedBy, err = c.Admit(m.engine)
		}
		if err != nil {
			s.Refused = err.Error()
		}
		report.Models = append(report.Models, s)
	}
	return &report
}
