package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/distill"
	"agentgraph/model"
)

type rebuildFlags struct {
	opt    distill.RebuildOptions
	format string
	prompt bool
}

func (a *app) rebuildCommand() *cobra.Command {
	var f rebuildFlags
	cmd := &cobra.Command{
		Use:   "rebuild FILE",
		Short: "The exact request behind an answer: messages, prompt, schema, sampling, tools",
		Long: `FILE is an answer, or a record in turns/. The request comes from the turn's
record; where there is none, or with --from folder, it is made anew from the
agent's system/, its schema file and the input, byte for byte as a turn would.

It is the turn's last request, the one that the answer answers: with the tool
calls before it, and with the rejected answer where one was repaired. --first
gives the turn's first one.

With --format it prints what a server of that kind would be sent.`,
		Example: `
  agentgraph rebuild mygraph/agents/rater/output/rating_0.json
  agentgraph rebuild --prompt mygraph/agents/rater/output/rating_0.json
  agentgraph rebuild --format vllm rating_0.json | curl -d @- -H 'Content-Type: application/json' http://127.0.0.1:8000/v1/chat/completions
  agentgraph rebuild --from folder --input review.txt mygraph/agents/rater/output/rating_0.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.rebuild(cmd.Context(), args[0], &f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.opt.From, "from", "", "`record` or folder; without it the record where there is one")
	fl.StringArrayVar(&f.opt.Inputs, "input", nil, "with --from folder: the `FILE` that was answered; again for each with join: all")
	fl.StringVar(&f.opt.Model, "model", "", "with --from folder: render the prompt for this `MODEL`")
	fl.BoolVar(&f.opt.First, "first", false, "the turn's first request")
	fl.StringVar(&f.format, "format", "", "print what this `SERVER` would be sent: "+strings.Join(distill.Servers(), ", "))
	fl.BoolVar(&f.prompt, "prompt", false, "print the rendered prompt and nothing else")
	cmd.MarkFlagsMutuallyExclusive("format", "prompt")
	a.jsonFlag(cmd, "print one JSON object")
	return cmd
}

func (a *app) rebuild(ctx context.Context, file string, f *rebuildFlags) error {
	if f.format != "" && !slices.Contains(distill.Servers(), f.format) {
		return fmt.Errorf("--format %s: it is one of %s", f.format, strings.Join(distill.Servers(), ", "))
	}
	if f.format == "" {
		f.opt.Open = func(spec agents.ModelSpec) (model.Model, error) { return openSpec(ctx, spec) }
	}
	f.opt.DefaultModel = defaultModel()
	if f.opt.Model != "" {
		f.opt.Model = absModel(f.opt.Model)
	}
	b, err := distill.Rebuild(ctx, file, f.opt)
	if err != nil {
		return err
	}
	switch {
	case f.prompt:
		if b.Prompt == nil {
			return fmt.Errorf("there is no prompt to print: %s", b.Note)
		}
		_, err := io.WriteString(a.stdout, *b.Prompt)
		return err
	case f.format != "":
		return a.rebuildBody(b, f.format)
	case a.json:
		return a.printJSON(b)
	}
	printRebuilt(a.stdout, b)
	return nil
}

func (a *app) rebuildBody(b *distill.Rebuilt, server string) error {
	path, body, weak, err := b.Body(server)
	if err != nil {
		return err
	}
	if weak != nil {
		warn(a.stderr, weak)
	}
	if a.json {
		out, err := json.Marshal(map[string]any{"path": path, "body": json.RawMessage(body)})
		if err != nil {
			return err
		}
		body = out
	} else {
		fmt.Fprintf(a.stderr, "POST …/%s\n", path)
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", body)
	return err
}

// printRebuilt is a request for people; texts stand as they are.
func printRebuilt(w io.Writer, b *distill.Rebuilt) {
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-9s %s\n", name, agents.Printable(text))
		}
	}
	row("from", strings.TrimSpace(b.From+" "+deref(b.TurnID)))
	row("agent", b.Agent)
	for _, in := range b.Inputs {
		row("input", in.Path)
	}
	if m := b.Model; m != nil {
		row("model", m.String()+" ("+m.Engine+")")
	}
	if c := b.Constraint; c != nil {
		row("schema", fmt.Sprintf("%s, %s, sha256 %.12s, enforce: %s", c.File, kindText(c.Kind), c.SHA256, c.Enforce))
	}
	if s, err := json.Marshal(b.Sampling); err == nil {
		row("sampling", string(s)+", "+b.Determinism)
	}
	for _, t := range b.Tools {
		row("tool", t.Name)
	}
	row("note", b.Note)
	for _, m := range b.Messages {
		fmt.Fprintf(w, "\n--- %s\n%s\n", m.Role, printableText(m.Content))
		for _, c := range m.ToolCalls {
			fmt.Fprintf(w, "%s %s\n", agents.Printable(c.Name), agents.Printable(string(c.Arguments)))
		}
	}
	if b.Prompt != nil {
		fmt.Fprintf(w, "\n--- prompt\n%s\n", printableText(*b.Prompt))
	}
}

// printableText is a text on as many lines as it has, and nothing that does
// something to a terminal.
func printableText(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = agents.Printable(l)
	}
	return strings.Join(lines, "\n")
}
