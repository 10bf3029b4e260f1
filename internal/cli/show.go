package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/record"
	"agentgraph/record/store"
)

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Where an answer came from, or what became of an input",
		Long: `FILE is an answer in output/, a record in turns/, or an input. Prints the turn
behind it: inputs, model, schema and what held it, tokens, time, and the error
where there is one. With --json it is the whole turn record, one a line.`,
		Example: `
  agentgraph show mygraph/agents/rater/output/rating_0.json
  agentgraph show --json mygraph/agents/rater/output/rating_0.json | jq .request.prompt -r`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.show(args[0])
		},
	}
	a.jsonFlag(cmd, "print each whole turn record on one line")
	return cmd
}

func (a *app) show(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fileError("the file", path, err)
	}
	dir := graphOf(path)
	if dir == "" {
		return fmt.Errorf("%s lies in no graph: none of the folders above it is called %s", path, agents.AgentsDir)
	}
	g, err := loadGraph(dir, "")
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	recs, err := findRecords(g, abs)
	if err != nil {
		warn(a.stderr, err)
	}
	if len(recs) == 0 {
		return fmt.Errorf("no turn in %s names %s", dir, g.Rel(abs))
	}
	for i, r := range recs {
		if a.json {
			b, err := record.Marshal(r)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%s\n", b)
			continue
		}
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		printRecord(a.stdout, r)
	}
	return nil
}

// findRecords are the turns that made, read or are the file. Records that
// cannot be read are in the error.
func findRecords(g *agents.Graph, abs string) ([]*record.Record, error) {
	rel := g.Rel(abs)
	own := slices.DeleteFunc(slices.Clone(g.Agents), (*agents.Agent).LeadsOut)
	for _, ag := range own {
		if filepath.Dir(abs) == ag.TurnsDir {
			r, err := store.Open(ag.TurnsDir).ReadFile(abs)
			if err != nil {
				return nil, err
			}
			return []*record.Record{r}, nil
		}
	}
	var made, read []*record.Record
	var errs []error
	for _, ag := range own {
		err := store.Open(ag.TurnsDir).Each(func(id string, r *record.Record) error {
			switch {
			case names(r.Outputs, rel):
				made = append(made, r)
			case names(r.Inputs, rel):
				read = append(read, r)
			}
			return nil
		})
		errs = append(errs, err)
	}
	if len(made) > 0 {
		return made, errors.Join(errs...)
	}
	return read, errors.Join(errs...)
}

func names(refs []record.FileRef, path string) bool {
	for _, f := range refs {
		if f.Path == path {
			return true
		}
	}
	return false
}

// printRecord is a turn for people.
func printRecord(w io.Writer, r *record.Record) {
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-9s %s\n", name, agents.Printable(text))
		}
	}
	row("turn", deref(r.TurnID))
	row("agent", deref(r.Agent))
	for _, f := range r.Inputs {
		row("input", f.Path)
	}
	for _, f := range r.Outputs {
		row("output", f.Path)
	}
	if r.Outcome == nil {
		row("outcome", "refused before it was admitted")
	} else {
		s := string(r.Outcome.Status)
		if r.Outcome.Limit != "" {
			s += " (" + r.Outcome.Limit + ")"
		}
		if r.Attempt > 1 {
			s += fmt.Sprintf(", attempt %d", r.Attempt)
		}
		row("outcome", s)
	}
	if r.Error != nil {
		row("error", string(r.Error.Code)+": "+recordErrorText(r.Error))
	}
	if q := r.Request; q != nil {
		by := q.Model.Engine
		if q.Model.Alias != "" {
			by = q.Model.Name + ", " + by
		}
		row("model", strings.TrimSpace(q.Model.String()+" ("+by+")"))
		if c := q.Constraint; c != nil {
			s := kindText(c.Kind)
			if c.File != "" {
				s = c.File + ", " + s
			}
			if by := r.OutputValidation.EnforcedBy; by != nil {
				s += ", held by " + string(*by)
			}
			row("schema", s+": "+string(r.OutputValidation.Status))
		}
	}
	if r.Repair != nil {
		row("repair", string(r.Repair.Status))
	}
	if acc := r.Accounting; acc != nil {
		row("tokens", fmt.Sprintf("%s in, %s out, %s calls", orUnknown(acc.Usage.InputTokens), orUnknown(acc.Usage.OutputTokens), acc.ModelCalls))
	}
	if t := r.Timing; t != nil {
		row("time", fmt.Sprintf("%s, took %s", t.Started.Local().Format(time.DateTime), t.Finished.Sub(t.Started).Round(time.Millisecond)))
	}
	if l := r.Lineage; l != nil {
		for _, f := range l.Roots {
			row("root", f.Path)
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func orUnknown(s *string) string {
	if s == nil {
		return "?"
	}
	return *s
}
