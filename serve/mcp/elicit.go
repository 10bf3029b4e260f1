package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/agents"
	"agentgraph/tools"
)

// noServerRequests is the version of the protocol from which on a server may
// not ask a client by itself.
const noServerRequests = "2026-07-28"

// maxQuestion bounds the arguments in a question.
const maxQuestion = 4 << 10

// allowSchema is the form that a client shows.
const allowSchema = `{"type": "object", "properties": {"allow": {"type": "boolean", "title": "Allow", "description": "whether the call runs; without it the turn ends"}}, "required": ["allow"]}`

// approver decides about the calls of a respond: the tool approve, and where the
// client can be asked, its user. The first answer counts.
func (s *Server) approver(session *sdk.ServerSession) tools.Approver {
	if !canAsk(session) {
		return s.svc.Desk()
	}
	return &asker{elicitor{session}.ask, s.svc.Desk()}
}

// canAsk reports a client that can be asked while its call runs.
func canAsk(session *sdk.ServerSession) bool {
	p := session.InitializeParams()
	return p != nil && p.ProtocolVersion < noServerRequests && showsForms(p)
}

// showsForms reports a client that shows forms. One that announces only
// addresses to open does not; one that says nothing more of its capability does.
func showsForms(p *sdk.InitializeParams) bool {
	if p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	e := p.Capabilities.Elicitation
	return e.Form != nil || e.URL == nil
}

type asker struct {
	// client asks the client's user; an error means that it did not.
	client func(context.Context, tools.Question) (bool, error)
	desk   *tools.Desk
}

// Approve asks in both ways. The desk takes one decision and no second. It
// returns when nobody is asked any more.
func (a *asker) Approve(ctx context.Context, q tools.Question) (bool, error) {
	q, wait := a.desk.Ask(q)
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if allow, err := a.client(ctx, q); err == nil {
			_ = a.desk.Decide(q.ID, allow) // approve may have been quicker
		}
	}()
	allow, err := wait(ctx)
	cancel()
	<-over
	return allow, err
}

// elicitor asks with elicitation/create.
type elicitor struct{ session *sdk.ServerSession }

func (a elicitor) ask(ctx context.Context, q tools.Question) (bool, error) {
	res, err := a.session.Elicit(ctx, &sdk.ElicitParams{
		Message:         question(q),
		RequestedSchema: json.RawMessage(allowSchema),
	})
	var refused *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.As(err, &refused), errors.Is(err, sdk.ErrConnectionClosed):
		return false, err
	case err != nil:
		return false, nil // an answer that is none allows nothing
	}
	return allowed(res), nil
}

// allowed reports that the user of a client lets a call run.
func allowed(res *sdk.ElicitResult) bool {
	allow, _ := res.Content["allow"].(bool)
	return res.Action == "accept" && allow
}

func question(q tools.Question) string {
	args := string(q.Arguments)
	if len(args) > maxQuestion {
		args = cut(args, maxQuestion) + "…"
	}
	who := "The model"
	if q.Agent != "" {
		who = "The agent " + q.Agent
	}
	return agents.Printable(fmt.Sprintf("%s wants to call the tool %s with %s", who, q.Tool, args))
}
