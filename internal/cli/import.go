package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/internal/importer"
)

func (a *app) importCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "import CONFIG.YAML [DIR]",
		Short: "Take over a configuration of AgentGraph (config.yaml)",
		Long: `Writes agentgraph.yaml, an agent.yaml for each agent and copies of its system
files into DIR (the working folder), and lists every key that could not be
carried or means something else here, with its place in the file. Nothing is
ever replaced: when a file is in the way, nothing is written. Keys of servers
are not copied; it says which environment variables want them.

Exit codes: 0 imported, or with --dry-run planned; 2 refused.`,
		Example: `
  agentgraph import --dry-run config.yaml mygraph
  agentgraph import config.yaml mygraph && agentgraph check mygraph
  agentgraph import --json config.yaml mygraph | jq -r '.notes[].key'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.importConfig(cmd.Context(), args[0], dirArg(args[1:]), dry)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be written, and write nothing")
	a.jsonFlag(cmd, "print the plan as one JSON object")
	return cmd
}

// importReport is what import --json prints.
type importReport struct {
	*importer.Plan
	Written bool `json:"written"`
	// Findings of check on the graph that came of it; null with --dry-run.
	Findings []agents.Finding `json:"findings"`
}

func (a *app) importConfig(ctx context.Context, config, dir string, dry bool) error {
	plan, err := importer.Read(config, dir)
	if err != nil {
		return importError(config, err)
	}
	report := importReport{Plan: plan}
	if dry {
		err = plan.Check()
	} else {
		err = plan.Write()
		report.Written = err == nil
	}
	if err != nil {
		return err
	}
	if report.Written && len(plan.Folders) > 0 {
		g, err := loadGraph(dir, "")
		if err != nil {
			return err
		}
		report.Findings = append([]agents.Finding{}, graphFindings(ctx, g, "", false)...)
	}
	if a.json {
		return a.printJSON(report)
	}
	return a.printImport(report, config, dry)
}

func importError(config string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no file %s; name AgentGraph's config.yaml", config)
	}
	return err
}

func (a *app) printImport(r importReport, config string, dry bool) error {
	for _, n := range r.Notes {
		what := "not carried"
		if n.Kind == importer.Changed {
			what = "note"
		}
		text := agents.Finding{File: config, Line: n.Line, Col: n.Column, Msg: fmt.Sprintf("%s: %s: %s", what, n.Key, n.Message)}
		if _, err := fmt.Fprintln(a.stdout, text.String()); err != nil {
			return err
		}
	}
	for _, f := range r.Files {
		switch {
		case dry && f.From == "":
			fmt.Fprintf(a.stdout, "would write %s:\n", agents.Printable(f.Path))
			for line := range strings.Lines(f.Text) {
				fmt.Fprintf(a.stdout, "    %s\n", agents.Printable(strings.TrimRight(line, "\n")))
			}
		case dry:
			fmt.Fprintf(a.stdout, "would copy %s to %s\n", agents.Printable(f.From), agents.Printable(f.Path))
		}
	}
	if dry {
		fmt.Fprintf(a.stderr, "%s, %s; nothing was written\n", counted(len(r.Files), "file"), counted(len(r.Notes), "note"))
		return nil
	}
	for _, f := range r.Findings {
		fmt.Fprintln(a.stdout, findingText(f))
	}
	fmt.Fprintf(a.stderr, "%s written, %s, %s of check\n", counted(len(r.Files), "file"), counted(len(r.Notes), "note"), counted(len(r.Findings), "finding"))
	return nil
}
