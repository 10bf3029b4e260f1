package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"agentgraph/agents"
	"agentgraph/record"
	"agentgraph/runner"
)

// eventPrinter shows what a runner does. Answers are data: a line each on
// stdout, or with --json every event as one object. Everything else is for
// people and goes to stderr; a terminal also sees running turns.
type eventPrinter struct {
	stdout io.Writer
	stderr io.Writer
	live   *live
	json   *json.Encoder // nil without --json
	quiet  bool          // no lines about what is not a turn
	tokens map[string]eventTokens
}

type eventTokens struct {
	n    int
	rate float64
}

func (a *app) newEventPrinter() *eventPrinter {
	p := &eventPrinter{stdout: a.stdout, stderr: a.stderr, live: newLive(a.stderr), tokens: map[string]eventTokens{}}
	if a.json {
		p.json = json.NewEncoder(a.stdout)
		p.json.SetEscapeHTML(false)
	}
	return p
}

// print shows one event. The runner calls it one event at a time.
func (p *eventPrinter) print(e runner.Event) {
	if p.json != nil {
		p.json.Encode(e)
	}
	label := eventLabel(e.Agent, e.Inputs)
	switch e.Kind {
	case runner.TurnStarted:
		p.live.update(e.Turn, label, 0)
	case runner.TurnProgress:
		p.tokens[e.Turn] = eventTokens{e.Tokens, e.TokensPerSecond}
		p.live.update(e.Turn, label, e.Tokens)
	case runner.TurnFinished:
		p.end(e)
		if p.json == nil {
			p.live.print(p.stdout, label+" → "+agents.Printable(e.Output)+p.cost(e)+"\n")
		}
	case runner.TurnRefused:
		p.end(e)
		p.say(label, "refused", e)
	case runner.TurnFailed:
		p.end(e)
		what := "failed"
		if e.Message != "" {
			what += ", " + e.Message
		}
		p.say(label, what, e)
	case runner.TurnRetrying:
		p.end(e)
		what := fmt.Sprintf("attempt %d failed, ", e.Attempt)
		if e.Error != nil && e.Error.Code == record.PublishFailed {
			what = "publish failed, "
		}
		if e.After > 0 {
			what += "again in " + e.After.Round(time.Millisecond).String()
		} else {
			what += e.Message
		}
		p.say(label, what, e)
	case runner.AgentStopped:
		p.say(e.Agent, "stopped", e)
	case runner.HopsReached:
		p.say(label, "not taken", e)
	case runner.InputIgnored:
		p.say(label, "no input", e)
	case runner.ApprovalWanted:
		p.say(label, "waiting", e)
	case runner.Problem:
		p.say(label, "problem", e)
	case runner.AgentAdded, runner.AgentChanged, runner.AgentRemoved:
		if !p.quiet {
			p.say(e.Agent, strings.TrimPrefix(string(e.Kind), "agent_"), e)
		}
	case runner.Ready:
		if !p.quiet {
			p.say("", "watching", e)
		}
	}
}

// eventLabel names a turn: its agent and its input, or the first of several.
func eventLabel(agent string, inputs []string) string {
	label := agent
	if len(inputs) > 0 {
		label += "  " + path.Base(inputs[0])
		if n := len(inputs) - 1; n > 0 {
			label += fmt.Sprintf(" (+%d)", n)
		}
	}
	return agents.Printable(label)
}

func (p *eventPrinter) end(e runner.Event) {
	p.live.done(e.Turn)
	if e.Tokens == 0 {
		return
	}
	p.tokens[e.Turn] = eventTokens{e.Tokens, e.TokensPerSecond}
}

// cost is "  (41 tokens, 82.3 tokens/s, 0.6 s)", as far as it is known.
func (p *eventPrinter) cost(e runner.Event) string {
	t := p.tokens[e.Turn]
	delete(p.tokens, e.Turn)
	var parts []string
	if t.n > 0 {
		parts = append(parts, counted(t.n, "token"))
	}
	if t.rate > 0 {
		parts = append(parts, fmt.Sprintf("%.1f tokens/s", t.rate))
	}
	if e.Elapsed > 0 {
		parts = append(parts, fmt.Sprintf("%.2f s", e.Elapsed.Seconds()))
	}
	if e.Model != "" {
		parts = append(parts, "answered by "+agents.Printable(e.Model))
	}
	if len(parts) == 0 {
		return ""
	}
	return "  (" + strings.Join(parts, ", ") + ")"
}

// say writes one line for people.
func (p *eventPrinter) say(label, what string, e runner.Event) {
	delete(p.tokens, e.Turn)
	text := what
	if label != "" {
		text = label + ": " + what
	}
	switch {
	case e.Error != nil:
		text += ": " + recordErrorText(e.Error)
	case e.Message != "":
		text += ": " + e.Message
		if e.Hint != "" {
			text += "; " + e.Hint
		}
	}
	p.live.print(p.stderr, agents.Printable(text)+"\n")
}
