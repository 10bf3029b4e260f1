package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/tools"
)

// toolState is what a turn knows about its tools.
type toolState struct {
	own     *tools.Box // opened for this turn alone
	offers  map[string]*offered
	denied  map[string]bool
	specs   []model.Tool           // of the offers, in the order of tools:
	format  constraint.CallFormat  // how calls stand in the text; empty: they do not
	both    *constraint.Constraint // a call or the answer
	alone   *constraint.Constraint // free text that is no call
	twoStep bool                   // tools first, then the answer under its constraint
}

type offered struct {
	*tools.Offer
	args *constraint.Constraint
}

// mayCall reports that the model may call tools now.
func (r *run) mayCall() bool { return len(r.specs) > 0 && r.req.toolRounds() > 0 }

func (r *run) closeTools() {
	if r.own != nil {
		_ = r.own.Close() // servers are killed either way
	}
}

// openTools opens the tools, tells the model of them and makes the grammar of
// their calls. An error with the code tool_failed is one of the tools.
func (r *run) openTools(ctx context.Context) *record.Error {
	req := r.req
	if len(req.Tools) == 0 && req.MoreTools == nil {
		return nil
	}
	caps := req.Model.Capabilities()
	if !caps.Tools && len(req.Tools) > 0 {
		return &record.Error{Code: record.CapabilityMissing,
			Message: fmt.Sprintf("the model %s declares no tools, and tools: lists some", req.Model.Identity()),
			Hint:    "use a model that can call tools, or remove tools:"}
	}
	box := req.Toolbox
	if box == nil {
		r.own = &tools.Box{}
		box = r.own
	}
	offers, err := box.Open(ctx, req.Tools, req.Place)
	if err != nil {
		e := &record.Error{Code: record.ToolFailed, Message: err.Error()}
		var oe *tools.OpenError
		if errors.As(err, &oe) {
			e.Hint, e.Retry = oe.Hint, oe.Retry
		}
		return e
	}
	offers = append(offers, r.moreTools(ctx, offers, caps)...)
	mask := caps.Masks && caps.CallFormat != "" && (r.con == nil || caps.Holds(r.con.Spec().Kind))
	if _, err := constraint.ByteVocabulary(); err != nil {
		mask = false // calls then come as they do from a server
	}
	r.admitTools(offers, caps, mask)
	r.rec.Request.Tools = r.specs
	var guidance []string
	for _, s := range r.specs {
		guidance = append(guidance, r.offers[s.Name].Guidance())
	}
	r.msgs = Messages(req, guidance...)
	r.rec.Request.Messages = r.msgs
	if len(r.specs) == 0 {
		return nil
	}
	if mask {
		return r.callGrammars(caps)
	}
	r.twoStep = r.con != nil
	return nil
}

// moreTools are the offers of Request.MoreTools. A model that calls none is no
// reason to refuse the turn: nobody asked for these in the settings.
func (r *run) moreTools(ctx context.Context, offers []*tools.Offer, caps model.Capabilities) []*tools.Offer {
	if r.req.MoreTools == nil {
		return nil
	}
	taken := map[string]bool{}
	for _, o := range offers {
		taken[o.Name()] = true
	}
	more := r.req.MoreTools(ctx, func(name string) bool { return taken[name] })
	if caps.Tools {
		return more
	}
	for i, o := range more {
		unfit := *o
		unfit.Unfit = fmt.Errorf("the model %s declares no tools", r.req.Model.Identity())
		more[i] = &unfit
	}
	return more
}

// admitTools keeps the offers whose schema can be held, and says of the others
// why not.
func (r *run) admitTools(offers []*tools.Offer, caps model.Capabilities, mask bool) {
	r.offers, r.denied = map[string]*offered{}, map[string]bool{}
	opt := r.req.ConstraintOptions
	for _, o := range offers {
		spec := o.Spec()
		if o.Policy == tools.Deny {
			r.denied[spec.Name] = true
			continue
		}
		if o.Unfit != nil {
			// Its name is whatever the server wrote.
			r.rec.Request.DisabledTools = append(r.rec.Request.DisabledTools,
				record.DisabledTool{Name: toUTF8(spec.Name), Reason: o.Unfit.Error()})
			continue
		}
		args, err := constraint.Compile(constraint.Spec{Kind: constraint.JSON, Source: spec.Parameters}, opt)
		if err == nil && mask {
			_, err = args.Admit(caps.Engine)
		}
		if err != nil {
			r.rec.Request.DisabledTools = append(r.rec.Request.DisabledTools,
				record.DisabledTool{Name: spec.Name, Reason: "the schema of its arguments: " + reason(err)})
			continue
		}
		r.offers[spec.Name] = &offered{o, args}
		r.specs = append(r.specs, spec)
	}
	if mask {
		r.keepWhatFits(r.callFormat(caps))
	}
}

// keepWhatFits takes away the tools that the engine cannot hold beside those
// before them, though it could alone.
func (r *run) keepWhatFits(format constraint.CallFormat) {
	if fitTogether(format, r.toolSchemas()) {
		return
	}
	schemas, all := r.toolSchemas(), r.specs
	n := sort.Search(len(schemas), func(n int) bool { return !fitTogether(format, schemas[:n+1]) })
	if n == len(all) {
		return
	}
	r.specs = slices.Concat(all[:n], all[n+1:])
	gone := all[n : n+1]
	if !fitTogether(format, r.toolSchemas()) {
		r.specs, gone = all[:n:n], all[n:]
	}
	for _, s := range gone {
		delete(r.offers, s.Name)
		r.rec.Request.DisabledTools = append(r.rec.Request.DisabledTools, record.DisabledTool{Name: s.Name,
			Reason: "the schema of its arguments: with those of the tools before it, it is larger than the engine can hold"})
	}
}

// fitTogether reports that the engine holds calls of all these tools in one
// grammar.
func fitTogether(format constraint.CallFormat, schemas []constraint.ToolSchema) bool {
	v, err := constraint.ByteVocabulary()
	if err != nil || len(schemas) == 0 {
		return true
	}
	c, err := constraint.WithCalls(nil, format, schemas)
	if err != nil {
		return true // not for its size; whoever makes it says why
	}
	m, err := c.NewMatcher(v)
	if err != nil {
		return false
	}
	m.Close()
	return true
}

func (r *run) toolSchemas() []constraint.ToolSchema {
	var list []constraint.ToolSchema
	for _, s := range r.specs {
		list = append(list, constraint.ToolSchema{Name: s.Name, Arguments: r.offers[s.Name].args})
	}
	return list
}

func (r *run) callFormat(caps model.Capabilities) constraint.CallFormat {
	if r.req.ToolFormat != "" {
		return r.req.ToolFormat
	}
	return caps.CallFormat
}

// reason says what is wrong and where.
func reason(err error) string {
	var ref *constraint.Refusal
	switch {
	case !errors.As(err, &ref):
		return err.Error()
	case ref.Path == "" || strings.Contains(ref.Reason, ref.Path):
		return ref.Reason
	}
	return fmt.Sprintf("at %s: %s", ref.Path, ref.Reason)
}

// callGrammars makes "a call or the answer" and "the answer alone".
func (r *run) callGrammars(caps model.Capabilities) *record.Error {
	format, schemas := r.callFormat(caps), r.toolSchemas()
	free, err := constraint.WithCalls(nil, format, nil)
	both := free
	if err == nil {
		both, err = constraint.WithCalls(r.con, format, schemas)
	}
	if err != nil && r.con != nil {
		// The answer cannot be told from a call while both may come: tools
		// first, then the answer.
		r.twoStep = true
		both, err = constraint.WithCalls(nil, format, schemas)
	}
	if err != nil {
		return refusal(err, record.SchemaRefused)
	}
	r.format, r.both, r.alone = format, both, free
	return nil
}

// failTools ends a turn whose tools cannot be had.
func (r *run) failTools(ctx context.Context, e *record.Error) {
	if ctx.Err() != nil {
		r.fail(ctx, &model.Error{Kind: model.Cancelled, Delivery: model.NotSent, Err: ctx.Err()})
		return
	}
	r.outcome(nil, record.Outcome{Status: record.Failed, Code: record.ToolFailed, Delivery: model.NotSent})
	r.rec.Error = e
}

// roundRequest asks for a call or the answer.
func (r *run) roundRequest(msgs []model.Message, maxTokens int) *model.Request {
	mreq := r.modelRequest(msgs, maxTokens)
	mreq.Tools, mreq.CallFormat, mreq.Constraint = r.specs, r.format, r.both
	switch {
	case mreq.Progress == nil:
	case r.twoStep:
		progress := mreq.Progress
		mreq.Progress = func(p model.Progress) {
			p.Text = "" // it is no part of the answer
			progress(p)
		}
	case r.format != "":
		mreq.Progress = (&textFilter{opener: r.format.Opener(), progress: mreq.Progress}).pass
	}
	return mreq
}

// textFilter keeps a call's text from those who watch the answer grow.
type textFilter struct {
	opener   string
	held     string // could still be a call
	decided  bool
	isCall   bool
	progress func(model.Progress)
}

func (f *textFilter) pass(p model.Progress) {
	if !f.decided {
		f.held += p.Text
		p.Text = ""
		begin := strings.TrimLeft(f.held, " \t\r\n")
		switch {
		case strings.HasPrefix(begin, f.opener):
			f.decided, f.isCall = true, true
		case !strings.HasPrefix(f.opener, begin):
			f.decided = true
			p.Text = f.held
		}
	} else if f.isCall {
		p.Text = ""
	}
	f.progress(p)
}
