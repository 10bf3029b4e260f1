package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"agentgraph/distill"
)

func (a *app) verifyCommand() *cobra.Command {
	var walk walkFlags
	cmd := &cobra.Command{
		Use:   "verify [DIR]",
		Short: "Every answer against the schema it was made under, and against its record",
		Long: `Checks the answers of every agent in DIR, a graph, an agent's folder or any
folder above some. An answer is held against the schema that its record has;
without a record, against the schema file that is there now. A file that is not
the one its record names, by size, hash or text, fails too.

Exit codes: 0 every answer is as it should be, 1 one is not, or a record or
folder cannot be read. Each is listed, one a line.`,
		Example: `
  agentgraph verify mygraph
  agentgraph verify --json mygraph | jq -r .failures[].path
  agentgraph verify --schema system/.schema-rating.json some/output`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.verify(cmd, dirArg(args), walk.opt)
		},
	}
	walk.add(cmd)
	a.jsonFlag(cmd, "print one JSON object: what failed, and the counts")
	return cmd
}

// verify prints failures as they are found, also inside the JSON object, so
// that a long list needs no memory.
func (a *app) verify(cmd *cobra.Command, dir string, opt distill.Options) error {
	head, sep := "{\"failures\":[", ""
	list := func(v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s%s\n%s", head, sep, b)
		head, sep = "", ","
		return err
	}
	rep, err := distill.Verify(cmd.Context(), dir, opt, func(c *distill.Check, p *distill.Problem) error {
		switch {
		case c != nil && a.json:
			return list(c)
		case c != nil:
			_, err := fmt.Fprintln(a.stdout, c.Error())
			return err
		case a.json:
			return list(p)
		}
		_, err := fmt.Fprintln(a.stdout, p.Error())
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		b, err := json.Marshal(rep)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "%s\n],%s\n", head, b[1:])
	} else {
		fmt.Fprintf(a.stderr, "%s: %d valid, %d free text, %d failed", counted(rep.Answers, "answer"), rep.Valid, rep.Free, rep.Failed)
		if rep.Unchecked > 0 {
			fmt.Fprintf(a.stderr, ", %d not checked", rep.Unchecked)
		}
		if rep.Problems > 0 {
			fmt.Fprintf(a.stderr, "; %s", counted(rep.Problems, "other problem"))
		}
		fmt.Fprintln(a.stderr)
	}
	if !rep.OK() {
		return exitWith(exitNotCompleted)
	}
	return nil
}
