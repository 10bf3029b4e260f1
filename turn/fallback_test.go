package turn_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/model/script"
	"agentgraph/record"
	"agentgraph/record/recordtest"
	"agentgraph/turn"
)

// source is a scripted model, or the error of one that cannot be opened.
func source(t *testing.T, name, text string, err error) turn.Source {
	return turn.Source{Name: name, Open: func(context.Context) (model.Model, error) {
		if err != nil {
			return nil, err
		}
		return script.New(name, []byte("name: "+name+"\n"+text), script.Config{})
	}}
}

func absent(name string, retry bool) error {
	return &model.Error{Kind: model.Unavailable, Delivery: model.NotSent, Model: name, Err: errors.New("it is too large for the memory"), Retry: retry}
}

// Scripts of models that fail in one way each.
const (
	answers = "default: {text: '{\"a\":1}'}\n"
	down    = "default: {error: {kind: unavailable, message: connection refused, retry: true}}\n"
	broken  = "default: {text: '{\"a\":1}', error: {kind: unavailable, message: connection reset, retry: true, after: 1}}\n"
	timeout = "default: {error: {kind: timed_out}}\n"
	small   = "context: 4\ndefault: {text: x}\n"
	plain   = "constraints: []\ndefault: {text: x}\n"
	fails   = "default: {error: {kind: failed, message: out of luck}}\n"
)

func TestRunFirst(t *testing.T) {
	type result struct {
		answeredBy string
		status     record.Status
		code       record.Code
		retry      bool
		passed     []string
	}
	schema := &constraint.Spec{Kind: constraint.JSON, Source: []byte(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`)}
	for _, tc := range []struct {
		name    string
		sources []turn.Source
		spec    *constraint.Spec
		want    result
	}{
		{"the first answers", []turn.Source{source(t, "one", answers, nil), source(t, "two", answers, nil)}, nil,
			result{"one", record.Completed, "", false, nil}},
		{"the first is down", []turn.Source{source(t, "one", down, nil), source(t, "two", answers, nil)}, nil,
			result{"two", record.Completed, "", false, []string{"one model_unavailable model one: connection refused"}}},
		{"a chain", []turn.Source{source(t, "one", "", absent("one", false)), source(t, "two", down, nil), source(t, "three", "", errors.New("there is no file three.gguf")), source(t, "four", answers, nil)}, nil,
			result{"four", record.Completed, "", false, []string{
				"one model_unavailable model one: it is too large for the memory", "two model_unavailable model two: connection refused",
				"three model_unavailable there is no file three.gguf"}}},
		{"not after a token", []turn.Source{source(t, "one", broken, nil), source(t, "two", answers, nil)}, nil,
			result{"one", record.Failed, record.ModelUnavailable, true, nil}},
		{"not after a time-out", []turn.Source{source(t, "one", timeout, nil), source(t, "two", answers, nil)}, nil,
			result{"one", record.TimedOut, record.CodeTimedOut, true, nil}},
		{"not after a fault", []turn.Source{source(t, "one", fails, nil), source(t, "two", answers, nil)}, nil,
			result{"one", record.Failed, record.ModelError, false, nil}},
		{"the first holds no promise", []turn.Source{source(t, "one", plain, nil), source(t, "two", answers, nil)}, schema,
			result{"one", "", record.CapabilityMissing, false, nil}},
		{"one that stands in holds none", []turn.Source{source(t, "one", down, nil), source(t, "two", plain, nil), source(t, "three", answers, nil)}, schema,
			result{"three", record.Completed, "", false, []string{"one model_unavailable model one: connection refused",
				"two capability_missing script script declares no json constraint"}}},
		{"one that stands in is too small", []turn.Source{source(t, "one", down, nil), source(t, "two", small, nil), source(t, "three", answers, nil)}, nil,
			result{"three", record.Completed, "", false, []string{"one model_unavailable model one: connection refused",
				"two context_overflow model two: the prompt has 13 tokens and the context holds 4"}}},
		{"none, for now", []turn.Source{source(t, "one", "", absent("one", false)), source(t, "two", down, nil)}, nil,
			result{"one", record.Failed, record.ModelUnavailable, true, []string{"two model_unavailable model two: connection refused"}}},
		{"none, ever", []turn.Source{source(t, "one", "", absent("one", false)), source(t, "two", "", absent("two", false))}, schema,
			result{"one", "", record.ModelUnavailable, false, nil}},
		{"one alone, for now", []turn.Source{source(t, "one", "", absent("one", true))}, schema,
			result{"one", record.Failed, record.ModelUnavailable, true, nil}},
		{"one alone, ever", []turn.Source{source(t, "one", "", absent("one", false))}, nil,
			result{"one", "", record.ModelUnavailable, false, nil}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.spec != nil {
				if _, err := constraint.ByteVocabulary(); err != nil {
					t.Skip(err)
				}
			}
			req := &turn.Request{TurnID: "t", Agent: "a", User: "A question of some length", Spec: tc.spec}
			rec := turn.RunFirst(t.Context(), req, tc.sources, turn.Run)
			recordtest.Check(t, rec)
			var got result
			if rec.Request != nil {
				got.answeredBy = rec.Request.Model.String()
				for _, p := range rec.Request.PassedOver {
					got.passed = append(got.passed, p.Model.String()+" "+string(p.Code)+" "+p.Message)
				}
			} else {
				got.answeredBy = "one"
			}
			if rec.Outcome != nil {
				got.status = rec.Outcome.Status
			}
			if rec.Error != nil {
				got.code, got.retry = rec.Error.Code, rec.Error.Retry
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if strings.HasPrefix(tc.name, "none") {
				if !strings.Contains(rec.Error.Message, "none of the models can be had: model one: it is too large for the memory; model two: ") {
					t.Errorf("the message is %q", rec.Error.Message)
				}
			}
			if req.Model != nil {
				t.Error("the request was changed")
			}
		})
	}
}

// A turn that made calls of tools is not begun again elsewhere.
func TestNoFallbackWithinATurn(t *testing.T) {
	first := `tools: true
mask: false
replies:
- {match: question, tool_calls: [{name: note, arguments: {}}]}
default: {error: {kind: unavailable, message: gone, retry: true}}
`
	req := &turn.Request{TurnID: "t", User: "A question"}
	req.Tools = append(req.Tools, program(t, "note", "{}", `echo noted`))
	asked := false
	second := turn.Source{Name: "two", Open: func(context.Context) (model.Model, error) {
		asked = true
		return script.New("two", []byte(answers), script.Config{})
	}}
	rec := turn.RunFirst(t.Context(), req, []turn.Source{source(t, "one", first, nil), second}, turn.Run)
	recordtest.Check(t, rec)
	if asked || rec.Outcome.Status != record.Failed || len(rec.ToolCalls) != 1 {
		t.Errorf("another model was asked: %v; the outcome is %+v after %d calls", asked, rec.Outcome, len(rec.ToolCalls))
	}
}

func TestCancelledBetweenModels(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	gone := turn.Source{Name: "one", Open: func(context.Context) (model.Model, error) {
		cancel()
		return nil, context.Canceled
	}}
	rec := turn.RunFirst(ctx, &turn.Request{User: "x"}, []turn.Source{gone, source(t, "two", answers, nil)}, turn.Run)
	if rec.Outcome != nil || rec.Request != nil && len(rec.Request.PassedOver) > 0 {
		t.Errorf("the record is %+v", rec)
	}
}
