package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
)

// MaxLogprobs bounds Sampling.Logprobs: a record stays readable, and servers
// give no more.
const MaxLogprobs = 20

// Bounds of Repair.MaxFeedbackBytes.
const (
	minFeedback = 512
	maxFeedback = 4096
)

// admit checks everything that can be checked before a token, and renders the
// messages. What it returns refuses the turn.
func (r *run) admit(ctx context.Context) *record.Error {
	req := r.req
	if req.Model == nil {
		return &record.Error{Code: record.ModelUnavailable, Message: "no model is set for this turn",
			Hint: "name one with model: in the settings or with --model"}
	}
	if n := req.Repair.MaxFeedbackBytes; req.Repair.Enabled && n != 0 && (n < minFeedback || n > maxFeedback) {
		return &record.Error{Code: record.SettingsInvalid,
			Message: fmt.Sprintf("repair: max_feedback_bytes is %d", n),
			Hint:    fmt.Sprintf("set it between %d and %d", minFeedback, maxFeedback)}
	}
	if e := checkSampling(req.Sampling); e != nil {
		return e
	}
	if e := checkSpec(req); e != nil {
		return e
	}
	if req.ModelCalls < 0 {
		return &record.Error{Code: record.SettingsInvalid,
			Message: fmt.Sprintf("limits: model_calls is %d", req.ModelCalls), Hint: "set it to 1 or more"}
	}
	if msg, hint := NotText("the input", []byte(req.User)); msg != "" {
		return &record.Error{Code: record.InputNotText, Message: msg, Hint: hint}
	}
	r.budget = req.maxTokens()
	r.msgs = Messages(req)
	r.rec.Request = r.request()
	if req.Spec == nil {
		return nil
	}
	con, err := constraint.Compile(*req.Spec, req.ConstraintOptions)
	if err != nil {
		return refusal(err, record.SchemaRefused)
	}
	if a, ok := req.Model.(model.Admitter); ok {
		// A model that cannot be asked now says so again when it is to answer.
		var e *model.Error
		if err := a.Admit(ctx, con); errors.As(err, &e) && e.Kind == model.Capability {
			return refusal(err, record.CapabilityMissing)
		}
	}
	by, err := con.Admit(req.Model.Capabilities().Engine)
	if err != nil {
		return refusal(err, record.SchemaRefused)
	}
	r.con, r.promised = con, by
	opt := con.Options()
	r.rec.Request.Constraint.Enforce, r.rec.Request.Constraint.Formats = opt.Enforce, opt.Formats
	return nil
}

// checkSampling keeps out what a record could not hold.
func checkSampling(s model.Sampling) *record.Error {
	bad := func(key string, v any, hint string) *record.Error {
		return &record.Error{Code: record.SettingsInvalid, Message: fmt.Sprintf("sampling: %s is %v", key, v), Hint: hint}
	}
	within := func(v, most float64) bool { return v >= 0 && v <= most } // not NaN
	switch {
	case !within(s.Temperature, 100):
		return bad("temperature", s.Temperature, "set it between 0 and 100; 0 is greedy")
	case s.TopK < 0:
		return bad("top_k", s.TopK, "set it to 1 or more, or leave it out")
	case !within(s.TopP, 1):
		return bad("top_p", s.TopP, "set it between 0 and 1")
	case !within(s.MinP, 1):
		return bad("min_p", s.MinP, "set it between 0 and 1")
	case s.MaxTokens < 0:
		return bad("max_tokens", s.MaxTokens, "set it to 1 or more, or leave it out")
	case s.Logprobs < 0 || s.Logprobs > MaxLogprobs:
		return bad("logprobs", s.Logprobs, fmt.Sprintf("set it between 1 and %d, or leave it out", MaxLogprobs))
	}
	return nil
}

// checkSpec keeps out what is no constraint at all.
func checkSpec(req *Request) *record.Error {
	if req.Spec == nil {
		return nil
	}
	switch req.Spec.Kind {
	case constraint.JSON, constraint.Regex, constraint.Lark, constraint.LLG:
	default:
		return &record.Error{Code: record.SchemaRefused, File: req.Spec.File,
			Message: fmt.Sprintf("%q is no kind of constraint", req.Spec.Kind), Hint: "the kinds are json, regex, lark and llg"}
	}
	opt := req.ConstraintOptions
	switch opt.Enforce {
	case "", constraint.EnforceMask, constraint.EnforceValidate:
	default:
		return &record.Error{Code: record.SettingsInvalid,
			Message: fmt.Sprintf("output: enforce is %q", opt.Enforce), Hint: "it is mask or validate"}
	}
	switch opt.Formats {
	case "", constraint.FormatsMask, constraint.FormatsAssert, constraint.FormatsIgnore:
	default:
		return &record.Error{Code: record.SettingsInvalid,
			Message: fmt.Sprintf("output: formats is %q", opt.Formats), Hint: "it is mask, assert or ignore"}
	}
	return nil
}

// refusal says what the constraint package refused, as a record's error.
func refusal(err error, code record.Code) *record.Error {
	e := &record.Error{Code: code, Message: err.Error()}
	if errors.Is(err, constraint.ErrNotBuilt) {
		e.Code = record.CapabilityMissing
	}
	var ref *constraint.Refusal
	if errors.As(err, &ref) {
		if ref.Capability {
			e.Code = record.CapabilityMissing
		}
		e.Message, e.Hint = ref.Reason, ref.Hint
		e.File, e.Line, e.Column = ref.File, ref.Line, ref.Column
		e.Construct, e.Path = ref.Construct, ref.Path
	}
	return e
}

// request is what the record keeps, so that the same can be sent again.
func (r *run) request() *record.Request {
	req := r.req
	out := &record.Request{
		Messages:    r.msgs,
		Sampling:    req.Sampling,
		Model:       req.Model.Identity(),
		Determinism: "fast",
		Thinking:    req.Thinking,
	}
	out.Sampling.MaxTokens = r.budget
	if req.Solo {
		out.Determinism = "solo"
	}
	if req.Spec != nil {
		sum := sha256.Sum256(req.Spec.Source)
		opt := req.ConstraintOptions
		if opt.Enforce == "" {
			opt.Enforce = constraint.EnforceMask
		}
		if opt.Formats == "" {
			opt.Formats = constraint.FormatsMask
		}
		out.Constraint = &record.Constraint{
			Kind: req.Spec.Kind, File: req.schemaFile(), Source: string(req.Spec.Source),
			SHA256: hex.EncodeToString(sum[:]), Enforce: opt.Enforce, Formats: opt.Formats,
		}
	}
	return out
}

// finalRequest asks for the answer alone. The tools stay in sight where the
// model takes calls out of its text: the prompt then goes on as it was.
func (r *run) finalRequest(msgs []model.Message, maxTokens int) *model.Request {
	mreq := r.modelRequest(msgs, maxTokens)
	mreq.Constraint = r.con
	if r.format != "" {
		mreq.Tools, mreq.NoCalls, mreq.CallFormat = r.specs, true, r.format
		if r.con == nil {
			mreq.Constraint = r.alone
		}
	}
	return mreq
}

func (r *run) modelRequest(msgs []model.Message, maxTokens int) *model.Request {
	req := r.req
	s := req.Sampling
	s.MaxTokens = maxTokens
	if s.Seed == nil {
		s.Seed = r.rec.Request.Sampling.Seed // drawn by the first call
	}
	return &model.Request{Messages: msgs, Sampling: s, Solo: req.Solo, Thinking: req.Thinking, Progress: req.Progress}
}
