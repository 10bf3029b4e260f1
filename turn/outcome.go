package turn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
)

// outcome sets o with the text and usage of resp, which may be nil.
func (r *run) outcome(resp *model.Response, o record.Outcome) {
	if resp != nil {
		if resp.Text != "" || resp.Finish != "" {
			o.Output = &resp.Text
		}
		if resp.Finish != "" {
			o.FinishReason = &resp.Finish
		}
		usage := resp.Usage
		o.Usage = &usage
		o.Reasoning = resp.Reasoning
		if o.Output != nil {
			o.Logprobs = finite(resp.Logprobs)
		}
	}
	r.rec.Outcome = &o
}

// finite makes log probabilities fit for JSON, which has no infinity: a token
// that a model rules out gets the least number there is.
func finite(tokens []model.TokenLogprob) []model.TokenLogprob {
	out := slices.Clone(tokens)
	for i, t := range out {
		if t.Logprob < -math.MaxFloat64 || math.IsNaN(t.Logprob) {
			out[i].Logprob = -math.MaxFloat64
		}
		out[i].Token, out[i].Top = toUTF8(t.Token), finite(t.Top)
	}
	return out
}

func (r *run) complete(resp *model.Response) {
	r.outcome(resp, record.Outcome{Status: record.Completed})
	r.rec.Error = nil
}

func (r *run) rejectAnswer(resp *model.Response, v constraint.Verdict) {
	r.outcome(resp, record.Outcome{Status: record.Failed, Code: record.OutputValidationFailed, Delivery: model.ResponseReceived})
	msg := "the answer does not keep its promise"
	if len(v.Diagnostics) > 0 {
		d := v.Diagnostics[0]
		msg = fmt.Sprintf("%s: %s at %q (schema %q)", msg, d.Code, d.Instance, d.Schema)
	}
	hint := "see output_validation.diagnostics; a larger model, a simpler schema or output.repair may help"
	if r.rec.Repair != nil {
		hint = "see output_validation.diagnostics; a larger model or a simpler schema may help"
	}
	r.rec.Error = &record.Error{Code: record.OutputValidationFailed, Message: msg, Hint: hint}
}

// settleUnfinished ends the turn when the reply is not a whole answer, and
// reports whether it did.
func (r *run) settleUnfinished(resp *model.Response) bool {
	switch {
	case resp.Finish == model.Length:
		r.outcome(resp, record.Outcome{Status: record.LimitExceeded, Limit: "output_tokens"})
		r.rec.Error = &record.Error{Code: record.Truncated,
			Message: truncatedMessage(r.budget, outputTokens(resp)),
			Hint:    "raise sampling.max_tokens (and the model's context), or bound the answer: maxLength and maxItems in a schema"}
	case resp.Finish == model.Refusal:
		r.outcome(resp, record.Outcome{Status: record.Failed, Code: record.ServerRefusal, Delivery: model.ResponseReceived})
		r.rec.Error = &record.Error{Code: record.ServerRefusal, Message: "the model declined to answer",
			Hint: "change the prompt, or use another model"}
	case len(resp.ToolCalls) > 0 || resp.Finish == model.FinishToolUse:
		for _, c := range resp.ToolCalls {
			if r.denied[c.Name] {
				return !r.runCalls(context.Background(), resp)
			}
		}
		// No tools are offered, so there is nothing to run.
		r.outcome(resp, record.Outcome{Status: record.Failed, Code: record.ToolFailed, Delivery: model.ResponseReceived})
		name := "a tool"
		for _, c := range resp.ToolCalls {
			r.rec.ToolCalls = append(r.rec.ToolCalls, record.ToolCall{
				ID: c.ID, Name: c.Name, Arguments: c.Arguments, Error: "no tools are offered"})
			name = fmt.Sprintf("the tool %q", c.Name)
		}
		r.rec.Error = &record.Error{Code: record.ToolFailed,
			Message: "the model called " + name + ", but none is offered to it", Hint: "change the prompt, or offer the tool"}
	case r.con == nil && len(resp.Text) > r.answerBytes():
		r.outcome(resp, record.Outcome{Status: record.LimitExceeded, Limit: "answer_bytes"})
		r.rec.Error = &record.Error{Code: record.CodeLimitExceeded,
			Message: fmt.Sprintf("the answer has %d bytes, more than %d", len(resp.Text), r.answerBytes()),
			Hint:    "raise limits.answer_bytes, or lower sampling.max_tokens"}
	default:
		return false
	}
	return true
}

func (r *run) answerBytes() int { return r.req.ConstraintOptions.Limits.OrStandard().AnswerBytes }

func truncatedMessage(budget int, spent int64) string {
	if budget > 0 && spent >= int64(budget) {
		return fmt.Sprintf("the answer was cut off after %d tokens, the limit set by max_tokens", spent)
	}
	if budget > 0 {
		return fmt.Sprintf("the answer was cut off after %d tokens, where the context was full; max_tokens is %d", spent, budget)
	}
	return fmt.Sprintf("the answer was cut off after %d tokens, where the context was full", spent)
}

// fail ends the turn with a failed call of the model.
func (r *run) fail(ctx context.Context, e *model.Error) {
	if e.Delivery == model.NotSent && r.calls == 0 {
		switch e.Kind {
		// Nothing was generated: a refusal, not an outcome.
		case model.ContextOverflow:
			r.rec.Error = modelFault(e)
			return
		case model.Capability:
			r.rec.Error = refusal(e, record.CapabilityMissing)
			return
		}
	}
	if status := ended(ctx, e); status != "" {
		r.outcome(e.Partial, record.Outcome{Status: status})
		// A server that gave up may answer later; a turn that had all its time
		// would only have it again.
		r.rec.Error = r.endedError(status, ctx.Err() == nil)
		return
	}
	if errors.Is(e, constraint.ErrTooCostly) {
		r.outcome(e.Partial, record.Outcome{Status: record.LimitExceeded, Limit: "mask_work"})
		r.rec.Error = &record.Error{Code: record.CodeLimitExceeded, Message: e.Error(),
			Hint: "simplify the grammar where the answer broke off"}
		return
	}
	r.rec.Error = modelFault(e)
	r.outcome(e.Partial, record.Outcome{Status: record.Failed, Code: r.rec.Error.Code, Delivery: e.Delivery})
}

// ended tells a turn that ran out of time or was cancelled from one that
// failed. A model that reports either without the context saying so timed out
// or was closed by itself.
func ended(ctx context.Context, e *model.Error) record.Status {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return record.TimedOut
	case ctx.Err() != nil:
		return record.Cancelled
	case e.Kind == model.TimedOut:
		return record.TimedOut
	case e.Kind == model.Cancelled:
		return record.Cancelled
	}
	return ""
}

func (r *run) endedError(status record.Status, again bool) *record.Error {
	if status == record.Cancelled {
		return &record.Error{Code: record.CodeCancelled, Message: "the turn was cancelled", Retry: true}
	}
	msg := "the turn ran out of time"
	if r.req.Timeout > 0 {
		msg = fmt.Sprintf("the turn ran out of time; its timeout is %v", r.req.Timeout)
	}
	return &record.Error{Code: record.CodeTimedOut, Message: msg,
		Hint: "raise timeout:, lower sampling.max_tokens, or use a faster model", Retry: again}
}

// Unavailable says in a record that a model cannot be had.
func Unavailable(err error) *record.Error {
	e := &record.Error{Code: record.ModelUnavailable, Message: err.Error(),
		Hint: "see that the model's file or server is there; agentgraph check and agentgraph doctor say more"}
	takeHint(e)
	return e
}

// takeHint makes the advice that ends a message, after a semicolon, the hint:
// who failed knows better what to do than who tells of it.
func takeHint(e *record.Error) {
	if msg, hint, ok := strings.Cut(e.Message, "; "); ok {
		e.Message, e.Hint = msg, hint
	}
}

func modelFault(m *model.Error) *record.Error {
	e := &record.Error{Code: record.ModelError, Message: m.Error(), Retry: m.Retry}
	switch m.Kind {
	case model.Unavailable:
		e = Unavailable(m)
		e.Retry = m.Retry
	case model.ContextOverflow:
		e.Code, e.Hint = record.ContextOverflow, "shorten the input or the prompt, or raise the model's context"
		takeHint(e)
	case model.Refused:
		// These are a server's own words.
		e.Code, e.Hint = record.ServerRefusal, "change the prompt, or use another model"
	case model.Capability:
		e.Code, e.Hint = record.CapabilityMissing, "use another model, or allow it with output.enforce: validate"
		takeHint(e)
	}
	return e
}
