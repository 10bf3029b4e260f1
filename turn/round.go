package turn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
)

// round is one call of the model, with its audit event, accounting and what
// the record learns from it. Tool rounds are a loop over this function; the
// repair is one more call of it.
func (r *run) round(ctx context.Context, mreq *model.Request) (*model.Response, *model.Error) {
	if err := ctx.Err(); err != nil {
		return nil, &model.Error{Kind: model.Cancelled, Delivery: model.NotSent, Err: err}
	}
	r.auditPrompt(mreq)
	show := func() {}
	if mreq.Progress != nil && (r.con == nil || strength(r.promised) < 2) { // a mask leaves no room for thoughts in the text
		f := &thoughtFilter{progress: mreq.Progress}
		c := *mreq
		c.Progress, mreq, show = f.pass, &c, f.flush
	}
	r.calling = true
	resp, err := r.req.Model.Generate(ctx, mreq)
	r.calling = false
	show()
	if err == nil && resp == nil {
		err = errors.New("the model returned no reply and no error")
	}
	if err != nil {
		e := asModelError(err)
		if e.Delivery != model.NotSent {
			r.account(e.Partial)
		}
		if e.Partial != nil {
			r.learn(e.Partial)
			r.dropThought(ctx, e.Partial)
		}
		return nil, e
	}
	c := *resp
	resp = &c
	resp.Text, resp.Reasoning = toUTF8(resp.Text), toUTF8(resp.Reasoning)
	r.account(resp) // before the reasoning moves: it counts as it was generated
	r.dropThought(ctx, resp)
	r.learn(resp)
	if mreq.Constraint != nil {
		if e := r.held(resp); e != nil {
			return nil, e
		}
	}
	return resp, nil
}

func asModelError(err error) *model.Error {
	var e *model.Error
	if !errors.As(err, &e) {
		e = &model.Error{Kind: model.Failed, Err: err}
	}
	c := *e
	if c.Partial != nil {
		partial := *c.Partial
		partial.Text, partial.Reasoning = toUTF8(partial.Text), toUTF8(partial.Reasoning)
		c.Partial = &partial
	}
	if c.Delivery == "" {
		c.Delivery = model.MayHaveBeenSent
	}
	if c.Err == nil {
		c.Err = errors.New(string(c.Kind))
	}
	return &c
}

// held compares what Admit promised with what the engine did. The record
// never claims more than was done, and under enforce: mask less is a failure.
func (r *run) held(resp *model.Response) *model.Error {
	if r.con == nil {
		return nil
	}
	did := resp.EnforcedBy
	if did == "" {
		did = constraint.ByValidation
	}
	if strength(did) >= strength(r.promised) {
		return nil
	}
	if r.con.Options().Enforce != constraint.EnforceValidate {
		return &model.Error{
			Kind: model.Failed, Delivery: model.ResponseReceived, Partial: resp, Model: r.req.Model.Identity().String(),
			Err: fmt.Errorf("the engine answered without the constraint it was given (%q instead of %q)", did, r.promised),
		}
	}
	r.rec.OutputValidation.EnforcedBy = &did
	return nil
}

// strength orders what stands behind a promise. An engine reports only "mask"
// when its own mask held; Admit knows when validation adds to it.
func strength(by constraint.EnforcedBy) int {
	switch by {
	case constraint.ByMask, constraint.ByMaskValidation:
		return 2
	case constraint.ByServerValidation:
		return 1
	}
	return 0
}

// learn keeps what the first call says about the prompt, and the seed.
func (r *run) learn(resp *model.Response) {
	req := r.rec.Request
	if req.Prompt == nil && resp.Rendered.Prompt != "" {
		req.Prompt = &resp.Rendered.Prompt
		req.TemplateSHA256 = orNull(resp.Rendered.TemplateSHA256)
		if c := resp.Rendered.Clock; !c.IsZero() {
			c = c.UTC()
			req.Clock = &c
		}
	}
	if req.Sampling.Seed == nil && resp.Seed != nil {
		seed := *resp.Seed
		req.Sampling.Seed = &seed
	}
}

// account adds one dispatched call; nil is a call nothing is known about.
func (r *run) account(resp *model.Response) {
	r.calls++
	if resp == nil {
		r.totals.add(model.Usage{})
		return
	}
	r.totals.add(resp.Usage)
	r.spent += outputTokens(resp)
	r.stats = append(r.stats, resp.Stats)
}

// outputTokens counts a reply against the output budget. Where an engine does
// not count, four bytes stand for a token.
func outputTokens(resp *model.Response) int64 {
	if n := resp.Usage.OutputTokens; n != nil {
		return *n
	}
	return int64(len(resp.Text)+len(resp.Reasoning)+3) / 4
}

func (r *run) auditPrompt(mreq *model.Request) {
	if r.req.Audit == nil {
		return
	}
	e := r.req.event(EventPrompt)
	id := r.req.Model.Identity()
	e.Model = &id
	e.Call = r.calls + 1
	e.RunID = *r.rec.RunID
	for _, m := range mreq.Messages {
		e.Messages = append(e.Messages, AuditMessage{Role: m.Role, AuditText: NewAuditText(m.Content)})
	}
	if r.con != nil && mreq.Constraint != nil {
		c := r.rec.Request.Constraint
		e.Constraint = &AuditConstraint{Kind: c.Kind, File: c.File, EnforcedBy: r.promised,
			AuditText: NewAuditText(c.Source)}
	}
	r.req.audit(e)
}

// totals sums token counts; one unknown makes the sum unknown.
type totals struct {
	in, out, read, write total
}

type total struct {
	n       int64
	unknown bool
}

func (t *totals) add(u model.Usage) {
	t.in.add(u.InputTokens)
	t.out.add(u.OutputTokens)
	t.read.add(u.CacheReadTokens)
	t.write.add(u.CacheWriteTokens)
}

func (t *total) add(n *int64) {
	if n == nil {
		t.unknown = true
		return
	}
	t.n += *n
}

func (t total) decimal() *string {
	if t.unknown {
		return nil
	}
	s := strconv.FormatInt(t.n, 10)
	return &s
}

func (r *run) accounting() *record.Accounting {
	return &record.Accounting{
		ModelCalls: strconv.Itoa(r.calls),
		ToolCalls:  strconv.Itoa(len(r.rec.ToolCalls)),
		Usage: record.Totals{
			InputTokens: r.totals.in.decimal(), OutputTokens: r.totals.out.decimal(),
			CacheReadTokens: r.totals.read.decimal(), CacheWriteTokens: r.totals.write.decimal(),
		},
	}
}

// timing sums the calls' statistics. An engine leaves what it does not
// measure at zero, which is null here; the token counts are known exactly
// where the engine runs in this process and measures its decoding.
func (r *run) timing(now time.Time) *record.Timing {
	t := &record.Timing{Started: r.started.UTC(), Finished: now.UTC()}
	var sum model.Stats
	for i, s := range r.stats {
		if i == 0 {
			sum.FirstToken = s.FirstToken
		}
		sum.Queued += s.Queued
		sum.Prefill += s.Prefill
		sum.Decode += s.Decode
		sum.Mask += s.Mask
		sum.Sample += s.Sample
		sum.ForcedTokens += s.ForcedTokens
		sum.ReusedTokens += s.ReusedTokens
	}
	t.QueuedMS, t.PrefillMS, t.DecodeMS = ms(sum.Queued), ms(sum.Prefill), ms(sum.Decode)
	t.MaskMS, t.SampleMS, t.FirstTokenMS = ms(sum.Mask), ms(sum.Sample), ms(sum.FirstToken)
	if sum.Prefill > 0 || sum.Decode > 0 {
		t.ForcedTokens, t.ReusedTokens = &sum.ForcedTokens, &sum.ReusedTokens
	}
	return t
}

func ms(d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	v := float64(d.Microseconds()) / 1000
	return &v
}

// toUTF8 makes a reply fit for a record and a file, before it is validated.
func toUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
