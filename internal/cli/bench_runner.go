package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"agentgraph/internal/bench"
)

func (a *app) benchRunnerCommand() *cobra.Command {
	var opt bench.RunnerOptions
	cmd := &cobra.Command{
		Use:   "runner",
		Short: "How fast files become turns and answers, without a model",
		Long: `Makes graphs in a temporary folder and works them with a model that answers at
once; every publish is synced to disk. Prints the time from a file's rename into
place to the start of its turn, durable turns a second, and what a start costs
with many agents and old answers.`,
		Example: `
  agentgraph bench runner
  agentgraph bench runner --dir /mnt/disk --old 0,10000,100000 --agents 1000 --answers 100 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := os.MkdirTemp(opt.Dir, "agentgraph-bench-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			opt.Dir = dir
			opt.Note = func(s string) { fmt.Fprintf(a.stderr, "agentgraph: %s\n", s) }
			f, err := bench.Runner(cmd.Context(), opt)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(f)
			}
			for _, l := range f.Latency {
				fmt.Fprintf(a.stdout, "drop to start   %7d old answers: p50 %.1f ms, p99 %.1f ms, max %.1f ms; to the answer: p50 %.1f ms, p99 %.1f ms\n",
					l.Old, l.P50, l.P99, l.Max, l.AnswerP50, l.AnswerP99)
			}
			for _, t := range f.Throughput {
				fmt.Fprintf(a.stdout, "durable turns   %d agents, concurrency %d: %.0f turns/s (%d in %.2f s)\n",
					t.Agents, t.Concurrency, t.PerSecond, t.Turns, t.Seconds)
			}
			if s := f.StartUp; s != nil {
				fmt.Fprintf(a.stdout, "start           %d agents, %d old answers each: ready in %.2f s (%.2f s with the ledger rebuilt), %.0f MB, old inputs looked at after %.1f s, then idle CPU %.2f%%\n",
					s.Agents, s.Answers, s.ReadySeconds, s.RebuildSeconds, s.MemoryMB, s.SettledSeconds, s.IdleCPUPercent)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&opt.Dir, "dir", "", "make the graphs in `DIR`, on the disk to measure (default: the temporary folder)")
	fl.IntVar(&opt.Turns, "turns", 2000, "turns of each throughput figure")
	fl.IntVar(&opt.Drops, "drops", 200, "inputs of each latency figure")
	fl.IntSliceVar(&opt.Old, "old", []int{0, 1000, 10000}, "old answers, one latency figure each")
	fl.IntVar(&opt.Agents, "agents", 100, "agents of the start-up figure")
	fl.IntVar(&opt.Answers, "answers", 100, "old answers of each of these agents")
	a.jsonFlag(cmd, "print one JSON object")
	return cmd
}
