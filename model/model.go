// Package model is what a turn asks of a language model, whatever runs it.
//
// A Model generates one reply per call of Generate. The rooms below
// (model/local, model/openai, model/plugin, model/script) implement it; turn
// is its caller. A Model is safe for use by many goroutines.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"agentgraph/constraint"
)

// Role of a message.
type Role string

// The roles of a conversation.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one entry of a conversation.
type Message struct {
	Role       Role       `json:"role"`
	Content    string     `json:"content"`
	Reasoning  string     `json:"reasoning,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Name       string     `json:"name,omitempty"`
}

// Tool describes a function the model may call. Parameters is a JSON Schema.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// ToolCall is one call the model asked for. Arguments is a JSON object.
type ToolCall struct {
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Sampling holds the settings of the token choice. Temperature 0 is greedy.
// A zero TopK, TopP or MinP means that filter is off.
type Sampling struct {
	Temperature float64 `json:"temperature"`
	TopK        int     `json:"top_k,omitempty"`
	TopP        float64 `json:"top_p,omitempty"`
	MinP        float64 `json:"min_p,omitempty"`
	// Seed makes a sampled answer repeatable; nil means one is drawn and
	// returned in Response.Seed.
	Seed *uint64 `json:"seed,omitempty"`
	// MaxTokens bounds the answer; 0 means what the context leaves.
	MaxTokens int `json:"max_tokens,omitempty"`
	Logprobs  int `json:"logprobs,omitempty"`
}

// Request is one call of a model.
type Request struct {
	Messages []Message
	// Tools are shown to the model. With NoCalls it has been told of them and
	// may call none any more.
	Tools   []Tool
	NoCalls bool
	// CallFormat is set where calls are part of the text that Constraint
	// allows (constraint.WithCalls); the model takes them out of it. Where it
	// is empty, a model with tools brings calls in a way of its own.
	CallFormat constraint.CallFormat
	Constraint *constraint.Constraint // nil: free text
	Sampling   Sampling
	// Solo asks for the same answer every time: alone in the batch, no prefix
	// reuse, no speculation.
	Solo bool
	// Thinking switches a template's reasoning on or off; nil leaves it.
	Thinking *bool
	// Progress is called from the generating goroutine after each step; it
	// must not block. Nil is allowed.
	Progress func(Progress)
}

// Thinking models write their reasoning between these markers, before they
// answer. It is outside the constraint and no part of the answer.
const (
	ThoughtOpens  = "<think>"
	ThoughtCloses = "</think>"
)

// Progress is what one step added.
type Progress struct {
	Text      string // text of the answer since the last call
	Reasoning string
	Tokens    int // answer tokens so far
}

// FinishReason says why a reply ended.
type FinishReason string

// The reasons. Length means an output limit cut the reply off.
const (
	Stop          FinishReason = "stop"
	Length        FinishReason = "length"
	FinishToolUse FinishReason = "tool_calls"
	Refusal       FinishReason = "refusal"
)

// Usage counts tokens. A nil pointer is "not known", never zero.
type Usage struct {
	InputTokens      *int64 `json:"input_tokens"`
	OutputTokens     *int64 `json:"output_tokens"`
	CacheReadTokens  *int64 `json:"cache_read_input_tokens"`
	CacheWriteTokens *int64 `json:"cache_write_input_tokens"`
}

// Rendered is the exact prompt an engine reads.
type Rendered struct {
	Prompt string
	// Tokens is the prompt's length, Context the most the engine can hold;
	// 0 means not known.
	Tokens, Context int
	// TemplateSHA256 names the chat template; empty where there is none.
	TemplateSHA256 string
	// Clock is the time the template saw; zero where it asked for none.
	Clock time.Time
}

// Stats is where the time of one call went. Engines fill what they know.
type Stats struct {
	Queued, Prefill, Decode, Mask, Sample time.Duration
	FirstToken                            time.Duration // from the start of the call
	ForcedTokens                          int           // tokens the grammar left no choice about
	DraftedTokens                         int           // chosen tokens that an earlier step had decoded already
	ReusedTokens                          int           // prompt tokens taken from an earlier prefill
}

// Response is one reply.
type Response struct {
	Text      string
	Reasoning string
	ToolCalls []ToolCall
	Finish    FinishReason
	Usage     Usage
	Seed      *uint64
	Rendered  Rendered
	Stats     Stats
	// Logprobs has one entry per answer token when Sampling.Logprobs is above
	// zero and the engine can tell; nil otherwise.
	Logprobs []TokenLogprob
	// EnforcedBy is how the engine held Request.Constraint: ByMask when every
	// token was masked, ByServerValidation when a server was asked to, empty
	// when it was not constrained at all.
	EnforcedBy constraint.EnforcedBy
}

// TokenLogprob is how likely the model itself found a token of its answer:
// natural logarithms of the probabilities at temperature 1, before any mask or
// filter.
type TokenLogprob struct {
	Token string `json:"token"`
	// Bytes are the token's, where it is not whole UTF-8 and Token therefore
	// inexact.
	Bytes   []byte  `json:"bytes,omitempty"`
	Logprob float64 `json:"logprob"`
	// Top are the likeliest tokens, at most Sampling.Logprobs of them, likeliest
	// first; their own Top is nil.
	Top []TokenLogprob `json:"top_logprobs,omitempty"`
}

// Capabilities is what a model can do.
type Capabilities struct {
	constraint.Engine
	Tools bool
	// CallFormat is how this model writes calls into its text, where it does;
	// its engine then holds them to a mask.
	CallFormat constraint.CallFormat
	Streaming  bool
	Context    int // tokens; 0: not known
	Parallel   int // requests served at once; at least 1
}

// Identity names a model in a record.
type Identity struct {
	Engine        string `json:"engine"`          // "llama.cpp", "script", "vllm" …
	Name          string `json:"name"`            // file name, or the server's model name
	Alias         string `json:"alias,omitempty"` // what the settings call it
	WeightsSHA256 string `json:"weights_sha256,omitempty"`
	Server        string `json:"server,omitempty"` // without user info or query
}

// String is the name that people know the model by.
func (i Identity) String() string {
	if i.Alias != "" {
		return i.Alias
	}
	return i.Name
}

// Model generates replies.
type Model interface {
	// Generate returns one reply, or an *Error. A reply cut off by an output
	// limit is no error: Finish is Length. When ctx ends, generation stops
	// within one step and the error's Kind is Cancelled or TimedOut.
	Generate(ctx context.Context, req *Request) (*Response, error)
	// Render returns the prompt Generate would send, without a token. Models
	// that cannot know it return ErrNotRendered.
	Render(ctx context.Context, req *Request) (Rendered, error)
	Capabilities() Capabilities
	Identity() Identity
	// Close frees what the model holds; it is idempotent.
	Close() error
}

// Admitter is a Model that finds out by itself whether it can hold a
// constraint, because its capabilities are not known without asking a server,
// or because its engine holds only some constraints of a kind.
type Admitter interface {
	// Admit returns an *Error. Its kind is Capability, around a
	// *constraint.Refusal, when the constraint cannot be held; any other kind
	// means that this could not be found out now, which Generate then reports.
	Admit(ctx context.Context, c *constraint.Constraint) error
}

// ErrorKind sorts failures of a model call.
type ErrorKind string

// The kinds of failure.
const (
	Unavailable     ErrorKind = "unavailable"      // cannot be loaded or reached
	ContextOverflow ErrorKind = "context_overflow" // prompt too long; nothing generated
	Refused         ErrorKind = "refused"          // a server declined to answer
	Cancelled       ErrorKind = "cancelled"
	TimedOut        ErrorKind = "timed_out"
	Capability      ErrorKind = "capability" // the engine cannot hold the constraint
	Failed          ErrorKind = "failed"
)

// Delivery says how far a failed call got.
type Delivery string

// The stages of delivery.
const (
	NotSent          Delivery = "not_sent"
	MayHaveBeenSent  Delivery = "may_have_been_sent"
	ResponseReceived Delivery = "response_received"
)

// Error is a failed model call. Partial holds what was generated before it.
type Error struct {
	Kind     ErrorKind
	Delivery Delivery
	Model    string // the model's name
	Err      error
	Partial  *Response
	// Retry is true when the same call may work later.
	Retry bool
}

func (e *Error) Error() string {
	if e.Model == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("model %s: %v", e.Model, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }
