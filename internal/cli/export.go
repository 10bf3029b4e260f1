package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/distill"
)

type exportFlags struct {
	opt            distill.ExportOptions
	layout, format string
	since, until   string
	split          string
}

func (a *app) exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export [DIR] --out DATASET",
		Short: "Make a data set of the answers, in a layout that trainers read",
		Long: `Writes the answers of a graph, or of one agent's folder, as JSONL or Parquet into
a new folder, with a data card (README.md) and the hashes of everything they were
made of (manifest.jsonl). An answer is exported when its file is in output/ and
is what its record says; delete a file there and its row is gone.

Splits go by the inputs that an answer goes back to, so that no input is in two
of them. docs/distillation.md has the columns and the expressions.

Exit codes: 0 exported; 1 exported, but some files could not be used, or no answer
was left; 2 nothing was written.`,
		Example: `
  agentgraph export mygraph --out dataset
  agentgraph export mygraph --out dataset --format parquet --valid --split train=0.9,test=0.1 --dedupe 0.9
  agentgraph export mygraph --out good --agent writer --where 'rater.rating >= 4'
  agentgraph export mygraph --out pairs --layout preference --agent writer --score rater.rating`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.export(cmd.Context(), dirArg(args), &f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.opt.Dir, "out", "", "the `FOLDER` to make; it must not be there")
	fl.StringVar(&f.layout, "layout", string(distill.Chat), "`LAYOUT` of the rows: "+words(distill.Layouts))
	fl.StringVar(&f.format, "format", string(distill.JSONL), "`FORMAT` of the files: "+words(distill.Formats))
	fl.StringSliceVar(&f.opt.Filter.Agents, "agent", nil, "only answers of `AGENT`; may be repeated")
	fl.StringVar(&f.since, "since", "", "only answers made at this `TIME` or later: 2006-01-02 or 2006-01-02T15:04:05Z")
	fl.StringVar(&f.until, "until", "", "only answers made before this `TIME`")
	fl.BoolVar(&f.opt.Filter.Valid, "valid", false, "only answers that were validated against a schema")
	fl.StringSliceVar(&f.opt.Filter.Schemas, "schema-sha256", nil, "only answers under the schema with this `HASH`, or its first digits; may be repeated")
	fl.StringVar(&f.opt.Filter.Where, "where", "", "only answers for which `EXPRESSION` holds, e.g. 'rater.rating >= 4 and answer.section != \"sport\"'")
	fl.StringVar(&f.opt.Score, "score", "", "the `VALUE` that rates an answer, e.g. rater.rating: a column, and what pairs are made by")
	fl.StringVar(&f.split, "split", "", "`PARTS` by weight, e.g. train=0.9,test=0.1 (default: all of it is train)")
	fl.Uint64Var(&f.opt.SplitSeed, "split-seed", 0, "another `SEED` gives other parts of the same sizes")
	fl.Float64Var(&f.opt.Dedupe, "dedupe", 0, "leave out rows as alike as this to an earlier one: `SIMILARITY` from 0.5 to 1")
	fl.BoolVar(&f.opt.Tools, "tools", false, "include turns that called tools, with columns for the calls")
	fl.StringArrayVar(&f.opt.DropFields, "drop-field", nil, "leave out a `COLUMN`, or a member of JSON answers as answer.MEMBER; may be repeated")
	fl.BoolVar(&f.opt.HashInputs, "hash-inputs", false, "put the sha256 in the place of inputs' texts and names")
	fl.StringVar(&f.opt.License, "license", "unknown", "`NAME` of the licence that the data is under, for the card and a column")
	a.jsonFlag(cmd, "print one JSON object: files, rows, what was left out and why")
	return cmd
}

func words[T ~string](list []T) string {
	var names []string
	for _, x := range list {
		names = append(names, string(x))
	}
	return strings.Join(names, ", ")
}

func (a *app) export(ctx context.Context, dir string, f *exportFlags) error {
	if f.opt.Dir == "" {
		return errors.New("--out names the folder to make, for example --out dataset")
	}
	f.opt.Layout, f.opt.Format = distill.Layout(f.layout), distill.Format(f.format)
	var err error
	if f.opt.Filter.Since, err = parseTime("--since", f.since); err != nil {
		return err
	}
	if f.opt.Filter.Until, err = parseTime("--until", f.until); err != nil {
		return err
	}
	if f.split != "" {
		if f.opt.Split, err = distill.ParseSplit(f.split); err != nil {
			return fmt.Errorf("--split: %w", err)
		}
	}
	r, err := distill.Export(ctx, dir, f.opt)
	if err != nil {
		return err
	}
	for _, p := range r.Problems {
		fmt.Fprintf(a.stderr, "agentgraph: %s\n", agents.Printable(p))
	}
	if n := r.ProblemCount - len(r.Problems); n > 0 {
		fmt.Fprintf(a.stderr, "agentgraph: and %s more\n", counted(n, "file"))
	}
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else {
		for _, file := range r.Files {
			fmt.Fprintf(a.stdout, "%s  (%s, %d bytes)\n", filepath.Join(f.opt.Dir, file.Path), counted(file.Rows, "row"), file.Bytes)
		}
		fmt.Fprintln(a.stderr, exportText(r))
	}
	if r.Rows == 0 || r.ProblemCount > 0 {
		return exitWith(exitNotCompleted)
	}
	return nil
}

// exportText says what became of the answers.
func exportText(r *distill.ExportReport) string {
	text := fmt.Sprintf("%s of %s", counted(r.Rows, "row"), counted(r.Answers, "answer"))
	for _, why := range r.Reasons() {
		text += fmt.Sprintf(", %d left out: %s", r.Skipped[why], why)
	}
	return text
}

// parseTime reads a day (in UTC) or a moment.
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %s: write a day as 2006-01-02, or a moment as 2006-01-02T15:04:05Z", flag, text)
}
