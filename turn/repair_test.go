package turn_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/turn"
)

func repairRequest(m model.Model) *turn.Request {
	return &turn.Request{
		Agent: "a", TurnID: "t", RunID: "r", Model: m, User: "rate it",
		Spec: spec(constraint.JSON, ratingSchema), ConstraintOptions: validate,
		Repair: turn.RepairOptions{Enabled: true},
	}
}

const (
	wrong = `'{"rating":9}'`
	right = `'{"rating":4}'`
)

func TestRepair(t *testing.T) {
	tests := []struct {
		name   string
		script string
		change func(*turn.Request)

		status      record.Status
		code        record.Code
		repair      record.RepairStatus
		blocked     record.BlockedBy
		output      string
		rejected    string // "" for null
		attempts    string
		validations string
		calls       string
	}{
		{name: "not needed", script: "replies: [{text: " + right + "}]",
			status: record.Completed, repair: record.RepairNotNeeded, output: `{"rating":4}`,
			attempts: "0", validations: "1", calls: "1"},
		{name: "succeeded", script: "replies: [{text: " + wrong + "}, {text: " + right + "}]",
			status: record.Completed, repair: record.RepairSucceeded, output: `{"rating":4}`, rejected: `{"rating":9}`,
			attempts: "1", validations: "2", calls: "2"},
		{name: "failed", script: "replies: [{text: " + wrong + "}, {text: '{\"rating\":7}'}]",
			status: record.Failed, code: record.OutputValidationFailed, repair: record.RepairFailed,
			output: `{"rating":7}`, rejected: `{"rating":9}`, attempts: "1", validations: "2", calls: "2"},
		{name: "placeholder", script: "replies: [{text: " + wrong + "}, {text: '{}'}]",
			status: record.Failed, code: record.OutputValidationFailed, repair: record.RepairFailed,
			output: `{}`, rejected: `{"rating":9}`, attempts: "1", validations: "2", calls: "2"},
		{name: "first answer cut off", script: "replies: [{text: " + wrong + "}, {text: " + right + "}]",
			change: func(r *turn.Request) { r.Sampling.MaxTokens = 2 },
			status: record.LimitExceeded, code: record.Truncated, repair: record.RepairBlocked, blocked: record.BlockedTruncated,
			output: `{"rating`, attempts: "0", validations: "0", calls: "1"},
		{name: "second answer cut off", script: "replies: [{text: " + wrong + "}, {text: " + right + "}]",
			change: func(r *turn.Request) { r.Sampling.MaxTokens = 5 },
			status: record.LimitExceeded, code: record.Truncated, repair: record.RepairFailed,
			output: `{"rating`, rejected: `{"rating":9}`, attempts: "1", validations: "1", calls: "2"},
		{name: "no output tokens left", script: "replies: [{text: " + wrong + "}, {text: " + right + "}]",
			change: func(r *turn.Request) { r.Sampling.MaxTokens = 3 },
			status: record.Failed, code: record.OutputValidationFailed, repair: record.RepairBlocked, blocked: record.BlockedOutputTokens,
			output: `{"rating":9}`, attempts: "0", validations: "1", calls: "1"},
		{name: "no model call left", script: "replies: [{text: " + wrong + "}, {text: " + right + "}]",
			change: func(r *turn.Request) { r.ModelCalls = 1 },
			status: record.Failed, code: record.OutputValidationFailed, repair: record.RepairBlocked, blocked: record.BlockedModelCalls,
			output: `{"rating":9}`, attempts: "0", validations: "1", calls: "1"},
		{name: "no room in the context", script: "context: 30\nreplies: [{text: " + wrong + "}, {text: " + right + "}]",
			status: record.Failed, code: record.OutputValidationFailed, repair: record.RepairBlocked, blocked: record.BlockedContext,
			output: `{"rating":9}`, attempts: "0", validations: "1", calls: "1"},
		{name: "no room in a context the server knows", script: "replies: [{text: " + wrong + "}, {error: {kind: context_overflow}}]",
			status: record.Failed, code: record.OutputValidationFailed, repair: record.RepairBlocked, blocked: record.BlockedContext,
			output: `{"rating":9}`, attempts: "0", validations: "1", calls: "1"},
		{name: "second call fails", script: "replies: [{text: " + wrong + "}, {error: {kind: unavailable, retry: true}}]",
			status: record.Failed, code: record.ModelUnavailable, repair: record.RepairFailed,
			output: "-", rejected: `{"rating":9}`, attempts: "1", validations: "1", calls: "1"},
		{name: "no answer at all", script: "replies: [{error: {kind: unavailable}}]",
			status: record.Failed, code: record.ModelUnavailable, output: "-", calls: "0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := repairRequest(scripted(t, unmasked+tt.script))
			if tt.change != nil {
				tt.change(req)
			}
			rec := run(t, context.Background(), req)
			if rec.Outcome == nil {
				t.Fatal(rec.Error)
			}
			if rec.Outcome.Status != tt.status || (rec.Error == nil) != (tt.code == "") || rec.Error != nil && rec.Error.Code != tt.code {
				t.Errorf("outcome %s, error %v, want %s, %s", rec.Outcome.Status, rec.Error, tt.status, tt.code)
			}
			if got := deref(rec.Outcome.Output); got != tt.output {
				t.Errorf("output %q, want %q", got, tt.output)
			}
			if rec.Accounting.ModelCalls != tt.calls {
				t.Errorf("model_calls %s, want %s", rec.Accounting.ModelCalls, tt.calls)
			}
			if tt.repair == "" {
				if rec.Repair != nil {
					t.Errorf("repair %+v, want none", rec.Repair)
				}
				return
			}
			rep := rec.Repair
			if rep == nil || rep.Status != tt.repair || rep.Blocked != tt.blocked || rep.Attempts != tt.attempts || rep.Validations != tt.validations {
				t.Fatalf("repair %+v", rep)
			}
			if tt.rejected == "" {
				if rep.Rejected != nil || rep.Feedback != nil {
					t.Errorf("rejected %v, want none", deref(rep.Rejected))
				}
				return
			}
			if deref(rep.Rejected) != tt.rejected || len(rep.RejectedDiagnostics) == 0 || rep.Feedback == nil {
				t.Errorf("rejected %q, diagnostics %v", deref(rep.Rejected), rep.RejectedDiagnostics)
			}
			if strings.Contains(*rep.Feedback, "9") {
				t.Errorf("the feedback holds a value: %s", *rep.Feedback)
			}
		})
	}
}

func deref(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// The second call is the same conversation, with one answer and one message
// more, the budget that is left, and no more time.
func TestRepairConversation(t *testing.T) {
	base := scripted(t, unmasked+"replies: [{text: "+wrong+"}, {text: "+right+"}]")
	var asked []*model.Request
	var deadlines []time.Time
	m := &wrapped{Model: base}
	m.generate = func(ctx context.Context, req *model.Request) (*model.Response, error) {
		asked = append(asked, req)
		d, _ := ctx.Deadline()
		deadlines = append(deadlines, d)
		return base.Generate(ctx, req)
	}
	req := repairRequest(m)
	req.Prompt = "You rate."
	req.Timeout = time.Hour
	req.Sampling.MaxTokens = 100
	var events []turn.Event
	req.Audit = func(e turn.Event) { events = append(events, e) }
	rec := run(t, context.Background(), req)
	if len(asked) != 2 {
		t.Fatalf("%d calls", len(asked))
	}
	want := append(append([]model.Message{}, asked[0].Messages...),
		model.Message{Role: model.Assistant, Content: `{"rating":9}`},
		model.Message{Role: model.User, Content: *rec.Repair.Feedback})
	if diff := cmp.Diff(want, asked[1].Messages); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(asked[0].Messages, rec.Request.Messages); diff != "" {
		t.Errorf("the record keeps the first conversation: %s", diff)
	}
	if asked[0].Sampling.MaxTokens != 100 || asked[1].Sampling.MaxTokens != 97 {
		t.Errorf("budgets %d and %d, want 100 and 97", asked[0].Sampling.MaxTokens, asked[1].Sampling.MaxTokens)
	}
	if !deadlines[0].Equal(deadlines[1]) || deadlines[0].IsZero() {
		t.Errorf("deadlines %v", deadlines)
	}
	if rec.Accounting.Usage.OutputTokens == nil || *rec.Accounting.Usage.OutputTokens != "6" || *rec.Outcome.Usage.OutputTokens != 3 {
		t.Errorf("usage %+v and %+v", rec.Accounting.Usage, rec.Outcome.Usage)
	}
	if len(events) != 2 || events[0].Call != 1 || events[1].Call != 2 || events[1].Constraint == nil || events[1].Constraint.Text != ratingSchema {
		t.Errorf("audit %+v", events)
	}
}

// The time a repair would need is the turn's own.
func TestRepairDeadline(t *testing.T) {
	base := scripted(t, unmasked+"replies: [{text: "+wrong+"}, {text: "+right+"}]")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	late := &lateContext{Context: ctx}
	m := &wrapped{Model: base}
	m.generate = func(ctx context.Context, req *model.Request) (*model.Response, error) {
		resp, err := base.Generate(ctx, req)
		late.deadline = time.Now().Add(-time.Second) // passed while the model answered
		return resp, err
	}
	rec := run(t, late, repairRequest(m))
	if rec.Repair == nil || rec.Repair.Blocked != record.BlockedDeadline || rec.Error.Code != record.OutputValidationFailed {
		t.Errorf("repair %+v, error %v", rec.Repair, rec.Error)
	}
}

// A turn whose time is over while its answer is judged has no time to repair.
func TestRepairAfterTheEnd(t *testing.T) {
	for _, timeout := range []bool{false, true} {
		base := scripted(t, unmasked+"replies: [{text: "+wrong+"}, {text: "+right+"}]")
		ending := &endingContext{Context: context.Background(), done: make(chan struct{}), err: context.Canceled}
		if timeout {
			ending.err = context.DeadlineExceeded
		}
		m := &wrapped{Model: base}
		m.generate = func(ctx context.Context, req *model.Request) (*model.Response, error) {
			resp, err := base.Generate(context.Background(), req)
			close(ending.done)
			<-ctx.Done()
			return resp, err
		}
		rec := run(t, ending, repairRequest(m))
		switch rep := rec.Repair; {
		case timeout && (rec.Outcome.Status != record.TimedOut || rep == nil || rep.Blocked != record.BlockedDeadline):
			t.Errorf("timeout: %+v, repair %+v", rec.Outcome, rep)
		case !timeout && (rec.Outcome.Status != record.Cancelled || rep != nil):
			t.Errorf("cancelled: %+v, repair %+v", rec.Outcome, rep)
		}
		if deref(rec.Outcome.Output) != `{"rating":9}` {
			t.Errorf("output %s", deref(rec.Outcome.Output))
		}
	}
}

// endingContext ends with err when the test closes done.
type endingContext struct {
	context.Context
	done chan struct{}
	err  error
}

func (c *endingContext) Done() <-chan struct{} { return c.done }

func (c *endingContext) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// lateContext has a deadline that passes without a timer.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c *lateContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

// A turn that is cancelled or out of time in its second call says so and
// keeps the first answer.
func TestRepairInterrupted(t *testing.T) {
	for _, timeout := range []bool{false, true} {
		base := scripted(t, unmasked+"replies: [{text: "+wrong+"}]")
		ending := &endingContext{Context: context.Background(), done: make(chan struct{}), err: context.Canceled}
		if timeout {
			ending.err = context.DeadlineExceeded
		}
		m := &wrapped{Model: base}
		calls := 0
		m.generate = func(ctx context.Context, req *model.Request) (*model.Response, error) {
			if calls++; calls == 1 {
				return base.Generate(ctx, req)
			}
			close(ending.done)
			<-ctx.Done()
			return nil, &model.Error{Kind: model.Cancelled, Delivery: model.MayHaveBeenSent, Err: ctx.Err(),
				Partial: &model.Response{Text: `{"rat`}}
		}
		rec := run(t, ending, repairRequest(m))
		want := record.Cancelled
		if timeout {
			want = record.TimedOut
		}
		if rec.Outcome == nil || rec.Outcome.Status != want || deref(rec.Outcome.Output) != `{"rat` || deref(rec.Repair.Rejected) != `{"rating":9}` {
			t.Errorf("timeout %v: outcome %+v, repair %+v", timeout, rec.Outcome, rec.Repair)
		}
		if rec.Accounting.Usage.OutputTokens != nil {
			t.Error("the tokens of a call nobody counted are known")
		}
	}
}

func TestFeedback(t *testing.T) {
	long := "/" + strings.Repeat("x", 255)
	var many []constraint.Diagnostic
	for range 8 {
		many = append(many, constraint.Diagnostic{Code: constraint.SchemaViolation, Instance: long, Schema: long})
	}
	for _, limit := range []int{512, 600, 1024, 4096, 0} {
		got := turn.Feedback(many, limit)
		most := limit
		if most == 0 {
			most = 4096
		}
		if len(got) > most {
			t.Errorf("limit %d: %d bytes", limit, len(got))
		}
		if n := strings.Count(got, string(constraint.SchemaViolation)); n == 0 {
			t.Errorf("limit %d: no diagnostic", limit)
		}
	}
	got := turn.Feedback([]constraint.Diagnostic{{Code: constraint.SchemaViolation, Instance: "/a\n\"b\"", Schema: "/properties/a/type"}}, 0)
	want := "Your answer is not valid. What is wrong, as JSON pointers into the answer and into the schema:\n" +
		`- schema_violation at "/a\n\"b\"", schema "/properties/a/type"` + "\n" +
		"Answer again: the whole corrected answer and nothing else."
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
