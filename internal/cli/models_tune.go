package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/internal/bench"
	"agentgraph/model/local"
)

// tuneOptions are what models tune is asked for.
type tuneOptions struct {
	layouts  []string
	parallel int
	rounds   int
}

// tuned is one layout: how fast it is, and how far its answers are the
// original's.
type tuned struct {
	Layout           string           `json:"layout"` // "as it is" for the original
	Bytes            int64            `json:"bytes"`
	AnswersPerSecond float64          `json:"answers_per_second"`
	TokensPerSecond  float64          `json:"tokens_per_second"`
	Valid            int              `json:"valid"`
	Agreement        *bench.Agreement `json:"agreement,omitempty"` // with the original
	Error            string           `json:"error,omitempty"`
	answers          []bench.Answer
	path             string
}

func (a *app) modelsTuneCommand() *cobra.Command {
	var opt tuneOptions
	cmd := &cobra.Command{
		Use:   "tune MODEL WORKLOAD.json",
		Short: "Find the layout of a model's weights that is fastest here",
		Long: `Writes the weights of a GGUF model in other layouts, answers the workload with
each, and prints how fast each is beside how far its answers are those of the
original: how many are the same to the byte, and what part of an answer comes
before the first difference. The fastest that is faster than the original is
kept in the cache folder; nothing uses it until the settings name it.

MODEL is a name from models: of the graph in this folder, or a .gguf path. The
layouts are made from the weights as they are: what those have lost stays lost.`,
		Example: `
  agentgraph models tune small bench/answer-workload.json
  agentgraph models tune big.gguf work.json --layouts Q4_0,Q8_0 --parallel 8`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.parallel < 1 || opt.rounds < 1 {
				return fmt.Errorf("--parallel and --rounds take a number of 1 or more")
			}
			w, err := bench.ReadWorkload(args[1])
			if err != nil {
				return err
			}
			spec, err := tunable(args[0])
			if err != nil {
				return err
			}
			return a.tune(cmd.Context(), spec, w, opt)
		},
	}
	cmd.Flags().StringSliceVar(&opt.layouts, "layouts", layoutNames(), "the `LAYOUTS` to try")
	cmd.Flags().IntVar(&opt.parallel, "parallel", 1, "answer `N` inputs at once")
	cmd.Flags().IntVar(&opt.rounds, "rounds", 3, "runs of each layout; the fastest counts")
	a.jsonFlag(cmd, "print one JSON object")
	return cmd
}

// tunable resolves a model that has weights here.
func tunable(name string) (agents.ModelSpec, error) {
	if g, err := loadGraph(".", ""); err == nil {
		if spec, ok := g.Models[name]; ok {
			if spec.GGUF == "" {
				return spec, fmt.Errorf("model %s has no weights here: only models with gguf: can be tuned", name)
			}
			return spec, checkGGUF(spec.GGUF)
		}
	}
	spec, err := outsideModel(absModel(name))
	if err == nil && spec.GGUF == "" {
		err = fmt.Errorf("%s has no weights: only .gguf models can be tuned", name)
	}
	if err == nil {
		err = checkGGUF(spec.GGUF)
	}
	return spec, err
}

func (a *app) tune(ctx context.Context, spec agents.ModelSpec, w *bench.Workload, opt tuneOptions) error {
	var layouts []local.Layout
	for _, name := range opt.layouts {
		l, ok := layoutNamed(name)
		if !ok {
			return fmt.Errorf("--layouts: there is no layout %q; take from %s", name, strings.Join(layoutNames(), ", "))
		}
		layouts = append(layouts, l)
	}
	dir := filepath.Join(cacheDir(), "tuned")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, ".work-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	note := func(s string) { fmt.Fprintf(a.stderr, "agentgraph: %s\n", agents.Printable(s)) }
	note("measuring " + filepath.Base(spec.GGUF) + " as it is")
	original, err := measureLayout(ctx, spec, spec.GGUF, w, opt)
	if err != nil {
		return err
	}
	original.Layout = "as it is"
	rows, best := []*tuned{original}, original
	for _, l := range layouts {
		note("measuring " + l.Name)
		row := &tuned{}
		path := filepath.Join(work, l.Name+".gguf")
		err := local.Requantize(spec.GGUF, path, l, spec.Threads)
		if err == nil {
			row, err = measureLayout(ctx, spec, path, w, opt)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			row = &tuned{Error: err.Error()}
		} else {
			agreement := bench.Agree(original.answers, row.answers)
			row.Agreement = &agreement
		}
		row.Layout = l.Name
		rows = append(rows, row)
		switch {
		case row.Error == "" && !sameWeights(original, row) && row.AnswersPerSecond > best.AnswersPerSecond:
			if best != original {
				os.Remove(best.path)
			}
			best = row
		default:
			os.Remove(path)
		}
	}
	kept := ""
	if best != original {
		kept = filepath.Join(dir, strings.TrimSuffix(filepath.Base(spec.GGUF), ".gguf")+"."+best.Layout+".gguf")
		if err := os.Rename(best.path, kept); err != nil {
			return err
		}
	}
	return a.tuneTable(rows, best, kept)
}

// sameWeights is true for the layout that the original has: what differs in
// speed is then the machine's mood.
func sameWeights(original, row *tuned) bool {
	g, size := row.Agreement, original.Bytes-row.Bytes
	return g.Same == g.Answers && max(size, -size) < original.Bytes/1000
}

func layoutNames() (out []string) {
	for _, l := range local.Layouts {
		out = append(out, l.Name)
	}
	return out
}

func layoutNamed(name string) (local.Layout, bool) {
	for _, l := range local.Layouts {
		if strings.EqualFold(l.Name, name) {
			return l, true
		}
	}
	return local.Layout{}, false
}

// measureLayout answers the workload with the weights at path, a few times:
// the answers of the first run, the speed of the fastest.
func measureLayout(ctx context.Context, spec agents.ModelSpec, path string, w *bench.Workload, opt tuneOptions) (*tuned, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingModel(path)
	} else if err != nil {
		return nil, err
	}
	spec.GGUF, spec.IdleUnload, spec.Parallel = path, nil, opt.parallel
	if spec.Context == 0 {
		spec.Context = 2048
	}
	row := &tuned{Bytes: info.Size(), path: path}
	for round := range opt.rounds {
		// Opened anew, so that no run finds the prompts of the one before.
		m, err := openSpec(ctx, spec)
		if err != nil {
			return nil, err
		}
		run := bench.Options{Parallel: opt.parallel}
		if round == 0 {
			run.Each = func(r bench.Answer) { row.answers = append(row.answers, r) }
		}
		f, err := bench.Answers(ctx, m, w, run)
		m.Close()
		if err != nil {
			return nil, err
		}
		if round == 0 {
			row.Valid = f.Valid
		}
		if f.AnswersPerSecond > row.AnswersPerSecond {
			row.AnswersPerSecond, row.TokensPerSecond = f.AnswersPerSecond, f.TokensPerSecond
		}
	}
	return row, nil
}

func (a *app) tuneTable(rows []*tuned, best *tuned, kept string) error {
	if a.json {
		return a.printJSON(struct {
			Layouts []*tuned `json:"layouts"`
			Best    string   `json:"best"`
			Kept    string   `json:"kept,omitempty"`
		}{rows, best.Layout, kept})
	}
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LAYOUT\tMB\tANSWERS/S\tTOKENS/S\tVALID\tSAME ANSWERS\tALIKE")
	for _, r := range rows {
		if r.Error != "" {
			fmt.Fprintf(t, "%s\t%s\n", r.Layout, agents.Printable(r.Error))
			continue
		}
		same, alike := "–", "–"
		if g := r.Agreement; g != nil {
			same, alike = fmt.Sprintf("%d of %d", g.Same, g.Answers), fmt.Sprintf("%.0f%%", 100*g.Alike)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%.1f\t%d\t%s\t%s\n", r.Layout, float64(r.Bytes)/1e6, r.AnswersPerSecond, r.TokensPerSecond, r.Valid, same, alike)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if kept == "" {
		_, err := fmt.Fprintln(a.stdout, "No layout is faster than the file as it is; nothing was kept.")
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%s is kept, %.2f times as fast. Its answers differ from the original's as the table says. To use it, write in models:\n  gguf: %s\n",
		best.Layout, best.AnswersPerSecond/rows[0].AnswersPerSecond, agents.Printable(kept))
	return err
}
