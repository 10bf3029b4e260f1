package turn

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
)

// EventType names an audit event.
type EventType string

// The audit events.
const (
	EventPrompt   EventType = "prompt"
	EventRefusal  EventType = "refusal"
	EventToolCall EventType = "tool_call"
	EventPublish  EventType = "publish"
)

// auditTextBytes bounds one text in an event; the record has it whole.
const auditTextBytes = 8 << 10

// Event is one line of the audit log. It never holds a key or a password:
// they are no part of a Request.
type Event struct {
	Time      time.Time `json:"time"`
	Type      EventType `json:"event"`
	Agent     string    `json:"agent,omitempty"`
	TurnID    string    `json:"turn_id,omitempty"`
	RunID     string    `json:"run_id,omitempty"`
	SessionID string    `json:"session_id,omitempty"`
	TraceID   string    `json:"trace_id,omitempty"`

	Model      *model.Identity  `json:"model,omitempty"`      // prompt
	Call       int              `json:"call,omitempty"`       // prompt: 1 for the first call of the turn
	Messages   []AuditMessage   `json:"messages,omitempty"`   // prompt
	Constraint *AuditConstraint `json:"constraint,omitempty"` // prompt
	Error      *record.Error    `json:"error,omitempty"`      // refusal
	Output     *record.FileRef  `json:"output,omitempty"`     // publish
	Inputs     []record.FileRef `json:"inputs,omitempty"`     // publish, refusal
	ToolCall   *AuditToolCall   `json:"tool_call,omitempty"`  // tool_call
}

// AuditText is a text with its hash; Text is cut after 8 KiB, Bytes and
// SHA256 are those of the whole.
type AuditText struct {
	Text   string `json:"text"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// AuditMessage is one message of a prompt.
type AuditMessage struct {
	Role model.Role `json:"role"`
	AuditText
}

// AuditConstraint is what an answer was held to.
type AuditConstraint struct {
	Kind       constraint.Kind       `json:"kind"`
	File       string                `json:"file,omitempty"`
	EnforcedBy constraint.EnforcedBy `json:"enforced_by"`
	AuditText
}

// AuditToolCall is a tool call without its result's text.
type AuditToolCall struct {
	ID           string    `json:"id,omitempty"`
	Name         string    `json:"name"`
	Arguments    AuditText `json:"arguments"`
	ResultSHA256 string    `json:"result_sha256,omitempty"`
	Error        string    `json:"error,omitempty"`
}

// NewAuditText cuts text for an event.
func NewAuditText(text string) AuditText {
	sum := sha256.Sum256([]byte(text))
	t := AuditText{Text: text, Bytes: len(text), SHA256: hex.EncodeToString(sum[:])}
	if len(text) > auditTextBytes {
		cut := auditTextBytes
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		t.Text = strings.Clone(text[:cut])
	}
	return t
}

// PublishEvent is the event of an answer that became a file.
func PublishEvent(req *Request, output record.FileRef) Event {
	e := req.event(EventPublish)
	e.Output = &output
	e.Inputs = req.Inputs
	return e
}

func (r *Request) event(t EventType) Event {
	return Event{
		Time: r.now().UTC(), Type: t, Agent: r.Agent, TurnID: r.TurnID,
		RunID: r.RunID, SessionID: r.SessionID, TraceID: r.TraceID,
	}
}

func (r *Request) audit(e Event) {
	if r.Audit != nil {
		r.Audit(e)
	}
}
