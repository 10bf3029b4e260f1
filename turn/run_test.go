package turn_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/record/recordtest"
	"agentgraph/turn"
)

// Whatever panics, there is a record, and it is an honest one.
func TestPanic(t *testing.T) {
	boom := func(context.Context, *model.Request) (*model.Response, error) { panic("boom") }
	tests := []struct {
		name     string
		change   func(*turn.Request, *wrapped)
		refused  bool
		delivery model.Delivery
	}{
		{"in the model", func(_ *turn.Request, m *wrapped) { m.generate = boom }, false, model.MayHaveBeenSent},
		{"in the audit of a prompt", func(r *turn.Request, _ *wrapped) { r.Audit = func(turn.Event) { panic("boom") } }, false, model.NotSent},
		{"in the clock", func(r *turn.Request, _ *wrapped) {
			n := 0
			r.Clock = func() time.Time {
				if n++; n > 1 {
					panic("boom")
				}
				return time.Unix(1, 0)
			}
		}, false, model.ResponseReceived},
		{"while admitting", func(_ *turn.Request, m *wrapped) { m.Model = nil }, true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &wrapped{Model: scripted(t, "replies: [{text: a}]")}
			req := &turn.Request{Agent: "a", RunID: "r", Model: m, User: "hi"}
			tt.change(req, m)
			rec := run(t, context.Background(), req)
			if rec.Error == nil || rec.Error.Code != record.Internal {
				t.Fatalf("error %v", rec.Error)
			}
			if (rec.Outcome == nil) != tt.refused {
				t.Fatalf("outcome %+v", rec.Outcome)
			}
			if !tt.refused && (rec.Outcome.Status != record.Failed || rec.Outcome.Delivery != tt.delivery) {
				t.Errorf("outcome %+v, want delivery %s", rec.Outcome, tt.delivery)
			}
		})
	}
}

func TestModelWithoutReply(t *testing.T) {
	for _, err := range []error{nil, errors.New("plain")} {
		m := &wrapped{Model: scripted(t, "replies: [{text: a}]")}
		m.generate = func(context.Context, *model.Request) (*model.Response, error) { return nil, err }
		rec := run(t, context.Background(), &turn.Request{Model: m, User: "hi"})
		if rec.Outcome == nil || rec.Outcome.Code != record.ModelError || rec.Outcome.Delivery != model.MayHaveBeenSent {
			t.Errorf("%v: %+v", err, rec.Outcome)
		}
	}
}

// Cancelling ends a turn within one step, and what there was is kept.
func TestCancelWhileGenerating(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := &turn.Request{Model: scripted(t, "replies: [{text: 'one two three four five'}]"), User: "hi"}
	req.Progress = func(p model.Progress) {
		if p.Tokens == 2 {
			cancel()
		}
	}
	rec := run(t, ctx, req)
	if rec.Outcome.Status != record.Cancelled || deref(rec.Outcome.Output) != "one two " || record.ExitCode(rec) != 130 {
		t.Errorf("got %+v %q", rec.Outcome, deref(rec.Outcome.Output))
	}
}

func TestTimeout(t *testing.T) {
	m := &wrapped{Model: scripted(t, "replies: [{text: a}]")}
	m.generate = func(ctx context.Context, _ *model.Request) (*model.Response, error) {
		<-ctx.Done()
		return nil, &model.Error{Kind: model.TimedOut, Delivery: model.MayHaveBeenSent, Err: ctx.Err()}
	}
	rec := run(t, context.Background(), &turn.Request{Model: m, User: "hi", Timeout: time.Millisecond})
	if rec.Outcome.Status != record.TimedOut || !strings.Contains(rec.Error.Message, "1ms") || rec.Error.Retry {
		t.Errorf("got %+v, %+v", rec.Outcome, rec.Error)
	}
	// A server's own limit is another matter.
	m.generate = func(context.Context, *model.Request) (*model.Response, error) {
		return nil, &model.Error{Kind: model.TimedOut, Delivery: model.MayHaveBeenSent, Err: errors.New("504"), Retry: true}
	}
	rec = run(t, context.Background(), &turn.Request{Model: m, User: "hi", Timeout: time.Minute})
	if rec.Outcome.Status != record.TimedOut || !rec.Error.Retry {
		t.Errorf("got %+v, %+v", rec.Outcome, rec.Error)
	}
}

func TestDefaultMaxTokens(t *testing.T) {
	tests := []struct {
		name string
		spec *constraint.Spec
		set  int
		want int
	}{
		{"free", nil, 0, 0},
		{"free, set", nil, 7, 7},
		{"shaped", spec(constraint.Regex, "a+"), 0, 1024},
		{"shaped, set", spec(constraint.Regex, "a+"), 5000, 5000},
	}
	for _, tt := range tests {
		m := &wrapped{Model: scripted(t, unmasked+"replies: [{text: a}]")}
		got := -1
		m.generate = func(ctx context.Context, req *model.Request) (*model.Response, error) {
			got = req.Sampling.MaxTokens
			return m.Model.Generate(ctx, req)
		}
		rec := run(t, context.Background(), &turn.Request{Model: m, User: "hi", Spec: tt.spec,
			ConstraintOptions: validate, Sampling: model.Sampling{MaxTokens: tt.set}})
		if got != tt.want || rec.Request.Sampling.MaxTokens != tt.want {
			t.Errorf("%s: %d in the call, %d in the record, want %d", tt.name, got, rec.Request.Sampling.MaxTokens, tt.want)
		}
	}
}

// The record of a turn holds what was asked, in full.
func TestRecord(t *testing.T) {
	seed := uint64(1<<64 - 1)
	clock := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	m := &wrapped{Model: scripted(t, "name: fake\nreplies: [{text: \"a <b> & \\u2028 c\", reasoning: hmm}]")}
	m.generate = func(ctx context.Context, req *model.Request) (*model.Response, error) {
		resp, err := m.Model.Generate(ctx, req)
		resp.Rendered.TemplateSHA256 = strings.Repeat("ab", 32)
		resp.Rendered.Clock = clock
		resp.Seed = &seed
		resp.Usage.CacheReadTokens = nil
		resp.Stats = model.Stats{Prefill: 1500 * time.Microsecond, Decode: time.Millisecond, ForcedTokens: 2}
		return resp, err
	}
	file := record.FileRef{Path: "agents/a/input/x.txt", SHA256: strings.Repeat("1", 64), Bytes: 2}
	req := &turn.Request{
		Agent: "a", TurnID: "t", RunID: "r", SessionID: "s", TraceID: "tr", Attempt: 2,
		System: []string{"sys"}, User: "hi", Inputs: []record.FileRef{file}, Model: m, Solo: true,
		Lineage: &record.Lineage{Roots: []record.FileRef{file}, Hops: 1}, SettingsSHA256: strings.Repeat("2", 64),
		Clock: func() time.Time { return clock },
	}
	rec := run(t, context.Background(), req)
	b := string(recordtest.Check(t, rec))
	for _, want := range []string{
		`"schema_version":"agentgraph.turn/1","turn_id":"t","run_id":"r","session_id":"s","trace_id":"tr","agent":"a","attempt":2,`,
		`"outcome":{"status":"completed","output":"a <b> & \u2028 c","finish_reason":"stop",`,
		`"cache_read_input_tokens":null`, `"reasoning":"hmm"`, `"error":null`,
		`"output_validation":{"status":"not_requested","enforced_by":null,"diagnostics":[]},"repair":null,`,
		`"accounting":{"model_calls":"1","tool_calls":"0","usage":{"input_tokens":"`,
		`"cost_microusd":null,"charged_tokens":null`,
		`"messages":[{"role":"system","content":"sys"},{"role":"user","content":"hi"}]`,
		`"seed":18446744073709551615`, `"clock":"2026-01-02T03:04:05.006Z"`, `"template_sha256":"abab`, `"determinism":"solo"`,
		`"tools":[]`, `"model":{"engine":"script","name":"fake","weights_sha256":"`,
		`"prefill_ms":1.5,`, `"mask_ms":null`, `"forced_tokens":2,"reused_tokens":0`,
		`"lineage":{"root_inputs":[{"path":"agents/a/input/x.txt"`, `"hops":1}`,
	} {
		if !strings.Contains(b, want) {
			t.Errorf("no %s in\n%s", want, b)
		}
	}
	again, err := record.Marshal(rec)
	if err != nil || string(again) != b {
		t.Errorf("encoded twice it differs: %v", err)
	}
}

func TestNamesWithoutAnAgent(t *testing.T) {
	rec := run(t, context.Background(), &turn.Request{Model: scripted(t, "replies: [{text: a}]"), User: "hi"})
	if rec.Agent != nil || rec.TurnID != nil || rec.RunID == nil || *rec.SessionID != *rec.RunID || *rec.TraceID != *rec.RunID || rec.Attempt != 1 {
		t.Errorf("got %+v", rec)
	}
}

func TestRender(t *testing.T) {
	req := &turn.Request{Model: scripted(t, "constraints: []\nreplies: [{text: a}]"), Prompt: "p", User: "hi"}
	got, msgs, err := turn.Render(context.Background(), req)
	if err != nil || got.Prompt != "<|system|>\np\n<|user|>\nhi\n<|assistant|>\n" {
		t.Errorf("%q, %v", got.Prompt, err)
	}
	if diff := cmp.Diff(turn.Messages(req), msgs); diff != "" {
		t.Error(diff)
	}
	req.Spec = spec(constraint.JSON, ratingSchema)
	_, _, err = turn.Render(context.Background(), req)
	var e *record.Error
	if !errors.As(err, &e) || e.Code != record.CapabilityMissing {
		t.Errorf("render admits what run refuses: %v", err)
	}
}

func TestAuditTextIsCut(t *testing.T) {
	text := strings.Repeat("é", 5000)
	got := turn.NewAuditText(text)
	if got.Bytes != 10000 || len(got.Text) != 8192 || !strings.HasPrefix(text, got.Text) {
		t.Errorf("%d bytes of %d", len(got.Text), got.Bytes)
	}
	e := turn.PublishEvent(&turn.Request{Agent: "a"}, record.FileRef{Path: "out"})
	if e.Type != turn.EventPublish || e.Output.Path != "out" || e.Time.IsZero() {
		t.Errorf("%+v", e)
	}
}

// An answer with bytes that are no text is made text before it is judged.
func TestAnswerIsUTF8(t *testing.T) {
	m := &wrapped{Model: scripted(t, unmasked+"replies: [{text: a}]")}
	m.generate = func(context.Context, *model.Request) (*model.Response, error) {
		return &model.Response{Text: "a\xffb", Finish: model.Stop}, nil
	}
	rec := run(t, context.Background(), &turn.Request{Model: m, User: "hi"})
	if got := deref(rec.Outcome.Output); got != "a\uFFFDb" {
		t.Errorf("got %q", got)
	}
	rec = run(t, context.Background(), &turn.Request{Model: m, User: "hi", Spec: spec(constraint.Regex, "ab"), ConstraintOptions: validate})
	if rec.Outcome.Code != record.OutputValidationFailed {
		t.Errorf("got %+v", rec.Outcome)
	}
}

// An error has one piece of advice: that of who failed, where it gives some.
func TestOneHint(t *testing.T) {
	for _, tt := range []struct {
		kind      model.ErrorKind
		err       string
		msg, hint string
	}{
		{model.ContextOverflow, "the prompt is too long; shorten it", "model m: the prompt is too long", "shorten it"},
		{model.ContextOverflow, "the prompt is too long", "model m: the prompt is too long", "shorten the input or the prompt, or raise the model's context"},
		{model.Unavailable, "the file is cut short; fetch it again", "model m: the file is cut short", "fetch it again"},
		{model.Unavailable, "connection refused", "model m: connection refused", "see that the model's file or server is there; agentgraph check and agentgraph doctor say more"},
		{model.Refused, "no; never", "model m: no; never", "change the prompt, or use another model"},
		{model.Failed, "one; two", "model m: one; two", ""},
	} {
		m := &wrapped{Model: scripted(t, "replies: [{text: a}]")}
		m.generate = func(context.Context, *model.Request) (*model.Response, error) {
			return nil, &model.Error{Kind: tt.kind, Delivery: model.NotSent, Model: "m", Err: errors.New(tt.err)}
		}
		rec := run(t, context.Background(), &turn.Request{Model: m, User: "hi"})
		if rec.Error == nil || rec.Error.Message != tt.msg || rec.Error.Hint != tt.hint {
			t.Errorf("%s %q: %+v", tt.kind, tt.err, rec.Error)
		}
	}
}

// Log probabilities reach the record as they are; what JSON cannot say is the
// least number there is.
func TestLogprobsAreRecorded(t *testing.T) {
	m := &wrapped{Model: scripted(t, "replies: [{text: a}]")}
	m.generate = func(_ context.Context, req *model.Request) (*model.Response, error) {
		if req.Sampling.Logprobs != 2 {
			t.Errorf("the model is asked for %d", req.Sampling.Logprobs)
		}
		return &model.Response{Text: "a", Finish: model.Stop, Logprobs: []model.TokenLogprob{
			{Token: "a", Logprob: -0.25, Top: []model.TokenLogprob{{Token: "a", Logprob: -0.25}, {Token: "\xe2", Bytes: []byte{0xe2}, Logprob: math.Inf(-1)}}}}}, nil
	}
	rec := run(t, context.Background(), &turn.Request{Model: m, User: "hi", Sampling: model.Sampling{Logprobs: 2}})
	want := []model.TokenLogprob{{Token: "a", Logprob: -0.25, Top: []model.TokenLogprob{{Token: "a", Logprob: -0.25},
		{Token: "\uFFFD", Bytes: []byte{0xe2}, Logprob: -math.MaxFloat64}}}}
	if d := cmp.Diff(want, rec.Outcome.Logprobs); d != "" {
		t.Error(d)
	}
	rec = run(t, context.Background(), &turn.Request{Model: m, User: "hi", Sampling: model.Sampling{Logprobs: turn.MaxLogprobs + 1}})
	if rec.Error == nil || rec.Error.Code != record.SettingsInvalid {
		t.Errorf("more than %d: %v", turn.MaxLogprobs, rec.Error)
	}
}
