package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/tools"
)

// maxCallsPerRound bounds the calls of one reply.
const maxCallsPerRound = 32

// converse lets the model call tools until it answers. It returns the answer's
// reply, or nil when the turn is over.
func (r *run) converse(ctx context.Context) *model.Response {
	for round := 1; ; round++ {
		left, over := r.left()
		if over {
			return nil
		}
		last := round > r.req.toolRounds()
		mreq := r.roundRequest(r.msgs, left)
		if last {
			mreq = r.finalRequest(r.msgs, left)
		}
		resp, e := r.round(ctx, mreq)
		switch {
		case e != nil:
			r.fail(ctx, e)
			return nil
		case last && calls(resp):
			r.tooManyRounds(resp)
			return nil
		case last, resp.Finish == model.Length, resp.Finish == model.Refusal:
			return resp
		case !calls(resp):
			if r.twoStep {
				return r.secondStep(ctx)
			}
			return resp
		case len(resp.ToolCalls) > maxCallsPerRound:
			r.exceeded(resp, "tool_calls", fmt.Sprintf("the model called %d tools at once; at most %d are run", len(resp.ToolCalls), maxCallsPerRound), "change the prompt")
			return nil
		}
		if !r.runCalls(ctx, resp) {
			return nil
		}
	}
}

func calls(resp *model.Response) bool {
	return len(resp.ToolCalls) > 0 || resp.Finish == model.FinishToolUse
}

// secondStep asks for the answer under its constraint, after the tools.
func (r *run) secondStep(ctx context.Context) *model.Response {
	left, over := r.left()
	if over {
		return nil
	}
	resp, e := r.round(ctx, r.finalRequest(r.msgs, left))
	switch {
	case e != nil:
		r.fail(ctx, e)
		return nil
	case calls(resp):
		r.tooManyRounds(resp)
		return nil
	}
	return resp
}

// left is what the next call of the model may spend, or ends the turn when
// there is nothing left.
func (r *run) left() (tokens int, over bool) {
	if n := r.req.modelCalls(); r.calls >= n {
		r.exceeded(nil, "model_calls", fmt.Sprintf("the turn has made %d calls of the model and has no answer yet", n),
			"raise limits.model_calls, or lower max_tool_rounds")
		return 0, true
	}
	if r.budget == 0 {
		return 0, false
	}
	tokens = r.budget - int(r.spent)
	if tokens <= 0 {
		r.outcome(nil, record.Outcome{Status: record.LimitExceeded, Limit: "output_tokens"})
		r.rec.Error = &record.Error{Code: record.Truncated,
			Message: fmt.Sprintf("calling tools took all %d tokens of the turn", r.budget), Hint: "raise sampling.max_tokens, or lower max_tool_rounds"}
		return 0, true
	}
	return tokens, false
}

func (r *run) tooManyRounds(resp *model.Response) {
	r.exceeded(resp, "tool_rounds", fmt.Sprintf("the model goes on calling tools after %d rounds", r.req.toolRounds()),
		"raise max_tool_rounds, change the prompt, or use a model that this program holds to a mask")
}

func (r *run) exceeded(resp *model.Response, limit, msg, hint string) {
	r.outcome(resp, record.Outcome{Status: record.LimitExceeded, Limit: limit})
	r.rec.Error = &record.Error{Code: record.CodeLimitExceeded, Message: msg, Hint: hint}
}

// runCalls runs the calls of one reply in their order and appends them to the
// conversation. It reports whether the turn goes on.
func (r *run) runCalls(ctx context.Context, resp *model.Response) bool {
	if len(resp.ToolCalls) == 0 {
		r.outcome(resp, record.Outcome{Status: record.Failed, Code: record.ModelError, Delivery: model.ResponseReceived})
		r.rec.Error = &record.Error{Code: record.ModelError, Message: "the model says it calls a tool, and not which"}
		return false
	}
	reply := model.Message{Role: model.Assistant, Content: resp.Text, Reasoning: resp.Reasoning}
	var results []model.Message
	round := record.ToolRound{Text: resp.Text, Reasoning: resp.Reasoning}
	goesOn := true
	for _, c := range resp.ToolCalls {
		// The ids of all calls of a turn differ; nine letters and digits are
		// what the strictest chat template wants.
		c.ID = fmt.Sprintf("call%05d", len(r.rec.ToolCalls)+1)
		if c.Arguments = trimJSON(c.Arguments); !json.Valid(c.Arguments) {
			quoted, _ := json.Marshal(toUTF8(string(c.Arguments))) // a string has a JSON form
			c.Arguments = quoted
		}
		done, deny := r.runCall(ctx, c)
		if r.req.ToolResult != nil {
			if err := r.req.ToolResult(done); err != nil && done.Error == "" {
				done.Error = "the result could not be put into tool_output: " + err.Error()
			}
		}
		r.rec.ToolCalls = append(r.rec.ToolCalls, done)
		round.Calls++
		r.auditCall(done)
		if deny != nil {
			r.outcome(resp, record.Outcome{Status: record.PolicyDenied, Rule: deny.Construct})
			r.rec.Error = deny
			goesOn = false
			break
		}
		if ctx.Err() != nil {
			r.fail(ctx, &model.Error{Kind: model.Cancelled, Delivery: model.ResponseReceived, Err: ctx.Err(), Partial: resp})
			goesOn = false
			break
		}
		reply.ToolCalls = append(reply.ToolCalls, c)
		results = append(results, model.Message{Role: model.ToolRole, Content: *done.Result, ToolCallID: c.ID, Name: c.Name})
	}
	r.rec.ToolRounds = append(r.rec.ToolRounds, round)
	r.msgs = append(append(slices.Clone(r.msgs), reply), results...)
	return goesOn
}

func trimJSON(args json.RawMessage) json.RawMessage {
	if s := strings.TrimSpace(string(args)); s != "" && s != "null" {
		return json.RawMessage(s)
	}
	return json.RawMessage("{}")
}

// runCall makes one call. What goes wrong with it the model reads as its
// result; deny ends the turn.
func (r *run) runCall(ctx context.Context, c model.ToolCall) (done record.ToolCall, deny *record.Error) {
	done = record.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments}
	wrong := func(format string, args ...any) {
		done.Error = fmt.Sprintf(format, args...)
		text := "error: " + done.Error
		done.Result = &text
	}
	o := r.offers[c.Name]
	switch {
	case r.denied[c.Name]:
		done.Error = "denied by its policy"
		return done, denial(c.Name, tools.Deny, "its policy is deny")
	case o == nil:
		wrong("there is no tool %q; there are %s", c.Name, strings.Join(r.names(), ", "))
		return done, nil
	}
	if v := o.args.Validate(ctx, string(c.Arguments)); !v.Valid {
		wrong("the arguments do not fit%s", firstFinding(v))
		return done, nil
	}
	if o.Policy == tools.Ask {
		if ok, why := r.approved(ctx, c); !ok {
			done.Error = why
			if ctx.Err() != nil {
				return done, nil // the caller ends the turn
			}
			return done, denial(c.Name, tools.Ask, why)
		}
	}
	started := r.req.now()
	res := o.Run(ctx, tools.Call{ID: c.ID, Arguments: c.Arguments, From: r.caller()})
	done.Milliseconds = max(r.req.now().Sub(started).Milliseconds(), 0)
	done.Result, done.ResultBytes, done.ResultSHA256 = &res.Text, res.Bytes, orNull(res.SHA256)
	done.Error, done.ExitStatus = res.Failed, res.ExitStatus
	return done, nil
}

func (r *run) names() []string {
	names := make([]string, len(r.specs))
	for i, s := range r.specs {
		names[i] = s.Name
	}
	return names
}

func firstFinding(v constraint.Verdict) string {
	if len(v.Diagnostics) == 0 {
		return ""
	}
	d := v.Diagnostics[0]
	return fmt.Sprintf(": %s at %q (schema %q)", d.Code, d.Instance, d.Schema)
}

func (r *run) caller() tools.Caller {
	c := tools.Caller{Agent: r.req.Agent, TurnID: r.req.TurnID}
	if r.req.Lineage != nil {
		c.Hops = r.req.Lineage.Hops
	}
	return c
}

func (r *run) approved(ctx context.Context, c model.ToolCall) (ok bool, why string) {
	if r.req.Approver == nil {
		return false, "its policy is ask, and there is nobody to ask here"
	}
	ok, err := r.req.Approver.Approve(ctx, tools.Question{Agent: r.req.Agent, TurnID: r.req.TurnID,
		Tool: c.Name, Arguments: c.Arguments, Asked: r.req.now().UTC()})
	switch {
	case err != nil:
		return false, "its policy is ask, and nobody decided: " + err.Error()
	case !ok:
		return false, "it was not approved"
	}
	return true, ""
}

func denial(tool string, p tools.Policy, why string) *record.Error {
	return &record.Error{Code: record.CodePolicyDenied, Construct: fmt.Sprintf("tools.%s: %s", tool, p),
		Message: fmt.Sprintf("the call of the tool %q was not run: %s", tool, why), Hint: "change its policy under tools:, or change the prompt"}
}

func (r *run) auditCall(c record.ToolCall) {
	if r.req.Audit == nil {
		return
	}
	e := r.req.event(EventToolCall)
	e.RunID = *r.rec.RunID
	e.ToolCall = &AuditToolCall{ID: c.ID, Name: c.Name, Arguments: NewAuditText(string(c.Arguments)), Error: NewAuditText(c.Error).Text}
	if c.ResultSHA256 != nil {
		e.ToolCall.ResultSHA256 = *c.ResultSHA256
	}
	r.req.audit(e)
}
