package turn

import (
	"context"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/tools"
)

// DefaultShapedTokens bounds a shaped answer when Sampling.MaxTokens is 0: a
// small model can loop inside an open string. A free answer has what the
// context leaves.
const DefaultShapedTokens = 1024

// DefaultToolRounds bounds the replies that may call tools.
const DefaultToolRounds = 8

// DefaultModelCalls is the budget when Request.ModelCalls is 0 and no other
// number of tool rounds is set: these, the answer and its repair.
const DefaultModelCalls = DefaultToolRounds + 2

// Request is one turn, with everything it depends on. Run does not keep it
// and does not change it.
type Request struct {
	// Names of the turn; an empty one is null in the record.
	Agent, TurnID, RunID, SessionID, TraceID string
	// Attempt is 1 for the first; 0 counts as 1.
	Attempt int

	// System holds the texts of the system parts in order, each with trailing
	// newlines trimmed. Prompt is the setting `prompt:`.
	System []string
	Prompt string
	// History holds earlier turns, oldest first.
	History []Exchange
	// User is the input's text, byte for byte.
	User   string
	Inputs []record.FileRef

	// Spec is the promise; nil asks for free text. SchemaFile is the name the
	// record keeps; empty means Spec.File.
	Spec              *constraint.Spec
	SchemaFile        string
	ConstraintOptions constraint.Options
	// SchemaInPrompt adds the paragraph with the constraint's source to the
	// system message.
	SchemaInPrompt bool

	// Sampling of the answer; MaxTokens 0 is the default rule, see
	// DefaultShapedTokens. It bounds all answer tokens of the turn.
	Sampling model.Sampling
	Thinking *bool

	// Tools are the entries of `tools:`, called from Place. Toolbox opens them
	// and keeps what it opened; with nil they are opened for this turn alone.
	Tools   []tools.Config
	Place   tools.Place
	Toolbox *tools.Box
	// MoreTools are offered after those of Tools, whose names are taken. What
	// cannot be had among them is an offer that is Unfit and fails no turn.
	MoreTools func(ctx context.Context, taken func(name string) bool) []*tools.Offer
	// MaxToolRounds bounds the replies that may call tools; 0 means
	// DefaultToolRounds, less than 0 none.
	MaxToolRounds int
	// ToolFormat is how calls stand in the model's text; empty leaves it to
	// the model.
	ToolFormat constraint.CallFormat
	// Approver decides about calls whose policy is to ask; with nil they are
	// denied.
	Approver tools.Approver
	// ToolResult is told of every call that was made, with its result. What
	// goes wrong there is noted with the call.
	ToolResult func(call record.ToolCall) error

	// Solo asks for the same answer every time (`determinism: solo`).
	Solo   bool
	Repair RepairOptions

	// Timeout bounds the whole turn; 0 leaves it to the context.
	Timeout time.Duration
	// ModelCalls bounds the calls of the model; 0 means DefaultModelCalls.
	ModelCalls int

	Lineage        *record.Lineage
	SettingsSHA256 string

	Model model.Model
	// Progress is called from the generating goroutine and must not block.
	Progress func(model.Progress)
	// Audit gets one event per prompt and per refusal.
	Audit func(Event)
	// Clock is time.Now unless a test says otherwise.
	Clock func() time.Time
}

// Exchange is an earlier turn of the same conversation.
type Exchange struct {
	User, Answer string
}

// RepairOptions are the settings of the one bounded second attempt.
type RepairOptions struct {
	Enabled bool
	// MaxFeedbackBytes bounds the message that says what is wrong: 512 to
	// 4096; 0 means 4096.
	MaxFeedbackBytes int
}

func (r *Request) now() time.Time {
	if r.Clock != nil {
		return r.Clock()
	}
	return time.Now()
}

// maxTokens is the output budget of the turn; 0 is what the context leaves.
func (r *Request) maxTokens() int {
	if r.Sampling.MaxTokens == 0 && r.Spec != nil {
		return DefaultShapedTokens
	}
	return r.Sampling.MaxTokens
}

func (r *Request) modelCalls() int {
	if r.ModelCalls == 0 {
		return r.toolRounds() + 2
	}
	return r.ModelCalls
}

func (r *Request) toolRounds() int {
	if r.MaxToolRounds == 0 {
		return DefaultToolRounds
	}
	return max(r.MaxToolRounds, 0)
}

func (r *Request) schemaFile() string {
	if r.SchemaFile == "" && r.Spec != nil {
		return r.Spec.File
	}
	return r.SchemaFile
}
