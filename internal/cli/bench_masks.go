package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"agentgraph/constraint"
	"agentgraph/constraint/maskbench"
)

func (a *app) benchMasksCommand() *cobra.Command {
	var enforce, formats string
	var opt maskbench.Options
	var cases bool
	cmd := &cobra.Command{
		Use:   "masks FILE.jsonl",
		Short: "How faithfully and how fast masks hold JSON Schemas, without a model",
		Long: `Each line of the file is {"name", "schema", "tests": [{"valid", "data"}]}. A
schema passes when every valid instance is taken and every invalid one is not.
Masks are computed on a vocabulary of bytes. Instances are written compactly;
one that the mask rejects is tried again with its members in schema order.
Times are microseconds. FILE may be - for stdin.`,
		Example: `
  agentgraph bench masks --enforce validate --formats assert schemas.jsonl
  agentgraph bench masks --raw --json schemas.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.Enforce, opt.Formats = constraint.Enforce(enforce), constraint.Formats(formats)
			in := io.NopCloser(a.stdin)
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				in = f
			}
			defer in.Close()
			if cases {
				enc := json.NewEncoder(a.stdout)
				opt.Case = func(c maskbench.Case) {
					if a.json {
						enc.Encode(c)
					} else {
						fmt.Fprintf(a.stdout, "%-16s %s  %s\n", c.Outcome, c.Name, c.Detail)
					}
				}
			}
			r, err := maskbench.Run(cmd.Context(), in, opt)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(r)
			}
			_, err = fmt.Fprintf(a.stdout, `schemas          %d
pass             %d
refused          %d
rejects_valid    %d
accepts_invalid  %d
compile_us       %s
mask_us          %s (%d masks)
taken when put in schema order: %d; %.1f s
`, r.Schemas, r.Pass, r.Refused, r.RejectsValid, r.AcceptsInvalid,
				timesText(r.CompileUS), timesText(r.MaskUS), r.Masks, r.Reordered, r.Seconds)
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&enforce, "enforce", "mask", "`mask` or validate")
	fl.StringVar(&formats, "formats", "mask", "`mask`, assert or ignore")
	fl.BoolVar(&opt.Raw, "raw", false, "llguidance alone: no admission, no relaxation, no second try")
	fl.BoolVar(&cases, "cases", false, "print the outcome of each schema too")
	a.jsonFlag(cmd, "print one JSON object")
	return cmd
}

func timesText(t maskbench.Times) string {
	return fmt.Sprintf("avg %.0f, p50 %.0f, p90 %.0f, p99 %.0f, max %.0f", t.Avg, t.P50, t.P90, t.P99, t.Max)
}
