package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/internal/bench"
	"agentgraph/model"
)

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure this build on this machine",
		Example: `  agentgraph bench answers bench/answer-workload.json`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.benchAnswersCommand(), a.benchMasksCommand(), a.benchRunnerCommand(), a.benchEngineCommand())
	return cmd
}

func (a *app) benchAnswersCommand() *cobra.Command {
	var name string
	var opt bench.Options
	var contextTokens, threads int
	cmd := &cobra.Command{
		Use:   "answers WORKLOAD.json",
		Short: "How fast a model answers",
		Long: `Answers every input of the workload once, greedily, and prints a line for each
and a closing line: seconds, tokens, tokens the grammar forced, tokens decoded
before they were chosen, time in prefill, decode, mask and sampling, answers that
are valid, answers a second. It sends the workload's system and user messages and
no schema paragraph.

WORKLOAD.json is {"tasks": [{"name", "system", "inputs": [...], "schema"}]}.`,
		Example: `
  agentgraph bench answers bench/answer-workload.json
  agentgraph bench answers --model big.gguf --parallel 8 --json bench/answer-workload.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.Parallel < 1 {
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
			spec.Parallel, spec.Context, spec.Threads = opt.Parallel, contextTokens, threads
			return a.benchAnswers(cmd.Context(), spec, w, opt)
		},
	}
	cmd.Flags().StringVar(&name, "model", "", "a `MODEL`: a .gguf path or script:FILE")
	cmd.Flags().IntVar(&opt.Parallel, "parallel", 1, "answer `N` inputs at once")
	cmd.Flags().IntVar(&contextTokens, "context", 2048, "`TOKENS` of prompt and answer")
	cmd.Flags().IntVar(&threads, "threads", 0, "CPU threads (default: physical cores)")
	cmd.Flags().IntVar(&opt.MaxTokens, "max-output-tokens", 200, "cut each answer off after `N` tokens")
	cmd.Flags().BoolVar(&opt.Free, "free", false, "without the schemas, for comparison")
	cmd.Flags().BoolVar(&opt.Solo, "solo", false, "each answer alone, nothing reused")
	a.jsonFlag(cmd, "print JSON: one object per answer and one in all")
	return cmd
}

func (a *app) benchAnswers(ctx context.Context, spec agents.ModelSpec, w *bench.Workload, opt bench.Options) error {
	m, err := openSpec(ctx, spec)
	if err != nil {
		return err
	}
	defer m.Close()
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	opt.Each = func(r bench.Answer) {
		if a.json {
			enc.Encode(r)
			return
		}
		state := string(r.Finish)
		if r.Valid != nil {
			state = "valid"
			if !*r.Valid {
				state = "not valid"
			}
			if r.Finish == model.Length {
				state = "truncated"
			}
		}
		fmt.Fprintf(a.stdout, "%-14s %6.3f s, first token %6.1f ms, %3d tokens (%d forced), %s: %s\n",
			r.Task, r.Seconds, r.FirstTokenMS, r.Tokens, r.Forced, state, cutTo(strings.ReplaceAll(r.Text, "\n", " "), 60))
	}
	f, err := bench.Answers(ctx, m, w, opt)
	if err != nil {
		return err
	}
	if a.json {
		return enc.Encode(f)
	}
	work := f.PrefillSeconds + f.DecodeSeconds + f.MaskSeconds + f.SampleSeconds
	share := func(part float64) string {
		if work == 0 {
			return fmt.Sprintf("%.3f s", part)
		}
		return fmt.Sprintf("%.3f s (%.1f%%)", part, 100*part/work)
	}
	_, err = fmt.Fprintf(a.stdout, `%s: %s, %d at a time
%d answers in %.2f s: %.3f answers/s, %.1f tokens/s; %d valid, %d truncated
%d prompt tokens (%d reused), %d answer tokens (%d forced, %d drafted), first token after %.1f ms on average
prefill %s, decode %s, mask %s, sampling %s; compiling schemas %.3f s, validation %.3f s
`, f.Engine, f.Model, f.Parallel,
		f.Answers, f.Seconds, f.AnswersPerSecond, f.TokensPerSecond, f.Valid, f.Truncated,
		f.Prompt, f.Reused, f.Tokens, f.Forced, f.Drafted, f.FirstTokenMS,
		share(f.PrefillSeconds), share(f.DecodeSeconds), share(f.MaskSeconds), share(f.SampleSeconds),
		f.CompileSeconds, f.ValidateSeconds)
	return err
}
