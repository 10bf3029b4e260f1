package turn

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
)

// Render returns the prompt the model would read, without a token, and the
// messages it is made of. It admits the constraint first, so that it refuses
// what Run refuses; the error is then a *record.Error.
func Render(ctx context.Context, req *Request) (model.Rendered, []model.Message, error) {
	r := newRun(req)
	defer r.closeTools()
	e := r.admit(ctx)
	if e == nil {
		e = r.openTools(ctx)
	}
	if e != nil {
		return model.Rendered{}, nil, e
	}
	mreq := r.finalRequest(r.msgs, r.budget)
	if r.mayCall() {
		mreq = r.roundRequest(r.msgs, r.budget)
	}
	rendered, err := req.Model.Render(ctx, mreq)
	return rendered, r.msgs, err
}

// Run runs one turn: admit, generate and call tools, validate, repair. It
// never returns nil and never panics.
func Run(ctx context.Context, req *Request) (rec *record.Record) {
	r := newRun(req)
	defer r.closeTools()
	defer func() {
		if p := recover(); p != nil {
			rec = r.internal(p, debug.Stack())
		}
	}()
	if req.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.Timeout, errTurnTimeout)
		defer cancel()
	}
	if e := r.admit(ctx); e != nil {
		return r.refuse(e)
	}
	switch e := r.openTools(ctx); {
	case e == nil:
		r.begin()
		r.answer(ctx)
	case e.Code == record.ToolFailed:
		// What failed is outside the settings and may work later: a failed
		// attempt, not a refusal.
		r.begin()
		r.failTools(ctx, e)
	default:
		return r.refuse(e)
	}
	return r.finish()
}

// Refuse is the record of a turn that a caller refuses before Run: settings
// or an input that cannot be used.
func Refuse(req *Request, e *record.Error) *record.Record {
	return newRun(req).refuse(e)
}

var errTurnTimeout = errors.New("the turn's timeout")

// run is the state of one turn.
type run struct {
	req *Request
	rec *record.Record

	con      *constraint.Constraint
	promised constraint.EnforcedBy // what Admit said
	msgs     []model.Message       // the conversation so far
	budget   int                   // output tokens of the whole turn; 0: what the context leaves

	toolState

	admitted bool
	calling  bool // a call of the model is under way
	calls    int
	totals   totals
	spent    int64 // output tokens so far, estimated where not known
	stats    []model.Stats
	started  time.Time
}

func newRun(req *Request) *run {
	r := &run{req: req, rec: &record.Record{
		SchemaVersion:    record.SchemaVersion,
		TurnID:           orNull(req.TurnID),
		Agent:            orNull(req.Agent),
		OutputValidation: record.Validation{Status: record.NotRequested},
		Inputs:           req.Inputs,
		Lineage:          req.Lineage,
		SettingsSHA256:   orNull(req.SettingsSHA256),
	}}
	return r
}

// begin turns a refusable record into an admitted one.
func (r *run) begin() {
	r.admitted = true
	r.started = r.req.now()
	runID := r.req.RunID
	if runID == "" {
		runID = uuid.NewString()
	}
	r.rec.RunID = &runID
	r.rec.SessionID = firstOf(r.req.SessionID, r.req.Agent, runID)
	r.rec.TraceID = firstOf(r.req.TraceID, r.req.TurnID, runID)
	r.rec.Attempt = max(r.req.Attempt, 1)
	if r.con != nil {
		r.rec.OutputValidation = record.Validation{Status: record.Invalid, EnforcedBy: &r.promised}
	}
}

// answer fills the outcome.
func (r *run) answer(ctx context.Context) {
	resp := r.reply(ctx)
	if resp == nil {
		return
	}
	if r.settleUnfinished(resp) {
		r.noteUnrepaired(resp)
		return
	}
	if r.con == nil {
		r.complete(resp)
		return
	}
	verdict := r.validate(ctx, resp)
	if r.req.Repair.Enabled {
		r.rec.Repair = &record.Repair{Status: record.RepairNotNeeded, Attempts: "0", Validations: "1"}
	}
	switch {
	case verdict.Valid:
		r.complete(resp)
	case ctx.Err() != nil:
		r.interrupted(ctx, resp)
	case r.req.Repair.Enabled:
		r.repair(ctx, resp, verdict)
	default:
		r.rejectAnswer(resp, verdict)
	}
}

// reply is the model's reply that ends the tool rounds, or nil when the turn
// is over.
func (r *run) reply(ctx context.Context) *model.Response {
	if r.mayCall() {
		return r.converse(ctx)
	}
	resp, e := r.round(ctx, r.finalRequest(r.msgs, r.budget))
	if e != nil {
		r.fail(ctx, e)
		return nil
	}
	return resp
}

// interrupted ends a turn whose time is over while its answer is judged, or
// before a repair.
func (r *run) interrupted(ctx context.Context, resp *model.Response) {
	r.rec.Repair = nil
	if r.req.Repair.Enabled && timeIsUp(ctx) {
		r.rec.Repair = &record.Repair{Status: record.RepairBlocked, Blocked: record.BlockedDeadline,
			Attempts: "0", Validations: "1"}
	}
	r.fail(ctx, &model.Error{Kind: model.Cancelled, Delivery: model.ResponseReceived, Err: ctx.Err(), Partial: resp})
}

// validate decides about a whole answer and says so in the record.
func (r *run) validate(ctx context.Context, resp *model.Response) constraint.Verdict {
	verdict := r.con.Validate(ctx, resp.Text)
	status := record.Invalid
	if verdict.Valid {
		status = record.Valid
	}
	r.rec.OutputValidation.Status = status
	r.rec.OutputValidation.Diagnostics = verdict.Diagnostics
	return verdict
}

func (r *run) refuse(e *record.Error) *record.Record {
	r.rec.RunID, r.rec.SessionID, r.rec.TraceID = nil, nil, nil
	r.rec.Attempt, r.rec.Outcome, r.rec.Accounting, r.rec.Repair, r.rec.Timing = 0, nil, nil, nil, nil
	r.rec.OutputValidation = record.Validation{Status: record.NotRequested}
	r.rec.Error = e
	ev := r.req.event(EventRefusal)
	ev.Error = e
	ev.Inputs = r.req.Inputs
	r.req.audit(ev)
	return record.Normal(r.rec)
}

// finish closes an admitted turn's record.
func (r *run) finish() *record.Record {
	if r.rec.Outcome == nil { // refused by the model before it read the prompt
		return r.refuse(r.rec.Error)
	}
	r.rec.Accounting = r.accounting()
	r.rec.Timing = r.timing(r.req.now())
	return record.Normal(r.rec)
}

// internal turns a panic into a record, so that the caller lives on.
func (r *run) internal(p any, stack []byte) *record.Record {
	e := &record.Error{
		Code:    record.Internal,
		Message: fmt.Sprintf("the turn broke off: %v", p),
		Hint:    "this is a fault of agentgraph; please report it with this record: " + firstFrames(stack),
	}
	// What panicked may have been one of the caller's functions.
	safe := *r.req
	safe.Clock, safe.Audit = nil, nil
	r.req = &safe
	if !r.admitted {
		return r.refuse(e)
	}
	delivery := model.NotSent
	switch {
	case r.calling:
		delivery = model.MayHaveBeenSent
	case r.calls > 0:
		delivery = model.ResponseReceived
	}
	if r.rec.Outcome == nil {
		r.rec.Outcome = &record.Outcome{}
	}
	r.rec.Outcome.Status, r.rec.Outcome.Code, r.rec.Outcome.Delivery = record.Failed, record.Internal, delivery
	r.rec.Outcome.Rule, r.rec.Outcome.Limit = "", ""
	if r.con != nil {
		r.rec.OutputValidation.Status = record.Invalid
	}
	r.rec.Error = e
	return r.finish()
}

// firstFrames keeps the functions of a stack, without paths and addresses.
func firstFrames(stack []byte) string {
	var names []string
	for line := range strings.Lines(string(stack)) {
		name, _, ok := strings.Cut(strings.TrimSpace(line), "(")
		if ok && strings.HasPrefix(name, "agentgraph/") && len(names) < 6 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " < ")
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func firstOf(names ...string) *string {
	for _, s := range names {
		if s != "" {
			return &s
		}
	}
	return nil
}
