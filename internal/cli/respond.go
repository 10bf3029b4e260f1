package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/tools"
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
	s, err := a.respondRequest(cmd, f, args)
	if err != nil {
		return a.refuseArguments(err)
	}
	req, name := s.req, s.model
	remember := func(*record.Record) error { return nil }
	if f.thread != "" {
		thread, err := store.OpenThread(s.threads, f.thread)
		if err != nil {
			return a.refuseArguments(err)
		}
		unlock, err := thread.Lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		if remember, err = converse(req, thread, f.thread, f.history); err != nil {
			return a.refuseArguments(err)
		}
	}
	ms := newModels(s.find)
	defer ms.Close()
	audit := store.OpenAudit(s.log)
	defer audit.Close()
	req.Audit = a.auditTo(audit)
	live := newLive(a.stderr)
	req.Approver = a.approver()
	streams := req.Spec == nil && !a.json
	var streamed strings.Builder
	req.Progress = func(p model.Progress) {
		if streams {
			streamed.WriteString(p.Text)
			io.WriteString(a.stdout, p.Text)
			return
		}
		live.update("respond", filepath.Base(name), p.Tokens)
	}
	// A schema that is refused needs no model.
	rec := earlyRefusal(ctx, req, s)
	if rec == nil {
		m, err := ms.Model(ctx, name)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			rec = turn.Refuse(req, turn.Unavailable(err))
		default:
			req.Model = m
			rec = turn.Run(ctx, req)
		}
	}
	live.done("respond")
	if err := remember(rec); err != nil {
		warn(a.stderr, fmt.Errorf("the thread was not written: %w", err))
	}
	return a.printResponse(rec, streams, streamed.String())
}

// converse puts the thread's exchanges into the request and returns what adds
// the new one.
func converse(req *turn.Request, thread *store.Thread, name string, last int) (func(*record.Record) error, error) {
	past, err := thread.Exchanges(last)
	if err != nil {
		return nil, err
	}
	for _, e := range past {
		req.History = append(req.History, turn.Exchange{User: e.User, Answer: e.Answer})
	}
	req.SessionID = name
	return func(rec *record.Record) error {
		answer, ok := rec.Answer()
		if !ok {
			return nil
		}
		return thread.Append(store.Exchange{Time: rec.Timing.Finished, TurnID: req.TurnID, User: req.User, Answer: answer})
	}, nil
}

// auditTo appends to the log and says once when that fails.
func (a *app) auditTo(log *store.Audit) func(turn.Event) {
	var once sync.Once
	return func(e turn.Event) {
		if err := log.Append(e); err != nil {
			once.Do(func() { warn(a.stderr, fmt.Errorf("the audit log cannot be written: %w", err)) })
		}
	}
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
	if !a.json {
		return err
	}
	return a.printResponse(turn.Refuse(&turn.Request{}, &record.Error{Code: record.ArgumentsInvalid, Message: err.Error()}), false, "")
}

// respondRequest reads the flags and files; nothing is loaded yet.
func (a *app) respondRequest(cmd *cobra.Command, f *respondFlags, args []string) (*surroundings, error) {
	spec, stdinUsed, err := f.spec.read(cmd, a.stdin)
	if err != nil {
		return nil, err
	}
	prompt, err := a.prompt(f.file, args, stdinUsed)
	if err != nil {
		return nil, err
	}
	s, err := respondDefaults(f.graph, f.model)
	if err != nil {
		return nil, err
	}
	set := cmd.Flags().Changed
	req := s.req
	req.TurnID = newID()
	req.TraceID = req.TurnID
	req.User = prompt
	if f.system != "" {
		req.System = []string{f.system}
	}
	if req.Spec = spec; spec == nil && s.schema != "" {
		req.Spec = &constraint.Spec{Kind: constraint.JSON, Source: []byte(s.schema), File: "output.schema"}
	}
	if set("no-schema-in-prompt") {
		req.SchemaInPrompt = !f.noSchema
	}
	if set("enforce") {
		req.ConstraintOptions.Enforce = constraint.Enforce(f.enforce)
		if f.enforce != string(constraint.EnforceMask) && f.enforce != string(constraint.EnforceValidate) {
			return nil, fmt.Errorf("--enforce %s: it is mask or validate", f.enforce)
		}
	}
	if set("formats") {
		req.ConstraintOptions.Formats = constraint.Formats(f.formats)
		switch constraint.Formats(f.formats) {
		case constraint.FormatsMask, constraint.FormatsAssert, constraint.FormatsIgnore:
		default:
			return nil, fmt.Errorf("--formats %s: it is mask, assert or ignore", f.formats)
		}
	}
	if set("max-output-tokens") {
		if f.maxTokens < 1 {
			return nil, errors.New("--max-output-tokens: give a number of 1 or more")
		}
		req.Sampling.MaxTokens = f.maxTokens
	}
	if err := respondTools(req, f.tools, f.noTools); err != nil {
		return nil, err
	}
	if f.history < 0 || set("history") && f.thread == "" {
		return nil, errors.New("--history: give a number of 1 or more, together with --thread")
	}
	if set("timeout") {
		if f.timeout <= 0 {
			return nil, errors.New("--timeout: give a time above zero, e.g. 30s")
		}
		req.Timeout = f.timeout
	}
	if set("seed") {
		req.Sampling.Seed = &f.seed
	}
	if set("temperature") {
		if f.temp < 0 || f.temp > 100 {
			return nil, errors.New("--temperature: give a number from 0 to 100")
		}
		req.Sampling.Temperature = f.temp
	}
	if set("logprobs") {
		if f.logprobs < 1 || f.logprobs > turn.MaxLogprobs {
			return nil, fmt.Errorf("--logprobs: give a number from 1 to %d", turn.MaxLogprobs)
		}
		req.Sampling.Logprobs = f.logprobs
	}
	if set("repair") {
		req.Repair.Enabled = f.repair
	}
	if set("solo") {
		req.Solo = f.solo
	}
	return s, nil
}

// prompt comes from exactly one place.
func (a *app) prompt(file string, args []string, stdinUsed bool) (string, error) {
	text := strings.Join(args, " ")
	switch {
	case file != "" && len(args) > 0:
		return "", errors.New("the prompt comes from the arguments or from --file, not both")
	case file != "" && file != "-":
		b, err := readFile("the prompt", file)
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
	b, err := io.ReadAll(a.stdin)
	if err != nil {
		return "", fmt.Errorf("reading the prompt from stdin: %w", err)
	}
	return notEmpty(string(b), "stdin")
}

func notEmpty(text, from string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", fmt.Errorf("%s is empty; there is nothing to ask", from)
	}
	return text, nil
}

// surroundings are what respond takes from where it is called.
type surroundings struct {
	req   *turn.Request
	model string // a name for find
	find  func(string) (agents.ModelSpec, error)
	log   string // folder of the audit log
	// threads is the folder of conversations.
	threads string
	// schema is the settings' own, for a call that is given none.
	schema string
}

func respondDefaults(dir, flag string) (*surroundings, error) {
	s := &surroundings{
		req:  &turn.Request{SchemaInPrompt: true, Timeout: 10 * time.Minute},
		find: outsideModel, log: filepath.Join(stateDir(), "log"), threads: filepath.Join(stateDir(), "threads"),
	}
	if flag != "" {
		s.model = absModel(flag)
	}
	if dir == "" {
		dir = graphAround(workingDir())
	}
	if dir != "" {
		g, err := agents.LoadWith(dir, agents.LoadOptions{})
		if err != nil {
			return nil, err
		}
		for _, f := range g.Findings {
			if f.File == agents.GraphFile && f.Severity == agents.SeverityError {
				f.File = filepath.Join(g.Root, f.File)
				return nil, errors.New(f.String())
			}
		}
		d := g.Defaults
		s.req.Prompt, s.req.SchemaInPrompt = d.Prompt, d.SchemaInPrompt
		s.req.ConstraintOptions, s.req.Sampling, s.req.Repair = d.Constraint, d.Sampling, d.Repair
		s.req.Thinking, s.req.Solo, s.req.Timeout, s.req.ModelCalls = d.Thinking, d.Solo, d.Timeout, d.ModelCalls
		s.req.Tools, s.req.MaxToolRounds, s.req.ToolFormat = d.Tools, d.MaxToolRounds, constraint.CallFormat(d.ToolFormat)
		s.req.Place = tools.Place{Root: g.Root, Dir: g.Root}
		s.req.SettingsSHA256 = d.SHA256()
		s.schema = d.Schema
		if s.model == "" {
			s.model = d.Model
		}
		s.find, s.log, s.threads = g.ModelSpec, filepath.Join(g.Root, "log"), filepath.Join(g.Root, "threads")
	}
	if s.model == "" {
		s.model = defaultModel()
	}
	return s, nil
}

// outsideModel resolves a model's name where there are no settings.
func outsideModel(name string) (agents.ModelSpec, error) {
	if spec, ok := agents.ParseModel(name, workingDir()); ok {
		return spec, nil
	}
	return agents.ModelSpec{}, fmt.Errorf("no model is called %q here: outside a graph give a path that ends in .gguf, or script:FILE", name)
}

// earlyRefusal refuses what the schema alone decides, or returns nil. No model
// is loaded for it.
func earlyRefusal(ctx context.Context, req *turn.Request, s *surroundings) *record.Record {
	if req.Spec == nil {
		return nil
	}
	if _, err := constraint.Compile(*req.Spec, req.ConstraintOptions); err == nil {
		return nil
	}
	early := *req
	early.Model = unloaded{model.Identity{Name: filepath.Base(s.model)}}
	if spec, err := s.find(s.model); err == nil {
		early.Model = alias(unloaded{model.Identity{Name: filepath.Base(spec.GGUF + spec.Script)}}, spec)
	}
	return turn.Run(ctx, &early)
}

// unloaded is a model that was not opened because its turn is refused anyway.
type unloaded struct{ identity model.Identity }

func (u unloaded) Generate(context.Context, *model.Request) (*model.Response, error) {
	return nil, &model.Error{Kind: model.Unavailable, Delivery: model.NotSent, Model: u.identity.Name, Err: errors.New("not loaded")}
}

func (u unloaded) Render(context.Context, *model.Request) (model.Rendered, error) {
	return model.Rendered{}, model.ErrNotRendered
}

func (u unloaded) Capabilities() model.Capabilities { return model.Capabilities{Parallel: 1} }
func (u unloaded) Identity() model.Identity         { return u.identity }
func (u unloaded) Close() error                     { return nil }

func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		id = uuid.New()
	}
	return id.String()
}

// recordErrorText is "file:line:col: message; hint".
func recordErrorText(e *record.Error) string {
	f := agents.Finding{File: e.File, Line: e.Line, Col: e.Column, Msg: e.Message, Hint: e.Hint}
	return f.String()
}
