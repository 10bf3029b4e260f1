package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/distill"
	"agentgraph/internal/newfile"
	"agentgraph/model"
)

type replayFlags struct {
	agents   []string
	model    string
	script   string
	limit    int
	parallel int
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [DIR | ANSWER…]",
		Short: "Ask for recorded answers again, and compare",
		Long: `Sends recorded requests again, with the same messages, schema, sampling and seed,
and says which answers are the same. An answer that was made alone ("determinism:
solo") must be the same on the same model, build and number of threads; of others
the agreement is reported. Of a turn that called tools only the last request is
sent, with the recorded results: no tool runs. Nothing is written to the graph.

With --model another model is asked: the answers that differ stand below each
other, and each member of JSON answers has its own agreement.

With --script no model is asked: the recorded answers become a file for a scripted
model, which gives each recorded request its recorded answer.

Exit codes: 0 all that must be the same is the same; 1 something is not, or got no
answer; 2 nothing was asked.`,
		Example: `
  agentgraph replay mygraph
  agentgraph replay --model big.gguf mygraph
  agentgraph replay --model big.gguf mygraph/agents/rater/output/rating_0.json
  agentgraph replay --script answers.yaml mygraph && agentgraph run --once --model script:answers.yaml copy`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.script != "" {
				return a.replayScript(cmd.Context(), &f, args)
			}
			return a.replay(cmd.Context(), &f, args)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.agents, "agent", nil, "only answers of `AGENT`; may be repeated")
	fl.StringVar(&f.model, "model", "", "ask this `MODEL` instead of the agent's: a name from models:, a .gguf path, or script:FILE")
	fl.IntVar(&f.limit, "limit", 0, "the first `N` answers only")
	fl.IntVar(&f.parallel, "parallel", 4, "ask for `N` answers at once, besides those made alone")
	fl.StringVar(&f.script, "script", "", "write the recorded answers to a `FILE` for a scripted model")
	a.jsonFlag(cmd, "print an object for each answer, then one with the summary")
	return cmd
}

// answersOf reads the arguments: a folder, or answers of one graph.
func (f *replayFlags) answersOf(args []string) (dir string, opt distill.ReplayOptions, err error) {
	opt = distill.ReplayOptions{Agents: f.agents, Limit: f.limit, Parallel: f.parallel}
	if f.limit < 0 || f.parallel < 1 {
		return "", opt, errors.New("--limit takes 0 or more, --parallel 1 or more")
	}
	dir = dirArg(args)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		if len(args) > 1 {
			return "", opt, errors.New("replay takes one folder, or answers of one graph")
		}
		return dir, opt, nil
	}
	dir = ""
	for _, file := range args {
		if _, err := os.Stat(file); err != nil {
			return "", opt, fileError("the answer", file, err)
		}
		graph := graphOf(file)
		if graph == "" || dir != "" && graph != dir {
			return "", opt, fmt.Errorf("%s lies in no graph, or in another one than the answer before it", file)
		}
		dir = graph
		real, err := filepath.EvalSymlinks(filepath.Dir(file))
		if err != nil {
			return "", opt, err
		}
		if real, err = filepath.Abs(real); err != nil {
			return "", opt, err
		}
		opt.Paths = append(opt.Paths, agents.Rel(graph, filepath.Join(real, filepath.Base(file))))
	}
	return dir, opt, nil
}

func (a *app) replay(ctx context.Context, f *replayFlags, args []string) error {
	dir, opt, err := f.answersOf(args)
	if err != nil {
		return err
	}
	g, err := loadGraph(dir, f.model)
	if err != nil {
		return err
	}
	ms := newModels(g.ModelSpec)
	defer ms.Close()
	opt.Model = func(ctx context.Context, agent string, _ model.Identity) (model.Model, error) {
		name := g.Defaults.Model
		if ag := g.Agent(agent); ag != nil {
			name = ag.Settings.ModelSpec.Name
		}
		if name == "" {
			return nil, errors.New("no model is set; name one with --model")
		}
		return ms.Model(ctx, name)
	}
	opt.Limits = func(agent string) constraint.Limits {
		if ag := g.Agent(agent); ag != nil {
			return ag.Settings.Constraint.Limits
		}
		return constraint.Standard
	}
	rep, err := distill.Replay(ctx, dir, opt, a.printReplayed)
	if err != nil {
		return err
	}
	if rep.Answers == 0 {
		return fmt.Errorf("no answer was asked for again: %s", nothingToReplay(rep.Skipped, opt))
	}
	if a.json {
		if err := a.printJSON(struct {
			Summary *distill.ReplayReport `json:"summary"`
		}{rep}); err != nil {
			return err
		}
	} else {
		printReplayReport(a.stdout, rep)
	}
	if !rep.Kept() {
		return exitWith(exitNotCompleted)
	}
	return nil
}

func nothingToReplay(skipped map[string]int, opt distill.ReplayOptions) string {
	var why []string
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		why = append(why, fmt.Sprintf("%d left out because %s", skipped[name], name))
	}
	switch {
	case len(why) > 0:
		return strings.Join(why, ", ")
	case len(opt.Paths) > 0:
		return "none of the files is an answer in an agent's output folder"
	}
	return "the output folders are empty"
}

// printReplayed is one answer, its two texts below each other where they
// differ.
func (a *app) printReplayed(r *distill.Replayed, p *distill.Problem) error {
	if p != nil {
		warn(a.stderr, p)
		return nil
	}
	if a.json {
		return a.printJSON(r)
	}
	label := agents.Printable(r.Path)
	switch {
	case r.Error != "":
		_, err := fmt.Fprintf(a.stdout, "%s  no answer: %s\n", label, agents.Printable(r.Error))
		return err
	case r.Identical:
		_, err := fmt.Fprintf(a.stdout, "%s  same\n", label)
		return err
	}
	note := "differs"
	if r.Promised {
		note = "differs, and was made alone: it should be the same"
	}
	if r.SamePrompt != nil && !*r.SamePrompt && r.SameModel {
		note += "; the chat template made another prompt of the messages"
	}
	if r.Valid != nil && !*r.Valid {
		note += "; the new one does not keep its promise"
	}
	_, err := fmt.Fprintf(a.stdout, "%s  %s\n  recorded  %s\n  %-8s  %s\n", label, note, oneLine(r.Recorded), "now", oneLine(r.Answer))
	return err
}

// oneLine shows an answer in one line of a table.
func oneLine(text string) string {
	const most = 200
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > most {
		runes = append(runes[:most], '…')
	}
	return agents.Printable(string(runes))
}

func printReplayReport(w io.Writer, r *distill.ReplayReport) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, a distill.Agreement) {
		if a.Compared > 0 {
			fmt.Fprintf(t, "%s\t%d of %d\t%.0f%%\n", agents.Printable(name), a.Equal, a.Compared, 100*float64(a.Equal)/float64(a.Compared))
		}
	}
	row("same, as promised", r.Promised)
	row("same", r.Others)
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		label := name
		if label == "" {
			label = "(the whole value)"
		}
		row("  "+label, r.Fields[name])
	}
	if r.Invalid > 0 {
		fmt.Fprintf(t, "invalid\t%d\n", r.Invalid)
	}
	if r.Failed > 0 {
		fmt.Fprintf(t, "without an answer\t%d\n", r.Failed)
	}
	t.Flush()
}

func scriptExists(file string) error {
	return fmt.Errorf("%s is there already; nothing is overwritten: name a new file", file)
}

// replayScript writes a script file that nobody had.
func (a *app) replayScript(ctx context.Context, f *replayFlags, args []string) error {
	if f.model != "" {
		return errors.New("--script asks no model; leave --model out")
	}
	dir, opt, err := f.answersOf(args)
	if err != nil {
		return err
	}
	out, err := newfile.Create(f.script)
	if errors.Is(err, os.ErrExist) {
		return scriptExists(f.script)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be made: %w; name a file in a folder that this user may write to", f.script, osCause(err))
	}
	defer out.Discard()
	rep, err := distill.Script(ctx, dir, opt, out, func(p *distill.Problem) error {
		warn(a.stderr, p)
		return nil
	})
	if err != nil {
		return err
	}
	if rep.Replies == 0 {
		return fmt.Errorf("no answer was recorded: %s", nothingToReplay(rep.Skipped, opt))
	}
	switch err := out.Commit(); {
	case errors.Is(err, os.ErrExist): // since it was begun
		return scriptExists(f.script)
	case err != nil:
		return fmt.Errorf("%s cannot be made: %w", f.script, osCause(err))
	}
	if a.json {
		return a.printJSON(rep)
	}
	fmt.Fprintf(a.stderr, "%s of %s; use it with --model script:%s\n", counted(rep.Replies, "answer"), counted(rep.Turns, "turn"), f.script)
	return nil
}
