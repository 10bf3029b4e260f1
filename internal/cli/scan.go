package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/distill"
)

// walkFlags are what scan and verify have in common.
type walkFlags struct{ opt distill.Options }

func (w *walkFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&w.opt.Agents, "agent", nil, "only this `AGENT`; may be given again")
	cmd.Flags().StringVar(&w.opt.Schema, "schema", "", "DIR is one folder of answers, and `FILE` the schema file that they follow")
}

func (a *app) scanCommand() *cobra.Command {
	var walk walkFlags
	var files bool
	cmd := &cobra.Command{
		Use:   "scan [DIR]",
		Short: "Every agent with its schema file, its answers, and what does not belong",
		Long: `Counts the answers of every agent in DIR, a graph, an agent's folder or any
folder above some. Answers are the files that a turn record names, and those
whose whole name the schema file gives; records are not needed. Answers made
under another schema than the one that is there now are told apart.

Files in output/ that are no answers, and what cannot be read, are listed one a
line; the first 1000 of them with --json.`,
		Example: `
  agentgraph scan mygraph
  agentgraph scan --json mygraph | jq '.agents[] | {agent, answers}'
  agentgraph scan --schema system/.schema-rating.json some/output`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var each func(*distill.Answer) error
			if files {
				each = a.scanFile
			}
			rep, err := distill.Scan(cmd.Context(), dirArg(args), walk.opt, each)
			switch {
			case err != nil:
				return err
			case files:
				for _, p := range rep.Problems {
					warn(a.stderr, p)
				}
				return nil
			case a.json:
				return a.printJSON(rep)
			}
			printScan(a.stdout, rep)
			return nil
		},
	}
	walk.add(cmd)
	cmd.Flags().BoolVar(&files, "files", false, "list every answer instead of counting them")
	a.jsonFlag(cmd, "print one JSON object; with --files one a line for each answer")
	return cmd
}

// scanFile prints one answer of scan --files.
func (a *app) scanFile(x *distill.Answer) error {
	if !a.json {
		_, err := fmt.Fprintln(a.stdout, agents.Printable(x.Path))
		return err
	}
	return a.printJSON(struct {
		Agent     string          `json:"agent"`
		Path      string          `json:"path"`
		Turn      *uint64         `json:"turn"`
		Timestamp *time.Time      `json:"timestamp"`
		TurnID    *string         `json:"turn_id"`
		SHA256    *string         `json:"sha256"`
		Bytes     *int64          `json:"bytes"`
		Schema    *distill.Schema `json:"schema"`
		Current   bool            `json:"current"`
	}{x.Agent, x.Path, x.Turn, x.Timestamp, orNull(x.TurnID), orNull(x.Output.SHA256), recorded(x), x.Schema, x.Current})
}

func recorded(x *distill.Answer) *int64 {
	if x.TurnID == "" {
		return nil
	}
	return &x.Output.Bytes
}

// printScan is a report for people.
func printScan(w io.Writer, rep *distill.ScanReport) {
	for _, ag := range rep.Agents {
		schema := "no schema file"
		if s := ag.Schema; s != nil {
			schema = fmt.Sprintf("%s, %s, sha256 %.12s", s.Path, kindText(s.Kind), s.SourceSHA256)
		}
		fmt.Fprintf(w, "%s: %s: %s\n", agents.Printable(ag.Agent), agents.Printable(schema), agents.Printable(ag.Pattern))
		for _, g := range ag.Groups {
			fmt.Fprintf(w, "  %s\n", agents.Printable(groupText(g)))
		}
		if ag.WithoutRecord > 0 {
			fmt.Fprintf(w, "  %s without a record\n", counted(ag.WithoutRecord, "answer"))
		}
		if ag.Records > 0 {
			var parts []string
			for _, s := range ag.StatusList() {
				parts = append(parts, fmt.Sprintf("%d %s", ag.Statuses[s], s))
			}
			fmt.Fprintf(w, "  %s: %s\n", counted(ag.Records, "record"), strings.Join(parts, ", "))
		}
		if ag.Missing > 0 {
			fmt.Fprintf(w, "  %s that a record names, and that is not there\n", counted(ag.Missing, "answer"))
		}
	}
	for _, p := range rep.Problems {
		fmt.Fprintln(w, p.Error())
	}
	if more := rep.ProblemCount - len(rep.Problems); more > 0 {
		fmt.Fprintf(w, "and %d more that are not listed\n", more)
	}
	fmt.Fprintf(w, "%s of %s\n", counted(rep.Answers, "answer"), counted(len(rep.Agents), "agent"))
}

func groupText(g *distill.Group) string {
	names := g.First
	if g.Last != g.First {
		names += " … " + g.Last
	}
	under := ""
	switch {
	case g.Current:
	case g.Schema == nil:
		under = " of free text, from before the schema"
	default:
		under = fmt.Sprintf(" under an earlier schema, %s %.12s", g.Schema.File, g.Schema.SHA256)
	}
	return fmt.Sprintf("%s%s: %s", counted(g.Answers, "answer"), under, names)
}
