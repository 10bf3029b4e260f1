package runner

import (
	"os"
	"slices"
	"strings"
	"time"

	"agentgraph/runner/internal/ledger"
	"agentgraph/tools"
)

// Status is what a runner is doing.
type Status struct {
	Root    string        `json:"root"`
	PID     int           `json:"pid"`
	Started time.Time     `json:"started"`
	Agents  []AgentStatus `json:"agents"` // by name
	// Polled folders are looked at now and then instead of being watched.
	Polled  int  `json:"polled_folders"`
	Watched int  `json:"folders"`
	Ending  bool `json:"ending"` // nothing new starts
	// Waiting are the calls of tools that wait for approve.
	Waiting []tools.Question `json:"waiting,omitempty"`
}

// AgentStatus is what one agent is doing.
type AgentStatus struct {
	Name  string `json:"name"`
	State string `json:"state"` // running, idle, paused or stopped
	Error string `json:"error,omitempty"`
	Model string `json:"model"`
	// Pending inputs wait for their turn, Settling files still change.
	Pending  int          `json:"pending"`
	Settling int          `json:"settling"`
	Running  []TurnStatus `json:"running"`
	// Retrying turns wait for another attempt; Held ones have an answer that
	// cannot be published now.
	Retrying   int      `json:"retrying"`
	Held       int      `json:"held"`
	Unreadable int      `json:"unreadable"`
	Incomplete []string `json:"incomplete,omitempty"` // sets of join: all
	Done       int      `json:"done"`
	Failed     int      `json:"failed"`
	Refused    int      `json:"refused"`
	// Rates of the last minute.
	TurnsPerMinute  int `json:"turns_per_minute"`
	TokensPerMinute int `json:"tokens_per_minute"`
}

// TurnStatus is a turn that runs.
type TurnStatus struct {
	Turn            string        `json:"turn"`
	Inputs          []string      `json:"inputs"`
	Attempt         int           `json:"attempt"`
	Tokens          int           `json:"tokens"`
	TokensPerSecond float64       `json:"tokens_per_second"`
	Elapsed         time.Duration `json:"elapsed_ns"`
}

// Status says what the runner is doing now.
func (r *Runner) Status() Status {
	now := r.now()
	s := Status{Root: r.root, PID: os.Getpid(), Started: r.started, Agents: []AgentStatus{}, Waiting: r.desk.Waiting()}
	if r.watcher != nil {
		s.Polled, s.Watched = r.watcher.Polled()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Ending = r.stopping
	for _, st := range r.agents {
		a := st.current()
		x := AgentStatus{
			Name: st.name, State: "idle", Error: errText(a.Err), Model: a.Settings.Model,
			Pending: len(st.queue), Running: []TurnStatus{}, Retrying: len(st.waiting), Held: len(st.stuck),
			Incomplete: st.joiner.incomplete(), Done: st.counts[ledger.Done], Failed: st.counts[ledger.Failed], Refused: st.counts[ledger.Refused],
		}
		for _, in := range st.intakes {
			x.Settling += in.waiting
			in.mu.Lock()
			x.Unreadable += len(in.blocked)
			in.mu.Unlock()
		}
		x.Pending += len(st.ready)
		for j := range st.jobs {
			t := j.view
			if t.Turn == "" {
				x.Pending++
				continue
			}
			t.Tokens = j.tokens
			if !j.since.IsZero() {
				t.Elapsed = now.Sub(j.since)
				t.TokensPerSecond = perSecond(j.tokens, t.Elapsed)
			}
			x.Running = append(x.Running, t)
		}
		slices.SortFunc(x.Running, func(a, b TurnStatus) int { return strings.Compare(a.Turn, b.Turn) })
		x.TurnsPerMinute, x.TokensPerMinute = st.rate.perMinute(now)
		switch {
		case a.Err != nil:
			x.State = "stopped"
		case st.paused:
			x.State = "paused"
		case len(x.Running) > 0:
			x.State = "running"
		}
		s.Agents = append(s.Agents, x)
	}
	slices.SortFunc(s.Agents, func(a, b AgentStatus) int { return strings.Compare(a.Name, b.Name) })
	return s
}
