package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"agentgraph/internal/bench"
)

func (a *app) benchEngineCommand() *cobra.Command {
	opt := bench.EngineOptions{}
	var name string
	var parallel int
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Whether the runner keeps a model busy, and every agent gets its share",
		Long: `Makes a graph in a temporary folder whose inputs are all there, works it with
the model, and prints in what part of the time the model had work, and how far
the agents were apart when half of the turns were done.`,
		Example: `
  agentgraph bench engine
  agentgraph bench engine --model big.gguf --pending 200 --parallel 4 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.Pending < 2 || opt.Agents < 1 || opt.Concurrency < 1 || parallel < 1 || opt.MaxTokens < 4 {
				return fmt.Errorf("--pending takes 2 or more, --max-output-tokens 4 or more, the other numbers 1 or more")
			}
			if name == "" {
				name = defaultModel()
			}
			spec, err := outsideModel(absModel(name))
			if err != nil {
				return err
			}
			spec.Parallel, spec.Context = parallel, 1024
			m, err := openSpec(cmd.Context(), spec)
			if err != nil {
				return err
			}
			defer m.Close()
			if opt.Dir, err = os.MkdirTemp("", "agentgraph-bench-"); err != nil {
				return err
			}
			defer os.RemoveAll(opt.Dir)
			f, err := bench.Engine(cmd.Context(), m, opt)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(f)
			}
			_, err = fmt.Fprintf(a.stdout, "%d turns in %.2f s: %.1f turns/s; the model had work %.2f%% of the time and all the calls it takes %.2f%%; at half time the agents had done %d to %d turns; longest wait in the engine %.2f s\n",
				f.Turns, f.Seconds, f.PerSecond, 100*f.Busy, 100*f.Full, f.Least, f.Most, f.WaitSeconds)
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&name, "model", "", "a `MODEL`: a .gguf path or script:FILE")
	fl.IntVar(&parallel, "parallel", 8, "answers of the model at once")
	fl.IntVar(&opt.Pending, "pending", 1000, "inputs that wait at the start")
	fl.IntVar(&opt.Agents, "agents", 10, "agents they are spread over")
	fl.IntVar(&opt.Concurrency, "concurrency", 2, "turns at once of each agent")
	fl.IntVar(&opt.MaxTokens, "max-output-tokens", 16, "cut each answer off after `N` tokens")
	a.jsonFlag(cmd, "print one JSON object")
	return cmd
}
