package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
)

// repair asks once more, in the same conversation, with what was wrong. It
// shares everything with the turn: deadline, output budget, context, budget
// of model calls and accounting.
func (r *run) repair(ctx context.Context, first *model.Response, verdict constraint.Verdict) {
	rep := r.rec.Repair
	feedback := Feedback(verdict.Diagnostics, r.req.Repair.MaxFeedbackBytes)
	msgs := append(slices.Clone(r.msgs),
		model.Message{Role: model.Assistant, Content: first.Text},
		model.Message{Role: model.User, Content: feedback})

	block := func(why record.BlockedBy) {
		rep.Status, rep.Blocked = record.RepairBlocked, why
		rep.Attempts, rep.Rejected, rep.RejectedDiagnostics, rep.Feedback = "0", nil, nil, nil
		r.rejectAnswer(first, verdict)
	}
	left := r.budget - int(r.spent)
	switch {
	case r.calls >= r.req.modelCalls():
		block(record.BlockedModelCalls)
		return
	case ctx.Err() != nil:
		r.interrupted(ctx, first)
		return
	case timeIsUp(ctx):
		block(record.BlockedDeadline)
		return
	case left <= 0:
		block(record.BlockedOutputTokens)
		return
	}
	mreq := r.finalRequest(msgs, left)
	if rendered, err := r.req.Model.Render(ctx, mreq); err == nil && rendered.Context > 0 && rendered.Tokens >= rendered.Context {
		block(record.BlockedContext)
		return
	}

	rep.Status, rep.Attempts = record.RepairFailed, "1"
	rep.Rejected, rep.RejectedDiagnostics, rep.Feedback = &first.Text, verdict.Diagnostics, &feedback
	second, e := r.round(ctx, mreq)
	switch {
	case e != nil && e.Kind == model.ContextOverflow && e.Delivery == model.NotSent:
		block(record.BlockedContext)
	case e != nil:
		r.fail(ctx, e)
	case r.settleUnfinished(second):
		// The second answer is no answer either; nothing of it was validated.
		r.rec.OutputValidation.Diagnostics = nil
	default:
		rep.Validations = "2"
		again := r.validate(ctx, second)
		switch {
		case again.Valid:
			rep.Status = record.RepairSucceeded
			r.complete(second)
		case ctx.Err() != nil:
			r.fail(ctx, &model.Error{Kind: model.Cancelled, Delivery: model.ResponseReceived, Err: ctx.Err(), Partial: second})
		default:
			r.rejectAnswer(second, again)
		}
	}
}

// noteUnrepaired records that a cut-off answer is not repaired.
func (r *run) noteUnrepaired(resp *model.Response) {
	if r.con != nil && r.req.Repair.Enabled && resp.Finish == model.Length {
		r.rec.Repair = &record.Repair{Status: record.RepairBlocked, Blocked: record.BlockedTruncated,
			Attempts: "0", Validations: "0"}
	}
}

func timeIsUp(ctx context.Context) bool {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= 0
}

const (
	feedbackHead = "Your answer is not valid. What is wrong, as JSON pointers into the answer and into the schema:\n"
	feedbackTail = "Answer again: the whole corrected answer and nothing else."
)

// Feedback is the message of a repair: one line per diagnostic, never a value
// of the answer or the schema. It has at most limit bytes (0: 4096); what
// does not fit is left out from the end, pointers before codes.
func Feedback(diags []constraint.Diagnostic, limit int) string {
	if limit == 0 {
		limit = maxFeedback
	}
	room := limit - len(feedbackHead) - len(feedbackTail)
	var b strings.Builder
	for _, d := range diags {
		line := fmt.Sprintf("- %s at %q, schema %q\n", d.Code, d.Instance, d.Schema)
		if len(line) > room {
			line = fmt.Sprintf("- %s\n", d.Code)
		}
		if len(line) > room {
			break
		}
		room -= len(line)
		b.WriteString(line)
	}
	return feedbackHead + b.String() + feedbackTail
}
