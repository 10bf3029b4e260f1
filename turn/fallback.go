package turn

import (
	"context"
	"errors"
	"strings"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
)

// Source is a model that may answer a turn, before it is opened.
type Source struct {
	// Name is what the settings call it.
	Name string
	// Open returns the model; its error says why it cannot be had.
	Open func(ctx context.Context) (model.Model, error)
}

// RunFirst runs the turn on the first model that can be had, in their order.
// The next one is tried when a model cannot be opened, or cannot be reached
// and was not sent anything; never once a token may have been generated. Each
// is admitted by itself: one that stands in and cannot hold the promise, the
// tools or the prompt is passed over too.
//
// The record is that of the model that answered, or of the first when none
// could; Request.PassedOver says of the others why not. run is Run, or what
// stands in for it; req.Model is set by RunFirst.
func RunFirst(ctx context.Context, req *Request, sources []Source, run func(context.Context, *Request) *record.Record) *record.Record {
	var first *record.Record
	var passed []record.PassedOver
	retry := false
	for i, src := range sources {
		var rec *record.Record
		this := *req
		m, err := src.Open(ctx)
		if err != nil {
			this.Model = model.Absent{Who: identityOf(src.Name, err), Why: notOpened}
			rec = this.unopened(ctx, err)
		} else {
			this.Model = m
			rec = run(ctx, &this)
		}
		if ctx.Err() != nil || rec == nil || !passOver(rec, i > 0) {
			return withPassed(rec, passed)
		}
		if i == 0 {
			first = rec
		}
		retry = retry || rec.Error.Retry
		passed = append(passed, record.PassedOver{Model: this.Model.Identity(),
			Code: rec.Error.Code, Message: rec.Error.Message})
	}
	if len(passed) > 1 {
		// People want to know of all of them.
		var why []string
		for _, p := range passed {
			text := p.Message
			if name := p.Model.String(); !strings.Contains(text, name) {
				text = name + ": " + text
			}
			why = append(why, text)
		}
		e := *first.Error
		e.Message, e.Retry = "none of the models can be had: "+strings.Join(why, "; "), retry
		e.Hint = "see that one of them is there; agentgraph check and agentgraph doctor say more"
		first.Error = &e
		if retry && first.Outcome == nil {
			// One of them may be there later: a failed attempt, not a refusal.
			this := *req
			this.Model = model.Absent{Who: passed[0].Model, Why: notOpened}
			first = this.failed(&e)
		}
	}
	return withPassed(first, passed[min(len(passed), 1):])
}

// withPassed notes the models that did not answer. It goes into a record that
// is nobody else's yet.
func withPassed(rec *record.Record, passed []record.PassedOver) *record.Record {
	if rec == nil || rec.Request == nil || len(passed) == 0 {
		return rec
	}
	r := *rec.Request
	r.PassedOver = passed
	rec.Request = &r
	return rec
}

// passOver reports that a turn came to nothing because its model could not be
// had. standsIn is true for models of fallback:, which may also be unfit.
func passOver(rec *record.Record, standsIn bool) bool {
	if rec.Error == nil {
		return false
	}
	if rec.Accounting != nil && rec.Accounting.ModelCalls != "0" || len(rec.ToolCalls) > 0 {
		return false
	}
	switch rec.Error.Code {
	case record.ModelUnavailable:
		return rec.Outcome == nil || rec.Outcome.Delivery == model.NotSent
	case record.CapabilityMissing, record.ContextOverflow:
		return standsIn && rec.Outcome == nil
	}
	return false
}

// unopened is the record of a turn whose model could not be opened: a failed
// attempt where it may be there later, a refusal otherwise.
func (r *Request) unopened(ctx context.Context, err error) *record.Record {
	e := Unavailable(err)
	var me *model.Error
	if errors.As(err, &me) && me.Retry && ctx.Err() == nil {
		e.Retry = true
		return r.failed(e)
	}
	return Refuse(r, e)
}

// Ended is the record of a turn whose context ended before its model was asked;
// req.Model may be a model.Absent.
func Ended(ctx context.Context, req *Request) *record.Record {
	status := ended(ctx, &model.Error{Kind: model.Cancelled})
	return req.unasked(record.Outcome{Status: status}, newRun(req).endedError(status, true))
}

// failed is the record of an attempt that did not come as far as its model.
func (r *Request) failed(e *record.Error) *record.Record {
	return r.unasked(record.Outcome{Status: record.Failed, Code: e.Code, Delivery: model.NotSent}, e)
}

func (r *Request) unasked(o record.Outcome, e *record.Error) *record.Record {
	t := newRun(r)
	t.budget, t.msgs = r.maxTokens(), Messages(r)
	t.rec.Request = t.request()
	if r.Spec != nil {
		if _, err := constraint.Compile(*r.Spec, r.ConstraintOptions); err != nil {
			return t.refuse(refusal(err, record.SchemaRefused))
		}
	}
	t.begin()
	if r.Spec != nil {
		t.rec.OutputValidation = record.Validation{Status: record.Invalid}
	}
	t.outcome(nil, o)
	t.rec.Error = e
	return t.finish()
}

// notOpened is why a model that could not be opened answers nothing.
var notOpened = errors.New("it could not be opened")

// identityOf is what is known of a model that could not be opened.
func identityOf(name string, err error) model.Identity {
	id := model.Identity{Name: name, Alias: name}
	if i := strings.LastIndexAny(name, `/\`); i >= 0 || strings.HasPrefix(name, "script:") {
		id.Name, id.Alias = name[i+1:], "" // a path is no name of the settings
	}
	var me *model.Error
	if errors.As(err, &me) && me.Model != "" {
		id.Name = me.Model
	}
	return id
}
