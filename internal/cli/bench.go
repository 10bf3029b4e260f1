package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/internal/bench"
)

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure this build on this machine",
		Example: `  agentgraph bench answers bench/answer-workload.json`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.benchAnswersCommand())
	return cmd
}

func (a *app) benchAnswersCommand() *cobra.Command {
	var name string
	var parallel, contextTokens, threads int
	cmd := &cobra.Command{
		Use:   "answers WORKLOAD.json",
		Short: "How fast a model answers",
		Long: `Answers every input of the workload once, greedily, and prints a line for each
and a closing line: seconds, tokens, tokens the grammar forced, time in prefill,
decode, mask and sampling, answers that are valid, answers a second. It sends
the workload's system and user messages and no schema paragraph.

WORKLOAD.json is {"tasks": [{"name", "system", "inputs": [...], "schema"}]}.`,
		Example: `
  agentgraph bench answers bench/answer-workload.json
  agentgraph bench answers --model big.gguf --parallel 8 --json bench/answer-workload.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if parallel < 1 {
				return fmt.Errorf("--parallel: give a number of 1 or more")
			}
			w, err := bench.ReadWorkload(args[0])
			if err != nil {
				return err
			}
			if name == "" {
				name = defaultModel()
			}
			spec, err := outsideModel(absModel(name))
			if err != nil {
				return err
			}
			spec.Parallel, spec.Context, spec.Threads = parallel, contextTokens, threads
			return a.benchAnswers(cmd.Context(), spec, w, parallel)
		},
	}
	cmd.Flags().StringVar(&name, "model", "", "a `MODEL`: a .gguf path or script:FILE")
	cmd.Flags().IntVar(&parallel, "parallel", 1, "answer `N` inputs at once")
	cmd.Flags().IntVar(&contextTokens, "context", 2048, "`TOKENS` of prompt and answer")
	cmd.Flags().IntVar(&threads, "threads", 0, "CPU threads (default: physical cores)")
	a.jsonFlag(cmd, "print JSON: one object per answer and one in all")
	return cmd
}

func (a *app) benchAnswers(ctx context.Context, spec agents.ModelSpec, w *bench.Workload, parallel int) error {
	m, err := openSpec(spec)
	if err != nil {
		return err
	}
	defer m.Close()
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	sum, err := bench.RunAnswers(ctx, m, w, parallel, func(r bench.Answer) {
		if a.json {
			enc.Encode(r)
			return
		}
		state := "valid"
		switch {
		case r.Error != "":
			state = "failed: " + r.Error
		case r.Truncated:
			state = "truncated"
		case !r.Valid:
			state = "invalid"
		}
		fmt.Fprintf(a.stdout, "%-14s %6.3f s  first token %6.3f s  %3d tokens (%d forced)  %s  %s\n",
			r.Task, r.Seconds, r.FirstToken, r.Tokens, r.ForcedTokens, state, cutTo(r.Text, 60))
	})
	if err != nil {
		return err
	}
	if a.json {
		return enc.Encode(sum)
	}
	work := sum.Prefill + sum.Decode + sum.Mask + sum.Sample
	share := func(part float64) string {
		if work == 0 {
			return "?"
		}
		return fmt.Sprintf("%.1f%%", 100*part/work)
	}
	fmt.Fprintf(a.stdout, `%s on %s, %d at a time
%d answers: %d valid, %d truncated, %d failed
%.2f s: %.3f answers/s, %.1f tokens/s
%d prompt tokens (%d reused), %d answer tokens (%d forced)
prefill %.2f s (%s), decode %.2f s (%s), mask %.3f s (%s), sampling %.3f s (%s)
`, sum.Model, sum.Engine, sum.Parallel,
		sum.Answers, sum.Valid, sum.Truncated, sum.Failed,
		sum.Seconds, sum.AnswersPerSecond, sum.TokensPerSecond,
		sum.PromptTokens, sum.ReusedTokens, sum.Tokens, sum.ForcedTokens,
		sum.Prefill, share(sum.Prefill), sum.Decode, share(sum.Decode), sum.Mask, share(sum.Mask), sum.Sample, share(sum.Sample))
	if sum.Failed > 0 {
		return exitWith(exitNotCompleted)
	}
	return nil
}
