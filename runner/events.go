package runner

import (
	"time"

	"agentgraph/record"
	"agentgraph/tools"
)

// EventKind names what happened.
type EventKind string

// The kinds of events.
const (
	TurnStarted  EventKind = "started"
	TurnProgress EventKind = "progress"
	TurnFinished EventKind = "finished"
	TurnRefused  EventKind = "refused"
	TurnFailed   EventKind = "failed"   // for good, or Message says what becomes of the answer; Error says why
	TurnRetrying EventKind = "retrying" // an attempt or a publish failed; After says when the next one starts, 0: in the next run
	AgentAdded   EventKind = "agent_added"
	AgentChanged EventKind = "agent_changed"
	AgentRemoved EventKind = "agent_removed"
	AgentStopped EventKind = "agent_stopped" // its settings are wrong; Error says how
	HopsReached  EventKind = "hops_reached"  // a file was not taken because of max_hops
	// InputIgnored is a file that somebody may have meant as an input, and why
	// it is none: the first one of each folder.
	InputIgnored EventKind = "input_ignored"
	// ApprovalWanted is a call of a tool that waits for approve; Approval has
	// its id.
	ApprovalWanted EventKind = "approval_wanted"
	Problem        EventKind = "problem" // something that is not about one turn
	Ready          EventKind = "ready"   // all folders were read once; what comes now is new
)

// Event is something a person may want to see. It marshals to one JSON line.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    EventKind `json:"event"`
	Agent   string    `json:"agent,omitempty"`
	Turn    string    `json:"turn,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Inputs  []string  `json:"inputs,omitempty"` // relative to the graph
	Output  string    `json:"output,omitempty"` // relative to the graph
	// Model is what answered, where it is not the agent's first.
	Model string `json:"model,omitempty"`
	// Tokens of the answer so far, and how fast they come.
	Tokens          int             `json:"tokens,omitempty"`
	TokensPerSecond float64         `json:"tokens_per_second,omitempty"`
	Elapsed         time.Duration   `json:"elapsed_ns,omitempty"` // since the turn started
	After           time.Duration   `json:"after_ns,omitempty"`
	Error           *record.Error   `json:"error,omitempty"`
	Approval        *tools.Question `json:"approval,omitempty"`
	Message         string          `json:"message,omitempty"`
	Hint            string          `json:"hint,omitempty"`
}

// progressEvery is the shortest time between two progress events of a turn.
const progressEvery = 100 * time.Millisecond

func (r *Runner) emit(e Event) {
	if r.cfg.Events == nil {
		return
	}
	e.Time = r.now()
	r.eventMu.Lock()
	defer r.eventMu.Unlock()
	r.cfg.Events(e)
}
