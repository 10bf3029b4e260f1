package serve

import (
	"context"
	"fmt"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/tools"
	"agentgraph/turn"
)

// Call is one call of a model. What is nil or empty is left to the settings:
// those of Agent, else the defaults of the graph.
type Call struct {
	// Prompt is the user's message.
	Prompt string
	// System is the text of the system message; it takes the place of the
	// agent's system folder.
	System string
	// Agent names an agent whose system folder, schema file, tools and
	// settings the call takes. It gets no turn by it.
	Agent string
	// Model is a name from models:, a path that ends in .gguf, or script:FILE.
	// Confined lets it name no file outside the graph; a caller that is not
	// trusted with paths could otherwise have any file read.
	Model    string
	Confined bool
	// Spec is what the answer is held to, instead of what the settings say.
	Spec *constraint.Spec
	// Free drops the promise that the settings or the agent make.
	Free bool
	// Enforce and Formats are words of the settings output.enforce and
	// output.formats.
	Enforce, Formats string
	SchemaInPrompt   *bool
	Repair           *bool
	MaxOutputTokens  *int
	Timeout          *time.Duration
	Seed             *uint64
	Temperature      *float64
	Logprobs         *int
	Solo             *bool

	// Thread goes on with a conversation and adds to it: the questions and
	// the answers, never a schema. History shows the model only its last
	// exchanges; 0 means all of them.
	Thread  string
	History *int
	// SessionID stands in the record; empty means the thread's name.
	SessionID string

	// Tools names those the model may call: of the settings, built-ins, or
	// programs. Empty means all of the settings, NoTools none.
	Tools   []string
	NoTools bool
	// MoreTools are tools of the caller's own, offered after those of the
	// settings; policy is what client_tools says of them. See turn.Request.
	MoreTools func(ctx context.Context, policy tools.Policy, taken func(name string) bool) []*tools.Offer
	// Approver decides about tools that ask; without one they are denied.
	Approver tools.Approver
	// ToolResult is told of every call of a tool that was made.
	ToolResult func(record.ToolCall)

	// Started is told once, before the model is asked. Progress is told of each
	// step; it must not block.
	Started  func(Started)
	Progress func(model.Progress)
}

// Started is what a call came to be under the settings.
type Started struct {
	Turn   string
	Model  string // the name that was resolved
	Shaped bool   // the answer is held to a promise
}

// Respond runs one call and returns its record: an answer, a failure or a
// refusal. The error is for what leaves no turn at all: an *ArgumentError, or
// settings that cannot be read.
func (s *Service) Respond(ctx context.Context, c Call) (*record.Record, error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	req, names, refused, err := s.request(&c)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return turn.Refuse(req, refused), nil
	}
	if c.Started != nil {
		c.Started(Started{Turn: req.TurnID, Model: names[0], Shaped: req.Spec != nil})
	}
	remember := func(*record.Record) error { return nil }
	if c.Thread != "" {
		thread, err := s.thread(c.Thread)
		if err != nil {
			return nil, err
		}
		unlock, err := thread.Lock(ctx)
		if err != nil && ctx.Err() != nil {
			return turn.Ended(ctx, s.unopened(req, names[0])), nil
		}
		if err != nil {
			return nil, err
		}
		defer unlock()
		if remember, err = converse(req, thread, or(c.History, 0)); err != nil {
			return nil, err
		}
	}
	// A schema that is refused needs no model.
	rec := s.earlyRefusal(ctx, req, names[0])
	if rec == nil {
		var sources []turn.Source
		for _, name := range names {
			sources = append(sources, turn.Source{Name: name, Open: func(ctx context.Context) (model.Model, error) {
				return s.cfg.Models.Model(ctx, name)
			}})
		}
		if rec = turn.RunFirst(ctx, req, sources, turn.Run); rec.Outcome == nil && ctx.Err() != nil {
			rec = turn.Ended(ctx, s.unopened(req, names[0]))
		}
	}
	if err := remember(rec); err != nil {
		s.warn(fmt.Errorf("the thread was not written: %w", err))
	}
	return rec, nil
}
