package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/serve"
	"agentgraph/turn"
)

type respondFlags struct {
	spec      specFlags
	graph     string
	model     string
	system    string
	file      string
	enforce   string
	formats   string
	maxTokens int
	timeout   time.Duration
	seed      uint64
	temp      float64
	logprobs  int
	repair    bool
	solo      bool
	noSchema  bool
	thread    string
	tools     []string
	noTools   bool
	history   int
}

func (a *app) respondCommand() *cobra.Command {
	var f respondFlags
	cmd := &cobra.Command{
		Use:   "respond [PROMPT…]",
		Short: "One reply on stdout, free or held to a schema",
		Long: `Asks a model once. The prompt is the arguments, or --file, or stdin. Stdout is
exactly the answer and a newline, so that it can be piped on; a free reply is
streamed, a shaped one is printed when it is whole and valid.

The model is --model, else the graph's default when run inside a graph, else
AGENTGRAPH_MODEL, else the small model that "make model" fetched.

Exit codes: 0 answered, 1 the model's answer was cut off or invalid, 2 the
arguments or the schema were refused, 130 cancelled.`,
		Example: `
  agentgraph respond "Name a river in France."
  agentgraph respond --choice positive,negative "I love it"
  agentgraph respond --regex '[0-9]{4}-[0-9]{2}-[0-9]{2}' "When did the Berlin Wall fall?"
  agentgraph respond --schema '{"type":"object","properties":{"city":{"type":"string","maxLength":40}},"required":["city"],"additionalProperties":false}' "Paris is lovely"
  agentgraph respond --schema rating.json --file review.txt | jq .rating`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.respond(cmd.Context(), cmd, &f, args)
		},
	}
	f.spec.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.system, "system", "", "`TEXT` of the system message")
	fl.StringVar(&f.model, "model", "", "a `MODEL`: a name from models:, a .gguf path, or script:FILE")
	fl.StringVar(&f.graph, "graph", "", "take models and defaults from the graph in `DIR` (default: the graph around the working folder)")
	fl.StringVar(&f.file, "file", "", "read the prompt from `FILE`")
	fl.StringVar(&f.enforce, "enforce", "", "`mask` refuses what cannot be held while generating, validate lets validation decide it")
	fl.StringVar(&f.formats, "formats", "", "what JSON Schema's format does: `mask`, assert or ignore")
	fl.IntVar(&f.maxTokens, "max-output-tokens", 0, "cut the answer off after `N` tokens")
	fl.DurationVar(&f.timeout, "timeout", 0, "give up after this `TIME`, e.g. 30s (default 10m)")
	fl.Uint64Var(&f.seed, "seed", 0, "`SEED` of a sampled answer, to repeat it")
	fl.Float64Var(&f.temp, "temperature", 0, "`T` above 0 samples; 0 always takes the likeliest token")
	fl.IntVar(&f.logprobs, "logprobs", 0, "with --json: keep the `K` likeliest tokens at each token, with their log probabilities")
	fl.BoolVar(&f.repair, "repair", false, "ask once more when the answer is invalid, saying where")
	fl.BoolVar(&f.solo, "solo", false, "the same answer every time: alone in the batch, nothing reused")
	fl.BoolVar(&f.noSchema, "no-schema-in-prompt", false, "hold the answer to the schema without showing it to the model")
	fl.StringArrayVar(&f.tools, "tool", nil, "let the model call `TOOL`: one of the graph's tools:, a built-in, or a program; may be repeated")
	fl.BoolVar(&f.noTools, "no-tools", false, "let the model call none of the graph's tools:")
	fl.StringVar(&f.thread, "thread", "", "go on with the conversation `NAME`; it keeps questions and answers, never a schema")
	fl.IntVar(&f.history, "history", 0, "with --thread: show the model only the last `N` exchanges (default: all)")
	a.jsonFlag(cmd, "print the whole turn record instead of the answer")
	return cmd
}

func (a *app) respond(ctx context.Context, cmd *cobra.Command, f *respondFlags, args []string) error {
	call, err := a.respondCall(cmd, f, args)
	if err != nil {
		return a.refuseArguments(err)
	}
	svc, done, err := a.service(cmp.Or(f.graph, graphAround(workingDir())), agents.LoadOptions{DefaultModel: defaultModel()})
	if err != nil {
		return a.refuseArguments(err)
	}
	defer done()
	live := newLive(a.stderr)
	call.Approver = a.approver()
	var streams bool
	label := "respond"
	call.Started = func(s serve.Started) {
		streams, label = !s.Shaped && !a.json, filepath.Base(s.Model)
	}
	var streamed strings.Builder
	call.Progress = func(p model.Progress) {
		if streams {
			streamed.WriteString(p.Text)
			io.WriteString(a.stdout, p.Text)
			return
		}
		live.update("respond", label, p.Tokens)
	}
	rec, err := svc.Respond(ctx, *call)
	live.done("respond")
	var wrong *serve.ArgumentError
	switch {
	case errors.As(err, &wrong):
		return a.refuseArguments(flagError(wrong))
	case ctx.Err() != nil && rec == nil:
		return ctx.Err()
	case err != nil:
		return a.refuseArguments(err)
	}
	return a.printResponse(rec, streams, streamed.String())
}

// service is what answers calls here, with a graph or, for "", without; done
// ends it.
func (a *app) service(graph string, load agents.LoadOptions) (svc *serve.Service, done func(), err error) {
	ms := newModels(func(name string) (agents.ModelSpec, error) { return svc.ModelSpec(name) })
	events := a.newEventPrinter()
	events.stdout, events.json, events.quiet = a.stderr, nil, true // stdout belongs to answers and protocols
	svc, err = serve.New(serve.Config{
		Graph: graph, Load: load, Models: ms, Find: outsideModel, StateDir: stateDir(), Dir: workingDir(),
		Warn: func(err error) { warn(a.stderr, err) }, Events: events.print,
	})
	if err != nil {
		ms.Close()
		return nil, nil, err
	}
	return svc, func() { svc.Close(); ms.Close() }, nil
}

// flagError names an argument of a call as the command line does.
func flagError(e *serve.ArgumentError) error {
	if e.Argument == "prompt" {
		return errors.New("the prompt: " + e.Reason)
	}
	return errors.New("--" + strings.ReplaceAll(e.Argument, "_", "-") + ": " + e.Reason)
}

// printResponse prints what a turn of respond came to and returns its exit.
func (a *app) printResponse(rec *record.Record, streams bool, streamed string) error {
	code := record.ExitCode(rec)
	if a.json {
		b, err := record.Marshal(rec)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(a.stdout, "%s\n", b); err != nil {
			return err
		}
		return exitWith(code)
	}
	if text, ok := rec.Answer(); ok {
		// What was streamed stands there already.
		rest, _ := strings.CutPrefix(text, streamed)
		if _, err := fmt.Fprintln(a.stdout, rest); err != nil {
			return err
		}
	} else if streams && streamed != "" {
		fmt.Fprintln(a.stdout)
	}
	if rec.Error != nil {
		fmt.Fprintf(a.stderr, "agentgraph: %s\n", recordErrorText(rec.Error))
	}
	return exitWith(code)
}

// refuseArguments ends respond before there is a turn. With --json it is a
// record too.
func (a *app) refuseArguments(err error) error {
	if !a.json || errors.Is(err, context.Canceled) {
		return err
	}
	return a.printResponse(turn.Refuse(&turn.Request{}, &record.Error{Code: record.ArgumentsInvalid, Message: err.Error()}), false, "")
}

// respondCall reads the flags and files; nothing is loaded yet.
func (a *app) respondCall(cmd *cobra.Command, f *respondFlags, args []string) (*serve.Call, error) {
	spec, stdinUsed, err := f.spec.read(cmd, a.stdin)
	if err != nil {
		return nil, err
	}
	prompt, err := a.prompt(cmd.Context(), f.file, args, stdinUsed)
	if err != nil {
		return nil, err
	}
	set := cmd.Flags().Changed
	c := &serve.Call{
		Prompt: prompt, System: f.system, Spec: spec, Enforce: f.enforce, Formats: f.formats,
		Thread: f.thread, Tools: f.tools, NoTools: f.noTools,
	}
	if f.model != "" {
		c.Model = absModel(f.model)
	}
	if set("no-schema-in-prompt") {
		show := !f.noSchema
		c.SchemaInPrompt = &show
	}
	given(set("max-output-tokens"), &c.MaxOutputTokens, &f.maxTokens)
	given(set("history"), &c.History, &f.history)
	given(set("timeout"), &c.Timeout, &f.timeout)
	given(set("seed"), &c.Seed, &f.seed)
	given(set("temperature"), &c.Temperature, &f.temp)
	given(set("logprobs"), &c.Logprobs, &f.logprobs)
	given(set("repair"), &c.Repair, &f.repair)
	given(set("solo"), &c.Solo, &f.solo)
	return c, nil
}

// given passes a flag on where it was set.
func given[T any](set bool, to **T, flag *T) {
	if set {
		*to = flag
	}
}

// prompt comes from exactly one place.
func (a *app) prompt(ctx context.Context, file string, args []string, stdinUsed bool) (string, error) {
	text := strings.Join(args, " ")
	switch {
	case file != "" && len(args) > 0:
		return "", errors.New("the prompt comes from the arguments or from --file, not both")
	case file != "" && file != "-":
		b, err := readFile(ctx, "the prompt", file)
		if err != nil {
			return "", err
		}
		return notEmpty(string(b), file)
	case len(args) > 0 && text != "-":
		return notEmpty(text, "the prompt")
	case stdinUsed:
		return "", errors.New("stdin is the schema already; give the prompt as arguments or with --file")
	}
	if isTerminal(a.stdin) {
		fmt.Fprintln(a.stderr, "agentgraph: reading the prompt from the terminal; end it with Ctrl-D")
	}
	b, err := readStdin(ctx, "the prompt", a.stdin)
	if err != nil {
		return "", err
	}
	return notEmpty(string(b), "stdin")
}

func notEmpty(text, from string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", fmt.Errorf("%s is empty; there is nothing to ask", from)
	}
	return text, nil
}

// outsideModel resolves a model's name where there are no settings.
func outsideModel(name string) (agents.ModelSpec, error) {
	if spec, ok := agents.ParseModel(name, workingDir()); ok {
		return spec, nil
	}
	return agents.ModelSpec{}, fmt.Errorf("no model is called %q here: outside a graph give a path that ends in .gguf, or script:FILE", name)
}

// recordErrorText is "file:line:col: message; hint".
func recordErrorText(e *record.Error) string {
	f := agents.Finding{File: e.File, Line: e.Line, Col: e.Column, Msg: e.Message, Hint: e.Hint}
	return f.String()
}
