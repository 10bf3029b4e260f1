package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/model/script"
)

func (a *app) checkCommand() *cobra.Command {
	var enforce, model string
	var fix bool
	var spec specFlags
	cmd := &cobra.Command{
		Use:   "check [DIR | SCHEMA-FILE]",
		Short: "Every fault of settings, schema files, grammars and the graph at once",
		Long: `Checks a graph, or one schema file, without running a model. Each finding is
"file:line:col: error or warning: what is wrong; what to do".

For a schema file by itself it also says what would hold answers, for each model
of the graph around the working folder: a mask while generating, or validation
afterwards (with --enforce validate).

Exit codes: 0 nothing found, 1 warnings, 2 errors.`,
		Example: `
  agentgraph check mygraph
  agentgraph check rating.json
  agentgraph check --fix-hints rating.json
  agentgraph check --lark answer.lark
  agentgraph check --enforce validate --json rating.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch constraint.Enforce(enforce) {
			case "", constraint.EnforceMask, constraint.EnforceValidate:
			default:
				return fmt.Errorf("--enforce %s: it is mask or validate", enforce)
			}
			target := dirArg(args)
			given, _, err := spec.read(cmd, a.stdin)
			if err != nil {
				return err
			}
			info, statErr := os.Stat(target)
			switch {
			case given != nil && len(args) > 0:
				return errors.New("give a folder or file, or one of --schema, --regex, --lark and --llg, not both")
			case given != nil:
				return a.checkSpec(cmd.Context(), given, enforce, fix)
			case statErr != nil:
				return fileError("the folder or schema file", target, statErr)
			case info.IsDir():
				return a.checkGraph(cmd.Context(), target, model, fix)
			}
			s, _, err := sourceFile(cmd.Context(), target, constraint.JSON, a.stdin)
			if err != nil {
				return err
			}
			return a.checkSpec(cmd.Context(), s, enforce, fix)
		},
	}
	spec.add(cmd)
	cmd.Flags().StringVar(&enforce, "enforce", "", "for a schema file: `mask` or validate")
	cmd.Flags().BoolVar(&fix, "fix-hints", false, "name the smallest change that lets a mask hold each part")
	cmd.Flags().StringVar(&model, "model", "", "check with this `MODEL` for every agent")
	a.jsonFlag(cmd, "print one JSON object with every finding")
	return cmd
}

// checkReport is what check --json prints.
type checkReport struct {
	Findings []agents.Finding `json:"findings"`
	Agents   *int             `json:"agents,omitempty"`
	// Of a schema file by itself:
	Models    []modelSupport `json:"models,omitempty"`
	Validated []unmasked     `json:"validated,omitempty"`
}

// unmasked is a construct that the mask does not hold.
type unmasked struct {
	Construct string `json:"construct"`
	Path      string `json:"path"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	Fix       string `json:"fix,omitempty"`
}

func (a *app) checkGraph(ctx context.Context, dir, model string, fix bool) error {
	g, err := loadGraph(dir, model)
	if err != nil {
		return err
	}
	findings := append(graphFindings(ctx, g, model, fix), ignoredFindings(g)...)
	if err := ctx.Err(); err != nil {
		return err // a plug-in that could not say what it is would be a finding
	}
	for i := range findings {
		f := &findings[i]
		if f.File != "" && !filepath.IsAbs(f.File) {
			f.File = filepath.Join(dir, filepath.FromSlash(f.File))
		}
	}
	n := len(g.Agents)
	return a.report(checkReport{Findings: findings, Agents: &n}, agents.Printable(dir)+": "+counted(n, "agent"))
}

// maxIgnored bounds the files of one folder that check names.
const maxIgnored = 10

// ignoredFindings are notes about files that somebody may have meant as inputs
// and that are none; doctor lists all that are none.
func ignoredFindings(g *agents.Graph) []agents.Finding {
	var found []agents.Finding
	seen := map[string]bool{}
	for _, ag := range g.Agents {
		for _, dir := range ag.Inputs {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			entries, _ := os.ReadDir(dir) // doctor says what is wrong with the folder
			n := 0
			for _, e := range entries {
				if e.Type().IsRegular() && agents.IgnoredName(e.Name()) == "" {
					continue // there may be a great many
				}
				path := filepath.Join(dir, e.Name())
				_, reason, err := agents.Inspect(g.Root, path)
				if err != nil || !agents.Surprising(e.Name(), reason) {
					continue
				}
				if n++; n <= maxIgnored {
					found = append(found, agents.Finding{File: g.Rel(path), Severity: severityNote, Agent: ag.Name, Msg: "no input: " + reason})
				}
			}
			if more := n - maxIgnored; more > 0 {
				found = append(found, agents.Finding{File: g.Rel(dir), Severity: severityNote, Agent: ag.Name,
					Msg: counted(more, "more file") + " that no turn will read", Hint: "'agentgraph doctor' lists each"})
			}
		}
	}
	return found
}

// graphFindings is everything that is wrong with a graph; model is --model.
func graphFindings(ctx context.Context, g *agents.Graph, model string, fix bool) []agents.Finding {
	findings := slices.Clone(g.Findings)
	models := map[modelKey]bool{}
	place := modelPlacer(g, model)
	for _, ag := range g.Agents {
		if ag.Err != nil {
			continue // among the findings
		}
		findings = append(findings, checkAgent(ctx, ag, fix)...)
		if key := keyOf(ag.Settings.ModelSpec); !models[key] {
			models[key] = true
			findings = append(findings, checkModel(ctx, g, ag.Settings.ModelSpec, place(ag))...)
		}
		findings = append(findings, checkTools(ctx, g, ag)...)
		findings = append(findings, checkFallback(ctx, g, ag, models)...)
	}
	return findings
}

// checkAgent finds what would refuse the agent's turns whatever the input.
func checkAgent(ctx context.Context, ag *agents.Agent, fix bool) []agents.Finding {
	req, err := ag.Turn([]agents.Input{{Path: "check", Data: []byte("check")}})
	if err != nil {
		var e *agents.Error
		if errors.As(err, &e) {
			return []agents.Finding{e.Finding}
		}
		return []agents.Finding{{Severity: agents.SeverityError, Agent: ag.Name, Msg: err.Error()}}
	}
	if req.Spec == nil {
		return nil
	}
	found := checkConstraint(*req.Spec, req.ConstraintOptions, engineOf(ctx, ag.Settings.ModelSpec), fix)
	found = append(found, checkTravel(*req.Spec, req.ConstraintOptions, ag.Settings.ModelSpec)...)
	for i := range found {
		found[i].Agent = ag.Name
	}
	return found
}

// checkConstraint finds what is wrong with a promise and what is doubtful. With
// fix the advice is the smallest change that lets a mask hold each part.
func checkConstraint(spec constraint.Spec, opt constraint.Options, engine constraint.Engine, fix bool) []agents.Finding {
	c, err := constraint.Compile(spec, opt)
	if err != nil {
		return []agents.Finding{refusalFinding(err, spec.File)}
	}
	var found []agents.Finding
	if _, err := c.Admit(engine); err != nil {
		first := refusalFinding(err, spec.File)
		if un := c.Unmasked(); fix && len(un) > 0 && engine.Holds(spec.Kind) {
			first.Hint = un[0].FixHint()
		}
		found = append(found, first)
		// Admit names the first construct; a user wants to see all of them.
		for _, u := range rest(c.Unmasked(), engine.Holds(spec.Kind)) {
			f := agents.Finding{
				File: spec.File, Line: u.Line, Col: u.Column, Severity: agents.SeverityError,
				Msg:  fmt.Sprintf("schema at %s: '%s' is not enforced by %s", pointerText(u.Path), u.Construct, engine.Name),
				Hint: "remove it, or allow it with enforce: validate",
			}
			if fix {
				f.Hint = u.FixHint()
			}
			found = append(found, f)
		}
	}
	if spec.Kind == constraint.JSON {
		for _, o := range openObjects(spec.Source) {
			found = append(found, agents.Finding{
				File: spec.File, Line: o.line, Col: o.col, Severity: agents.SeverityWarning,
				Msg:  fmt.Sprintf("the object at %s is open: answers may have members that it does not name", pointerText(o.path)),
				Hint: `add "additionalProperties": false, or true to say that it is meant`,
			})
		}
	}
	return found
}

// rest leaves out the first construct; none are left where the engine does
// not hold the kind at all.
func rest(all []constraint.Unmasked, held bool) []constraint.Unmasked {
	if !held || len(all) == 0 {
		return nil
	}
	return all[1:]
}

func pointerText(p string) string {
	if p == "" {
		return "the top"
	}
	return p
}

func refusalFinding(err error, file string) agents.Finding {
	f := agents.Finding{File: file, Severity: agents.SeverityError, Msg: err.Error()}
	var r *constraint.Refusal
	if errors.As(err, &r) {
		f.Line, f.Col, f.Msg, f.Hint = r.Line, r.Column, r.Reason, r.Hint
	}
	return f
}

// engineOf is what the model's engine holds, without loading it.
func engineOf(ctx context.Context, spec agents.ModelSpec) constraint.Engine {
	if spec.Script != "" {
		if m, err := script.Open(spec.Script); err == nil {
			defer m.Close()
			return m.Capabilities().Engine
		}
	}
	if spec.Server != "" {
		return serverEngine(spec)
	}
	if spec.Plugin != nil {
		return pluginEngine(ctx, spec)
	}
	return constraint.LocalEngine(modelName(spec))
}

// checkModel finds out whether the model's file is there, of its kind and
// whole; at is where the settings name it.
func checkModel(ctx context.Context, g *agents.Graph, spec agents.ModelSpec, at agents.Finding) []agents.Finding {
	if spec.Script != "" {
		m, err := script.Open(spec.Script)
		if err != nil {
			return []agents.Finding{modelFinding(g, err, at)}
		}
		m.Close()
		return nil
	}
	if spec.Server != "" {
		err := checkServer(spec)
		if err == nil {
			err = checkCommand(spec)
		}
		if err != nil {
			return []agents.Finding{modelFinding(g, err, at)}
		}
		return plainKey(spec, at)
	}
	if spec.Plugin != nil {
		m, err := openPlugin(ctx, spec)
		if err != nil {
			return []agents.Finding{modelFinding(g, err, at)}
		}
		m.Close()
		return nil
	}
	if err := checkGGUF(spec.GGUF); err != nil {
		return []agents.Finding{modelFinding(g, err, at)}
	}
	return nil
}

func modelFinding(g *agents.Graph, err error, f agents.Finding) agents.Finding {
	f.Severity, f.Msg = agents.SeverityError, err.Error()
	var at *script.FileError
	var me *model.Error
	switch {
	case errors.As(err, &at):
		f.File, f.Line, f.Col, f.Msg = g.Rel(at.File), at.Line, at.Column, at.Msg
	case errors.As(err, &me):
		f.Msg = me.Err.Error()
	}
	f.Msg, f.Hint, _ = strings.Cut(f.Msg, "; ")
	return f
}

// modelPlacer says where the settings name an agent's model; flag is --model.
func modelPlacer(g *agents.Graph, flag string) func(*agents.Agent) agents.Finding {
	return func(ag *agents.Agent) (f agents.Finding) {
		if _, named := g.Models[ag.Settings.Model]; flag == "" || named {
			f.File, f.Line, f.Col = g.ModelPlace(ag)
		}
		return f
	}
}

// modelSupport is what would hold answers of one model.
type modelSupport struct {
	Model      string                `json:"model"`
	Engine     string                `json:"engine"`
	EnforcedBy constraint.EnforcedBy `json:"enforced_by,omitempty"`
	Refused    string                `json:"refused,omitempty"`
}

// configured are the models of the graph around the working folder, or what
// any GGUF model is.
func configured(ctx context.Context) []modelEngine {
	if dir := graphAround(workingDir()); dir != "" {
		if g, err := loadGraph(dir, ""); err == nil {
			return enginesOf(ctx, g)
		}
	}
	return enginesOf(ctx, nil)
}

// enginesOf are the models of a graph, which may be nil, or what any GGUF
// model is.
func enginesOf(ctx context.Context, g *agents.Graph) []modelEngine {
	var list []modelEngine
	if g != nil {
		for _, name := range slices.Sorted(maps.Keys(g.Models)) {
			list = append(list, modelEngine{name, engineOf(ctx, g.Models[name])})
		}
	}
	if len(list) == 0 {
		list = append(list, modelEngine{"any GGUF model", constraint.LocalEngine("")})
	}
	return list
}

type modelEngine struct {
	name   string
	engine constraint.Engine
}

func (a *app) checkSpec(ctx context.Context, spec *constraint.Spec, enforce string, fix bool) error {
	opt := constraint.Options{Enforce: constraint.Enforce(enforce)}
	models := configured(ctx)
	var report checkReport
	name := spec.File
	if name == "" {
		name = "the schema"
	}
	summary := fmt.Sprintf("%s: %s", agents.Printable(name), kindText(spec.Kind))
	seen := map[string]bool{}
	for _, m := range models {
		for _, f := range checkConstraint(*spec, opt, m.engine, fix) {
			if text := f.String(); !seen[text] {
				seen[text] = true
				report.Findings = append(report.Findings, f)
			}
		}
		s := modelSupport{Model: m.name, Engine: m.engine.Name}
		c, err := constraint.Compile(*spec, opt)
		if err == nil {
			report.Validated = nil
			for _, u := range c.Unmasked() {
				v := unmasked{u.Construct, u.Path, u.Line, u.Column, ""}
				if fix {
					v.Fix = u.FixHint()
				}
				report.Validated = append(report.Validated, v)
			}
			s.EnforcedBy, err = c.Admit(m.engine)
		}
		held := "held by " + string(s.EnforcedBy)
		if err != nil {
			s.Refused, held = err.Error(), "refused"
		}
		report.Models = append(report.Models, s)
		summary += fmt.Sprintf("\n  %s (%s): %s", m.name, m.engine.Name, held)
	}
	for _, u := range report.Validated {
		summary += fmt.Sprintf("\n  the mask does not hold '%s' at %s; with enforce: validate, validation decides it", u.Construct, pointerText(u.Path))
		if u.Fix != "" {
			summary += "; " + u.Fix
		}
	}
	return a.report(report, summary)
}

func kindText(k constraint.Kind) string {
	switch k {
	case constraint.JSON:
		return "JSON Schema"
	case constraint.Regex:
		return "regular expression"
	case constraint.Lark:
		return "Lark grammar"
	case constraint.LLG:
		return "llguidance grammar"
	}
	return string(k)
}

// report prints findings as data and ends with the code they deserve; a note
// deserves none.
func (a *app) report(r checkReport, summary string) error {
	errs, warns := 0, 0
	for _, f := range r.Findings {
		switch f.Severity {
		case agents.SeverityError:
			errs++
		case agents.SeverityWarning:
			warns++
		}
	}
	if a.json {
		if r.Findings == nil {
			r.Findings = []agents.Finding{}
		}
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else {
		for _, f := range r.Findings {
			fmt.Fprintln(a.stdout, findingText(f))
		}
		fmt.Fprintf(a.stderr, "%s\n%s, %s\n", summary, counted(errs, "error"), counted(warns, "warning"))
	}
	switch {
	case errs > 0:
		return exitWith(exitRefused)
	case warns > 0:
		return exitWith(exitNotCompleted)
	}
	return nil
}

// findingText is "file:line:col: severity: message; hint".
func findingText(f agents.Finding) string {
	f.Msg = string(f.Severity) + ": " + strings.TrimSpace(f.Msg)
	return f.String()
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
