package cli

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/distill"
	"agentgraph/model"
	"agentgraph/record/store"
	"agentgraph/turn"
)

// sampledTogether is how many answers a local model decodes in one batch when
// neither the settings nor --parallel say otherwise.
const sampledTogether = 8

type sampleFlags struct {
	graph, model     string
	temp, topP, minP float64
	topK, parallel   int
	logprobs         int
	seed             uint64
	set              func(string) bool
}

func (a *app) sampleCommand() *cobra.Command {
	var f sampleFlags
	cmd := &cobra.Command{
		Use:   "sample N AGENT [INPUT…]",
		Short: "Several answers to each input, with different seeds",
		Long: `Generates N answers to each INPUT, or to each file in the agent's input folders,
several at once where the model can. They become numbered files in the agent's
output folder, each with a record of its own that has the seed and what the answer
goes back to. AGENT is a name in the graph around the working folder (or --graph),
or the path of an agent's folder; inputs lie in the graph.

N is at most 1000. A running agentgraph run is not in the way. It still gives
each input a turn of its own.

Ctrl-C keeps the answers that are whole, says how many, and leaves nothing of
the others.

Exit codes: 0 all answered, 1 some answers were cut off, invalid or refused,
2 nothing was asked, 130 cancelled.`,
		Example: `
  agentgraph sample 8 mygraph/agents/writer --temperature 0.8
  agentgraph sample 4 writer mygraph/agents/writer/input/kettle.txt --graph mygraph --seed 1 --temperature 0.7
  agentgraph sample 4 --graph mygraph writer --temperature 1 --json | jq -r .output`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.set = cmd.Flags().Changed
			return a.sample(cmd.Context(), &f, args)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.graph, "graph", "", "the graph in `DIR`")
	fl.StringVar(&f.model, "model", "", "ask this `MODEL` instead of the agent's")
	fl.Float64Var(&f.temp, "temperature", 0, "`T` above 0 instead of the agent's")
	fl.IntVar(&f.topK, "top-k", 0, "only the `K` likeliest tokens")
	fl.Float64Var(&f.topP, "top-p", 0, "only the likeliest tokens that add up to `P`")
	fl.Float64Var(&f.minP, "min-p", 0, "only tokens at least `P` times as likely as the likeliest")
	fl.IntVar(&f.logprobs, "logprobs", 0, "keep the `K` likeliest tokens at each token")
	fl.Uint64Var(&f.seed, "seed", 0, "`SEED` of the first answer; further ones count up (default: drawn)")
	fl.IntVar(&f.parallel, "parallel", 0, "`N` answers at once (default: as many as the model serves)")
	a.jsonFlag(cmd, "print an object for each answer")
	return cmd
}

// sampling changes what the flags name.
func (f *sampleFlags) sampling(s *model.Sampling) {
	for _, x := range []struct {
		flag string
		put  func()
	}{
		{"temperature", func() { s.Temperature = f.temp }},
		{"top-k", func() { s.TopK = f.topK }},
		{"top-p", func() { s.TopP = f.topP }},
		{"min-p", func() { s.MinP = f.minP }},
		{"logprobs", func() { s.Logprobs = f.logprobs }},
	} {
		if f.set(x.flag) {
			x.put()
		}
	}
}

func (a *app) sample(ctx context.Context, f *sampleFlags, args []string) error {
	n, err := strconv.Atoi(args[0])
	switch {
	case n > distill.MaxSamples: // also a number that is out of range
		return fmt.Errorf("sample %s: it gives at most %d answers to each input; sample again for more, with another --seed", args[0], distill.MaxSamples)
	case err != nil || n < 1:
		return fmt.Errorf("%q is no number of answers; sample is used as: agentgraph sample N AGENT [INPUT…]", args[0])
	case f.parallel < 0 || f.parallel > distill.MaxSampledAtOnce:
		return fmt.Errorf("--parallel %d: it is 1 to %d", f.parallel, distill.MaxSampledAtOnce)
	}
	g, ag, err := findAgent(f.graph, f.model, args[1])
	if err != nil {
		return err
	}
	if ag.Err != nil {
		return ag.Err
	}
	ms := newModels(g.ModelSpec)
	defer ms.Close()
	spec := ag.Settings.ModelSpec
	if spec.GGUF != "" && spec.Parallel == 0 {
		spec.Parallel = sampledTogether
		if f.parallel > 0 {
			spec.Parallel = f.parallel
		}
	}
	m, err := ms.get(ctx, spec)
	if err != nil {
		return err
	}
	audit := store.OpenAudit(filepath.Join(g.Root, "log"))
	defer audit.Close()
	opt := distill.SampleOptions{Graph: g, Agent: ag, Inputs: args[2:], N: n, Model: m, Sampling: f.sampling, Parallel: f.parallel, Audit: a.appendTo(audit)}
	if f.set("seed") {
		opt.Seed = &f.seed
	}
	rep, err := distill.Sample(ctx, opt, func(s *distill.Sampled) error {
		if a.json {
			return a.printJSON(s)
		}
		if s.Error != nil {
			fmt.Fprintf(a.stderr, "agentgraph: %s: %s\n", agents.Printable(s.Input), agents.Printable(recordErrorText(s.Error)))
			return nil
		}
		_, err := fmt.Fprintf(a.stdout, "%s  %s → %s  (seed %d)\n", ag.Name, agents.Printable(path.Base(s.Input)), agents.Printable(s.Output), *s.Seed)
		return err
	})
	if err != nil {
		if rep != nil { // also with --json: there is no other place that says it
			fmt.Fprintf(a.stderr, "%d of %s to %s\n", rep.Completed, counted(rep.Wanted, "answer"), counted(rep.Inputs, "input"))
		}
		return err
	}
	if !a.json {
		fmt.Fprintf(a.stderr, "%s to %s\n", counted(rep.Completed, "answer"), counted(rep.Inputs, "input"))
	}
	if rep.Failed > 0 {
		return exitWith(exitNotCompleted)
	}
	return nil
}

// appendTo appends events to the log, and says once when that fails.
func (a *app) appendTo(log *store.Audit) func(turn.Event) {
	var once sync.Once
	return func(e turn.Event) {
		if err := log.Append(e); err != nil {
			once.Do(func() { warn(a.stderr, fmt.Errorf("the audit log cannot be written: %w", err)) })
		}
	}
}
