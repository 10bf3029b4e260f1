package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/record"
	"agentgraph/tools"
	"agentgraph/turn"
)

// request makes the turn of a call and names its model and those that stand in
// for it. refused is a reason to refuse it that belongs into a record.
func (s *Service) request(c *Call) (req *turn.Request, models []string, refused *record.Error, err error) {
	if strings.TrimSpace(c.Prompt) == "" {
		return nil, nil, nil, argument("prompt", "it is empty; there is nothing to ask")
	}
	req, set, err := s.settings(c)
	if err != nil {
		var e *agents.Error
		if req == nil || !errors.As(err, &e) {
			return nil, nil, nil, err
		}
		refused = e.Record()
	}
	req.TurnID = record.NewID()
	req.TraceID = req.TurnID
	req.User, req.Inputs = c.Prompt, nil
	req.SessionID = cmp.Or(c.SessionID, c.Thread)
	if err := s.apply(c, req); err != nil {
		return nil, nil, nil, err
	}
	if more := c.MoreTools; more != nil && !c.NoTools {
		policy := cmp.Or(set.ClientTools, tools.Ask)
		req.MoreTools = func(ctx context.Context, taken func(string) bool) []*tools.Offer { return more(ctx, policy, taken) }
	}
	req.Toolbox, req.Approver = &s.box, c.Approver
	req.Progress, req.Audit = c.Progress, s.auditEvent
	if told := c.ToolResult; told != nil {
		inner := req.ToolResult
		req.ToolResult = func(call record.ToolCall) error {
			told(call)
			if inner != nil {
				return inner(call)
			}
			return nil
		}
	}
	if refused == nil && len(c.Prompt) > set.InputBytes {
		refused = &record.Error{Code: record.InputTooLarge,
			Message: fmt.Sprintf("the prompt has %d bytes, more than input_bytes allows (%d)", len(c.Prompt), set.InputBytes),
			Hint:    "split it, or raise limits: input_bytes"}
	}
	if c.Confined && c.Model != "" {
		if err := s.confined(c.Model); err != nil {
			return nil, nil, nil, err
		}
	}
	models = []string{cmp.Or(c.Model, s.cfg.Load.Model, set.ModelSpec.Name, set.Model, s.cfg.Load.DefaultModel)}
	if c.Model == "" && s.cfg.Load.Model == "" {
		for _, f := range set.Fallback {
			models = append(models, f.Name)
		}
	}
	return req, models, refused, nil
}

// settings are what the call starts from: an agent's, the graph's or the
// built-in ones. With an *agents.Error the request is there too, to be refused.
func (s *Service) settings(c *Call) (*turn.Request, agents.Settings, error) {
	if s.cfg.Graph == "" {
		if c.Agent != "" {
			return nil, agents.Settings{}, argument("agent", "%v", ErrNoGraph)
		}
		return &turn.Request{SchemaInPrompt: true, Timeout: 10 * time.Minute}, agents.Settings{InputBytes: agents.DefaultInputBytes}, nil
	}
	g, err := s.Graph()
	if err != nil {
		return nil, agents.Settings{}, err
	}
	if c.Agent != "" {
		ag, err := agentOf(g, c.Agent)
		if err != nil {
			return nil, agents.Settings{}, err
		}
		req, err := ag.Turn([]agents.Input{{Data: []byte(c.Prompt)}})
		return req, ag.Settings, err
	}
	var faulty error
	for _, f := range g.Findings {
		if f.File == agents.GraphFile && f.Severity == agents.SeverityError {
			f.File = filepath.Join(g.Root, f.File)
			faulty = &agents.Error{Code: record.SettingsInvalid, Finding: f}
			break
		}
	}
	d := g.Defaults
	req := &turn.Request{
		Prompt: d.Prompt, SchemaInPrompt: d.SchemaInPrompt,
		ConstraintOptions: d.Constraint, Sampling: d.Sampling, Repair: d.Repair,
		Thinking: d.Thinking, Solo: d.Solo, Timeout: d.Timeout, ModelCalls: d.ModelCalls,
		Tools: d.Tools, MaxToolRounds: d.MaxToolRounds, ToolFormat: constraint.CallFormat(d.ToolFormat),
		Place: tools.Place{Root: g.Root, Dir: g.Root}, SettingsSHA256: d.SHA256(),
	}
	if d.Schema != "" {
		req.Spec = &constraint.Spec{Kind: constraint.JSON, Source: []byte(d.Schema), File: "output.schema"}
	}
	return req, d, faulty
}

// confined refuses a model that is neither one of the settings nor a file
// inside the graph.
func (s *Service) confined(name string) error {
	s.mu.Lock()
	g := s.graph
	s.mu.Unlock()
	if g == nil {
		return argument("model", "there is no graph here whose models could be named")
	}
	if _, ok := g.Models[name]; ok {
		return nil
	}
	if spec, ok := agents.ParseModel(name, g.Root); ok {
		if real, err := filepath.EvalSymlinks(spec.GGUF + spec.Script); err == nil && !filepath.IsAbs(filepath.FromSlash(g.Rel(real))) {
			return nil
		}
	}
	return argument("model", "%q is no model of this graph; there are: %s", name, cmp.Or(strings.Join(slices.Sorted(maps.Keys(g.Models)), ", "), "none"))
}

// agentOf finds an agent by name.
func agentOf(g *agents.Graph, name string) (*agents.Agent, error) {
	if ag := g.Agent(name); ag != nil {
		return ag, nil
	}
	return nil, argument("agent", "no agent is called %q; there are: %s", name, agentNames(g))
}

// maxNamed bounds the names in a message.
const maxNamed = 20

func agentNames(g *agents.Graph) string {
	var names []string
	for i, ag := range g.Agents {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", len(g.Agents)-i))
			break
		}
		names = append(names, ag.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// apply puts the call's own arguments over the settings.
func (s *Service) apply(c *Call, req *turn.Request) error {
	if c.System != "" {
		req.System = []string{c.System}
	}
	switch {
	case c.Spec != nil:
		req.Spec, req.SchemaFile = c.Spec, ""
	case c.Free:
		req.Spec, req.SchemaFile = nil, ""
	}
	if c.SchemaInPrompt != nil {
		req.SchemaInPrompt = *c.SchemaInPrompt
	}
	switch e := constraint.Enforce(c.Enforce); e {
	case "":
	case constraint.EnforceMask, constraint.EnforceValidate:
		req.ConstraintOptions.Enforce = e
	default:
		return argument("enforce", "%q is neither mask nor validate", c.Enforce)
	}
	switch f := constraint.Formats(c.Formats); f {
	case "":
	case constraint.FormatsMask, constraint.FormatsAssert, constraint.FormatsIgnore:
		req.ConstraintOptions.Formats = f
	default:
		return argument("formats", "%q is none of mask, assert and ignore", c.Formats)
	}
	if n := c.MaxOutputTokens; n != nil {
		if *n < 1 {
			return argument("max_output_tokens", "give a number of 1 or more")
		}
		req.Sampling.MaxTokens = *n
	}
	if c.History != nil && (*c.History < 0 || c.Thread == "") {
		return argument("history", "give a number of 1 or more, together with a thread")
	}
	if d := c.Timeout; d != nil {
		if *d <= 0 {
			return argument("timeout", "give a time above zero, e.g. 30s")
		}
		req.Timeout = *d
	}
	if c.Seed != nil {
		req.Sampling.Seed = c.Seed
	}
	if t := c.Temperature; t != nil {
		if !(*t >= 0 && *t <= 100) {
			return argument("temperature", "give a number from 0 to 100")
		}
		req.Sampling.Temperature = *t
	}
	if n := c.Logprobs; n != nil {
		if *n < 1 || *n > turn.MaxLogprobs {
			return argument("logprobs", "give a number from 1 to %d", turn.MaxLogprobs)
		}
		req.Sampling.Logprobs = *n
	}
	if c.Repair != nil {
		req.Repair.Enabled = *c.Repair
	}
	if c.Solo != nil {
		req.Solo = *c.Solo
	}
	return s.pickTools(c, req)
}

// pickTools leaves a request the tools that the call names: those of the
// settings with their policy, others as they are.
func (s *Service) pickTools(c *Call, req *turn.Request) error {
	if c.NoTools {
		if len(c.Tools) > 0 {
			return argument("no_tools", "it and naming a tool exclude each other")
		}
		req.Tools = nil
		return nil
	}
	if req.Place.Dir == "" {
		req.Place.Dir = s.cfg.Dir
	}
	if len(c.Tools) == 0 {
		return nil
	}
	known := req.Tools
	req.Tools = nil
	for _, name := range c.Tools {
		if name == "" {
			return argument("tool", "name a tool")
		}
		if i := slices.IndexFunc(known, func(c tools.Config) bool { return isTool(c, name) }); i >= 0 {
			req.Tools = append(req.Tools, known[i])
			continue
		}
		t := agents.WithTool(tools.Config{}, name)
		if len(t.Command) > 0 && strings.ContainsRune(name, '/') && !filepath.IsAbs(name) {
			t.Command[0] = filepath.Join(s.cfg.Dir, name)
		}
		req.Tools = append(req.Tools, t)
	}
	return nil
}

// isTool reports that an entry of tools: goes by this name.
func isTool(c tools.Config, name string) bool {
	switch {
	case c.Builtin != "":
		return c.Builtin == name
	case len(c.Command) > 0:
		base := filepath.Base(c.Command[0])
		return c.Command[0] == name || base == name || base == "ag-tool-"+name
	case c.MCP != nil && len(c.MCP.Command) > 0:
		return filepath.Base(c.MCP.Command[0]) == name
	}
	return c.MCP != nil && c.MCP.URL == name
}

// auditEvent appends to the log and says once when that fails.
func (s *Service) auditEvent(e turn.Event) {
	if err := s.audit.Append(e); err != nil {
		s.auditWarning.Do(func() { s.warn(fmt.Errorf("the audit log cannot be written: %w", err)) })
	}
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
