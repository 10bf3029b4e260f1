package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/tools"
	"agentgraph/turn"
)

// DefaultInputBytes bounds an input where no limit is set.
const DefaultInputBytes = 1 << 20

// DefaultMaxHops bounds how many edges an input may have passed.
const DefaultMaxHops = 8

// The two ways files of several input folders become turns.
const (
	JoinAny = "any"
	JoinAll = "all"
)

// Settings are the settings that hold for one agent, with every default
// filled in.
type Settings struct {
	Model          string             `json:"model"`
	Prompt         string             `json:"prompt"`
	SchemaInPrompt bool               `json:"schema_in_prompt"`
	Inputs         []string           `json:"inputs"` // as written
	Join           string             `json:"join"`
	MaxHops        int                `json:"max_hops"`
	MaxHopsSet     bool               `json:"-"` // the agent wrote it itself
	Sampling       model.Sampling     `json:"sampling"`
	History        int                `json:"history"`
	Samples        int                `json:"samples"` // answers per input
	Constraint     constraint.Options `json:"constraint"`
	Repair         turn.RepairOptions `json:"repair"`
	// Schema is output.schema as JSON, of the graph's defaults only.
	Schema        string         `json:"schema,omitempty"`
	Thinking      *bool          `json:"thinking"`
	Tools         []tools.Config `json:"tools,omitempty"`
	MaxToolRounds int            `json:"max_tool_rounds,omitempty"` // as in turn.Request
	ToolFormat    string         `json:"tool_format,omitempty"`
	// ClientTools is the policy of tools that a protocol's client brings.
	ClientTools  tools.Policy  `json:"client_tools,omitempty"`  // empty: ask
	ToolOutput   string        `json:"tool_output,omitempty"`   // absolute, in the graph
	StreamOutput string        `json:"stream_output,omitempty"` // absolute, in the graph
	KeepStream   bool          `json:"keep_stream,omitempty"`
	Concurrency  int           `json:"concurrency"`
	Retries      int           `json:"retries"`
	Timeout      time.Duration `json:"timeout"`
	Solo         bool          `json:"solo"`
	Settle       time.Duration `json:"settle"`
	SettleSet    bool          `json:"settle_set"` // the agent wrote it itself
	MaxSettle    time.Duration `json:"max_settle"`
	InputBytes   int           `json:"input_bytes"`
	ModelCalls   int           `json:"model_calls"` // 0: turn.DefaultModelCalls
	ModelSpec    ModelSpec     `json:"model_spec"`
	// Fallback are the models to try in order when Model cannot be had.
	Fallback []ModelSpec `json:"fallback,omitempty"`
}

// SHA256 is the hash of the settings, the model's entry among them.
func (s Settings) SHA256() string {
	data, err := json.Marshal(s)
	if err != nil {
		panic("agents: settings do not marshal: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

// effective puts the defaults of the graph under what the agent wrote.
func effective(g *graphFile, a *agentFile) Settings {
	var o Options
	if g.Defaults != nil {
		o = *g.Defaults
	}
	merge(reflect.ValueOf(&o).Elem(), reflect.ValueOf(&a.Options).Elem())
	var l LimitOptions
	if g.Limits != nil {
		l = *g.Limits
	}
	if a.Limits != nil {
		if a.Limits.Preset != nil {
			// A preset of the agent replaces the graph's single bounds too.
			l = LimitOptions{}
		}
		merge(reflect.ValueOf(&l).Elem(), reflect.ValueOf(a.Limits).Elem())
	}

	s := Settings{
		Model:          or(o.Model, ""),
		Fallback:       named(o.Fallback),
		Prompt:         or(o.Prompt, ""),
		SchemaInPrompt: or(o.SchemaInPrompt, true),
		Inputs:         a.Inputs,
		Join:           or(a.Join, JoinAny),
		MaxHops:        or(a.MaxHops, DefaultMaxHops),
		MaxHopsSet:     a.MaxHops != nil,
		History:        or(o.History, 0),
		Samples:        or(o.Samples, 1),
		Thinking:       o.Thinking,
		Tools:          toolConfigs(o.Tools),
		ToolFormat:     or(o.ToolFormat, ""),
		ClientTools:    tools.Policy(or(o.ClientTools, "")),
		ToolOutput:     or(o.ToolOutput, ""),
		StreamOutput:   or(o.StreamOutput, ""),
		KeepStream:     or(o.KeepStream, false),
		Concurrency:    or(o.Concurrency, 1),
		Retries:        or(o.Retries, 3),
		Timeout:        time.Duration(or(o.Timeout, Duration(10*time.Minute))),
		Solo:           or(o.Determinism, "fast") == "solo",
		Settle:         time.Duration(or(a.Settle, or(g.Settle, Duration(200*time.Millisecond)))),
		SettleSet:      a.Settle != nil || g.Settle != nil,
		MaxSettle:      time.Duration(or(a.MaxSettle, or(g.MaxSettle, Duration(10*time.Second)))),
		InputBytes:     or(l.InputBytes, DefaultInputBytes),
		ModelCalls:     or(l.ModelCalls, 0),
	}
	if n := o.MaxToolRounds; n != nil {
		if s.MaxToolRounds = *n; *n == 0 {
			s.MaxToolRounds = -1
		}
	}
	if s.Inputs == nil {
		s.Inputs = []string{"input"}
	}
	if p := o.Sampling; p != nil {
		s.Sampling = model.Sampling{
			Temperature: or(p.Temperature, 0), TopK: or(p.TopK, 0),
			TopP: or(p.TopP, 0), MinP: or(p.MinP, 0),
			Seed: p.Seed, MaxTokens: or(p.MaxTokens, 0), Logprobs: or(p.Logprobs, 0),
		}
	}
	s.Constraint = constraint.Options{
		Enforce: constraint.EnforceMask, Formats: constraint.FormatsMask, Limits: limits(l),
	}
	s.Repair.MaxFeedbackBytes = 4096
	if p := o.Output; p != nil {
		s.Constraint.Enforce = constraint.Enforce(or(p.Enforce, string(constraint.EnforceMask)))
		s.Constraint.Formats = constraint.Formats(or(p.Formats, string(constraint.FormatsMask)))
		if r := p.Repair; r != nil {
			s.Repair.Enabled = or(r.Enabled, false)
			s.Repair.MaxFeedbackBytes = or(r.MaxFeedbackBytes, 4096)
		}
	}
	return s
}

func limits(l LimitOptions) constraint.Limits {
	base := constraint.Standard
	if or(l.Preset, "standard") == "strict" {
		base = constraint.Strict
	}
	return constraint.Limits{
		SchemaBytes:    or(l.SchemaBytes, base.SchemaBytes),
		SchemaNodes:    or(l.SchemaNodes, base.SchemaNodes),
		SchemaDepth:    or(l.SchemaDepth, base.SchemaDepth),
		SchemaVisits:   or(l.SchemaVisits, base.SchemaVisits),
		AnswerBytes:    or(l.AnswerBytes, base.AnswerBytes),
		AnswerNodes:    or(l.AnswerNodes, base.AnswerNodes),
		AnswerDepth:    or(l.AnswerDepth, base.AnswerDepth),
		ValidationWork: or(l.ValidationWork, base.ValidationWork),
	}
}
