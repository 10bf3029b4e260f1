// Package record holds the turn record: the one JSON object that says what a
// turn was asked, what came of it and what it cost. The same object is a file
// in turns/, the stdout of "respond --json", and what MCP and ACP carry.
//
// Unknown is null, never zero. Aggregate counts are decimal strings, so that
// no reader rounds them. docs/turn.schema.json is the machine contract.
package record

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// SchemaVersion names the shape of Record.
const SchemaVersion = "agentgraph.turn/1"

// Status is how an admitted turn ended.
type Status string

// The closed list of statuses.
const (
	Completed     Status = "completed"
	Cancelled     Status = "cancelled"
	TimedOut      Status = "timed_out"
	PolicyDenied  Status = "policy_denied"
	LimitExceeded Status = "limit_exceeded"
	Failed        Status = "failed"
)

// Code is an error's closed code.
type Code string

// The closed list of codes.
const (
	ArgumentsInvalid       Code = "arguments_invalid"
	SettingsInvalid        Code = "settings_invalid"
	SchemaRefused          Code = "schema_refused"
	CapabilityMissing      Code = "capability_missing"
	InputNotText           Code = "input_not_text"
	InputTooLarge          Code = "input_too_large"
	OutsideGraph           Code = "outside_graph"
	ContextOverflow        Code = "context_overflow"
	ModelUnavailable       Code = "model_unavailable"
	ModelError             Code = "model_error"
	ServerRefusal          Code = "server_refusal"
	Truncated              Code = "truncated"
	OutputValidationFailed Code = "output_validation_failed"
	ToolFailed             Code = "tool_failed"
	CodePolicyDenied       Code = "policy_denied"
	CodeLimitExceeded      Code = "limit_exceeded"
	CodeTimedOut           Code = "timed_out"
	CodeCancelled          Code = "cancelled"
	PublishFailed          Code = "publish_failed"
	Internal               Code = "internal"
)

// Record is one turn. A turn refused before admission has no Outcome, RunID,
// SessionID, TraceID, Accounting and Timing, Attempt 0, and Error set. An
// admitted turn has all of them, and Error exactly when it is not completed.
type Record struct {
	SchemaVersion    string      `json:"schema_version"`
	TurnID           *string     `json:"turn_id"`
	RunID            *string     `json:"run_id"`     // this attempt
	SessionID        *string     `json:"session_id"` // thread or agent
	TraceID          *string     `json:"trace_id"`   // lineage root
	Agent            *string     `json:"agent"`
	Attempt          int         `json:"attempt"` // 1 for the first; 0 before admission
	Outcome          *Outcome    `json:"outcome"`
	Error            *Error      `json:"error"`
	OutputValidation Validation  `json:"output_validation"`
	Repair           *Repair     `json:"repair"`
	Accounting       *Accounting `json:"accounting"`
	Request          *Request    `json:"request"`
	Inputs           []FileRef   `json:"inputs"`
	Outputs          []FileRef   `json:"outputs"`
	ToolCalls        []ToolCall  `json:"tool_calls"`
	// ToolRounds are the calls of the model that ended in tool calls, in
	// order; they and ToolCalls make the conversation that the answer ended.
	ToolRounds []ToolRound `json:"tool_rounds,omitempty"`
	Lineage    *Lineage    `json:"lineage"`
	// Sample says which of several answers to the same input this is; nil when
	// there is one. Its seed is in request.sampling.
	Sample *Sample `json:"sample,omitempty"`
	// Origin is OriginSample for an answer that the sample command asked for:
	// it is no turn of the graph, so that its input still gets one. Empty
	// otherwise.
	Origin string  `json:"origin,omitempty"`
	Timing *Timing `json:"timing"`
	// SettingsSHA256 is the hash of the agent's effective settings.
	SettingsSHA256 *string `json:"settings_sha256"`
}

// Outcome is how an admitted turn ended and with what text.
type Outcome struct {
	Status Status `json:"status"`
	// Output is the answer; after a failure the raw text as far as it came,
	// null when there is none.
	Output       *string             `json:"output"`
	FinishReason *model.FinishReason `json:"finish_reason"`
	Usage        *model.Usage        `json:"usage"`
	Rule         string              `json:"rule,omitempty"`     // with policy_denied
	Limit        string              `json:"limit,omitempty"`    // with limit_exceeded
	Code         Code                `json:"code,omitempty"`     // with failed
	Delivery     model.Delivery      `json:"delivery,omitempty"` // with failed
	Reasoning    string              `json:"reasoning,omitempty"`
	// Logprobs has one entry per token of Output, when sampling.logprobs asked
	// for them and the engine could tell.
	Logprobs []model.TokenLogprob `json:"logprobs,omitempty"`
}

// Error is one clear error: what, where, and what to do about it.
type Error struct {
	Code      Code   `json:"code"`
	Message   string `json:"message"`
	Hint      string `json:"hint,omitempty"`
	File      string `json:"file,omitempty"` // relative to the graph
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	Construct string `json:"construct,omitempty"` // e.g. "uniqueItems"
	Path      string `json:"path,omitempty"`      // JSON pointer in the schema
	// Retry is true when the same turn may succeed later, unchanged.
	Retry bool `json:"retry,omitempty"`
}

// Error prints file:line:col: message; hint.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// ValidationStatus of an answer.
type ValidationStatus string

// The statuses of validation. Invalid also stands for a turn under a
// constraint that ended without a whole answer; NotRequested for free text
// and for a turn that was not admitted.
const (
	Valid        ValidationStatus = "valid"
	Invalid      ValidationStatus = "invalid"
	NotRequested ValidationStatus = "not_requested"
)

// Validation says whether the answer keeps its promise and what held it.
type Validation struct {
	Status      ValidationStatus        `json:"status"`
	EnforcedBy  *constraint.EnforcedBy  `json:"enforced_by"`
	Diagnostics []constraint.Diagnostic `json:"diagnostics"`
}

// RepairStatus of a turn with repair enabled.
type RepairStatus string

// The statuses of repair.
const (
	RepairNotNeeded RepairStatus = "not_needed"
	RepairSucceeded RepairStatus = "succeeded"
	RepairFailed    RepairStatus = "failed"
	RepairBlocked   RepairStatus = "blocked"
)

// BlockedBy says what kept a repair from being tried.
type BlockedBy string

// The budgets a repair shares with its turn; BlockedTruncated means that the
// first answer was cut off, and a cut-off answer is not repaired.
const (
	BlockedDeadline     BlockedBy = "deadline"
	BlockedOutputTokens BlockedBy = "output_tokens"
	BlockedContext      BlockedBy = "context"
	BlockedModelCalls   BlockedBy = "model_calls"
	BlockedTruncated    BlockedBy = "truncated"
)

// Repair is the one bounded second attempt; nil when it is not enabled or the
// turn ended before there was an answer.
type Repair struct {
	Status      RepairStatus `json:"status"`
	Blocked     BlockedBy    `json:"blocked,omitempty"`
	Attempts    string       `json:"attempts"`    // decimal
	Validations string       `json:"validations"` // decimal
	// Rejected is the first answer, when a second was asked for.
	Rejected *string `json:"rejected"`
	// RejectedDiagnostics are what the first answer broke.
	RejectedDiagnostics []constraint.Diagnostic `json:"rejected_diagnostics"`
	// Feedback is the message the model got.
	Feedback *string `json:"feedback"`
}

// Accounting is what the whole turn cost, in decimal strings.
type Accounting struct {
	ModelCalls          string  `json:"model_calls"`
	ToolCalls           string  `json:"tool_calls"`
	Usage               Totals  `json:"usage"`
	CostMicroUSD        *string `json:"cost_microusd"`
	ChargedTokens       *string `json:"charged_tokens"`
	ChargedCostMicroUSD *string `json:"charged_cost_microusd"`
}

// Totals are token counts over all calls of the turn.
type Totals struct {
	InputTokens      *string `json:"input_tokens"`
	OutputTokens     *string `json:"output_tokens"`
	CacheReadTokens  *string `json:"cache_read_input_tokens"`
	CacheWriteTokens *string `json:"cache_write_input_tokens"`
}

// Message is model.Message, so that readers of records need no model.
type Message = model.Message

// Request is everything needed to send the same request again.
type Request struct {
	Messages       []Message      `json:"messages"`
	Prompt         *string        `json:"prompt"` // rendered; null on a server
	TemplateSHA256 *string        `json:"template_sha256"`
	Clock          *time.Time     `json:"clock"` // what the template saw
	Constraint     *Constraint    `json:"constraint"`
	Sampling       model.Sampling `json:"sampling"`
	Tools          []model.Tool   `json:"tools"`
	// DisabledTools are listed tools that this turn went without.
	DisabledTools []DisabledTool `json:"disabled_tools,omitempty"`
	Model         model.Identity `json:"model"`
	// PassedOver are the other models of the turn that did not answer it, in
	// the order they were tried, and why.
	PassedOver  []PassedOver `json:"passed_over,omitempty"`
	Determinism string       `json:"determinism"` // "fast" or "solo"
	// Thinking is the setting that the chat template saw; nil left it alone.
	Thinking *bool `json:"thinking,omitempty"`
}

// Constraint is the promise as it was read.
type Constraint struct {
	Kind    constraint.Kind    `json:"kind"`
	File    string             `json:"file,omitempty"` // the schema file's name
	Source  string             `json:"source"`
	SHA256  string             `json:"sha256"`
	Enforce constraint.Enforce `json:"enforce"`
	Formats constraint.Formats `json:"formats"`
}

// FileRef is a file as it was read or written. Path is relative to the graph,
// with forward slashes.
type FileRef struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// PassedOver is a model that could not be had or could not take the turn.
type PassedOver struct {
	Model   model.Identity `json:"model"`
	Code    Code           `json:"code"`
	Message string         `json:"message"`
}

// DisabledTool is a tool that could not be offered, and why.
type DisabledTool struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// ToolRound is one reply of the model that called tools.
type ToolRound struct {
	Text      string `json:"text"` // beside the calls
	Reasoning string `json:"reasoning,omitempty"`
	Calls     int    `json:"calls"` // how many of ToolCalls, in order, are its own
}

// ToolCall is one call that was made, and what came back. Result is what the
// model read, also when it is the reason of a failure; size and hash are of
// the whole.
type ToolCall struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Arguments    json.RawMessage `json:"arguments"`
	Result       *string         `json:"result"` // bounded; null when the model read none
	ResultSHA256 *string         `json:"result_sha256"`
	ResultBytes  *int64          `json:"result_bytes"`
	Error        string          `json:"error,omitempty"`
	ExitStatus   *int            `json:"exit_status"`
	Milliseconds int64           `json:"milliseconds"`
}

// OriginSample is Record.Origin of what the sample command made.
const OriginSample = "sample"

// Sample is one of several answers to the same input.
type Sample struct {
	Index int `json:"index"` // 0 for the first
	Of    int `json:"of"`
}

// Lineage says which inputs an answer goes back to.
type Lineage struct {
	Roots []FileRef `json:"root_inputs"`
	Hops  int       `json:"hops"`
}

// Timing of the turn. Durations are milliseconds; null is not known.
type Timing struct {
	Started      time.Time `json:"started"` // when inference started
	Finished     time.Time `json:"finished"`
	QueuedMS     *float64  `json:"queued_ms"`
	PrefillMS    *float64  `json:"prefill_ms"`
	FirstTokenMS *float64  `json:"first_token_ms"`
	DecodeMS     *float64  `json:"decode_ms"`
	MaskMS       *float64  `json:"mask_ms"`
	SampleMS     *float64  `json:"sample_ms"`
	ForcedTokens *int      `json:"forced_tokens"`
	ReusedTokens *int      `json:"reused_tokens"`
}
