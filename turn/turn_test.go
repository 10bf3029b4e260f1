package turn_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/model/script"
	"agentgraph/record"
	"agentgraph/record/recordtest"
	"agentgraph/turn"
)

// scripted is a model that says what a script says; it never really sleeps.
func scripted(t *testing.T, src string) *script.Model {
	t.Helper()
	m, err := script.New("script.yaml", []byte(src), script.Config{
		Sleep: func(ctx context.Context, d time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs a turn and checks that its record keeps the record's contract.
func run(t *testing.T, ctx context.Context, req *turn.Request) *record.Record {
	t.Helper()
	rec := turn.Run(ctx, req)
	recordtest.Check(t, rec)
	if text, ok := rec.Answer(); ok && req.Spec != nil {
		con, err := constraint.Compile(*req.Spec, req.ConstraintOptions)
		if err != nil || !con.Validate(ctx, text).Valid {
			t.Errorf("an answer that does not validate was completed: %q", text)
		}
	}
	return rec
}

func native(t *testing.T) {
	t.Helper()
	if _, err := constraint.ByteVocabulary(); errors.Is(err, constraint.ErrNotBuilt) {
		t.Skip("needs the native library")
	}
}

func spec(kind constraint.Kind, src string) *constraint.Spec {
	return &constraint.Spec{Kind: kind, Source: []byte(src), File: "agents/a/system/.schema-a.json"}
}

var validate = constraint.Options{Enforce: constraint.EnforceValidate}

const ratingSchema = `{"type":"object","properties":{"rating":{"type":"integer","minimum":1,"maximum":5}},"required":["rating"],"additionalProperties":false}`

// unmasked is a script that declares no constraint at all.
const unmasked = "constraints: []\n"

func TestOutcomes(t *testing.T) {
	tests := []struct {
		name   string
		script string
		req    turn.Request
		ctx    func() context.Context

		status  record.Status // "" for a refusal
		code    record.Code
		limit   string
		deliver model.Delivery
		output  string // "-" for null
		exit    int
		valid   record.ValidationStatus
		calls   string
	}{
		{name: "free text", script: "replies: [{text: hello}]",
			status: record.Completed, output: "hello", exit: 0, valid: record.NotRequested, calls: "1"},
		{name: "empty text", script: "replies: [{text: ''}]",
			status: record.Completed, output: "", exit: 0, valid: record.NotRequested, calls: "1"},
		{name: "valid by validation", script: unmasked + `replies: [{text: '{"rating": 3}'}]`,
			req:    turn.Request{Spec: spec(constraint.JSON, ratingSchema), ConstraintOptions: validate},
			status: record.Completed, output: `{"rating": 3}`, exit: 0, valid: record.Valid, calls: "1"},
		{name: "invalid by validation", script: unmasked + `replies: [{text: '{"rating": 9}'}]`,
			req:    turn.Request{Spec: spec(constraint.JSON, ratingSchema), ConstraintOptions: validate},
			status: record.Failed, code: record.OutputValidationFailed, deliver: model.ResponseReceived,
			output: `{"rating": 9}`, exit: 1, valid: record.Invalid, calls: "1"},
		{name: "not JSON", script: unmasked + `replies: [{text: 'I would say 3.'}]`,
			req:    turn.Request{Spec: spec(constraint.JSON, ratingSchema), ConstraintOptions: validate},
			status: record.Failed, code: record.OutputValidationFailed, deliver: model.ResponseReceived,
			output: `I would say 3.`, exit: 1, valid: record.Invalid, calls: "1"},
		{name: "a server's constraint that is ignored", script: "mask: false\nreplies: [{text: 'free text'}]",
			req:    turn.Request{Spec: spec(constraint.JSON, `{"const":"zq7"}`)},
			status: record.Failed, code: record.OutputValidationFailed, deliver: model.ResponseReceived,
			output: "free text", exit: 1, valid: record.Invalid, calls: "1"},
		{name: "truncated free text", script: "replies: [{text: 'one two three four'}]",
			req:    turn.Request{Sampling: model.Sampling{MaxTokens: 2}},
			status: record.LimitExceeded, code: record.Truncated, limit: "output_tokens",
			output: "one two ", exit: 1, valid: record.NotRequested, calls: "1"},
		{name: "truncated where it happens to be valid", script: unmasked + "replies: [{text: '123456789'}]",
			req: turn.Request{Spec: spec(constraint.Regex, `[0-9]+`), ConstraintOptions: validate,
				Sampling: model.Sampling{MaxTokens: 1}},
			status: record.LimitExceeded, code: record.Truncated, limit: "output_tokens",
			output: "1234", exit: 1, valid: record.Invalid, calls: "1"},
		{name: "answer too large", script: "token_bytes: 512\nreplies: [{text: 'more than eight'}]",
			req:    turn.Request{ConstraintOptions: constraint.Options{Limits: constraint.Limits{AnswerBytes: 8}}},
			status: record.LimitExceeded, code: record.CodeLimitExceeded, limit: "answer_bytes",
			output: "more than eight", exit: 1, valid: record.NotRequested, calls: "1"},
		{name: "unavailable", script: "replies: [{error: {kind: unavailable}}]",
			status: record.Failed, code: record.ModelUnavailable, deliver: model.NotSent,
			output: "-", exit: 1, valid: record.NotRequested, calls: "0"},
		{name: "broken off", script: "replies: [{text: 'one two three', error: {kind: failed, after: 2}}]",
			status: record.Failed, code: record.ModelError, deliver: model.MayHaveBeenSent,
			output: "one two ", exit: 1, valid: record.NotRequested, calls: "1"},
		{name: "declined", script: "replies: [{error: {kind: refused}}]",
			status: record.Failed, code: record.ServerRefusal, deliver: model.ResponseReceived,
			output: "-", exit: 1, valid: record.NotRequested, calls: "1"},
		{name: "timed out by itself", script: "replies: [{error: {kind: timed_out}}]",
			status: record.TimedOut, code: record.CodeTimedOut, output: "-", exit: 1, valid: record.NotRequested, calls: "0"},
		{name: "cancelled by itself", script: "replies: [{error: {kind: cancelled}}]",
			status: record.Cancelled, code: record.CodeCancelled, output: "-", exit: 130, valid: record.NotRequested, calls: "0"},
		{name: "context overflow after the call was sent", script: "replies: [{text: abcd, error: {kind: context_overflow, after: 1}}]",
			status: record.Failed, code: record.ContextOverflow, deliver: model.MayHaveBeenSent,
			output: "abcd", exit: 1, valid: record.NotRequested, calls: "1"},
		{name: "a call of a tool that is not offered", script: "replies: [{text: calling, tool_calls: [{name: add, arguments: {a: 1}}]}]",
			status: record.Failed, code: record.ToolFailed, deliver: model.ResponseReceived,
			output: "calling", exit: 1, valid: record.NotRequested, calls: "1"},
		{name: "cancelled before", script: "replies: [{text: a}]",
			ctx:    func() context.Context { c, f := context.WithCancel(context.Background()); f(); return c },
			status: record.Cancelled, code: record.CodeCancelled, output: "-", exit: 130, valid: record.NotRequested, calls: "0"},
		{name: "deadline before", script: "replies: [{text: a}]",
			ctx: func() context.Context {
				c, f := context.WithTimeout(context.Background(), -1)
				f()
				return c
			},
			status: record.TimedOut, code: record.CodeTimedOut, output: "-", exit: 1, valid: record.NotRequested, calls: "0"},

		{name: "context overflow", script: "context: 8\nreplies: [{text: a}]", req: turn.Request{User: strings.Repeat("x", 99)},
			code: record.ContextOverflow, exit: 2, valid: record.NotRequested},
		{name: "capability refused by the model itself", script: "replies: [{error: {kind: capability}}]",
			code: record.CapabilityMissing, exit: 2, valid: record.NotRequested},
		{name: "bad schema", script: unmasked + "replies: [{text: a}]",
			req:  turn.Request{Spec: spec(constraint.JSON, `{"type":"strng"}`), ConstraintOptions: validate},
			code: record.SchemaRefused, exit: 2, valid: record.NotRequested},
		{name: "no such kind", script: "replies: [{text: a}]", req: turn.Request{Spec: spec("yaml", `a`)},
			code: record.SchemaRefused, exit: 2, valid: record.NotRequested},
		{name: "not text", script: "replies: [{text: a}]", req: turn.Request{User: "\xff\xfe"},
			code: record.InputNotText, exit: 2, valid: record.NotRequested},
		{name: "max_tokens", script: "replies: [{text: a}]", req: turn.Request{Sampling: model.Sampling{MaxTokens: -1}},
			code: record.SettingsInvalid, exit: 2, valid: record.NotRequested},
		{name: "temperature", script: "replies: [{text: a}]", req: turn.Request{Sampling: model.Sampling{Temperature: -1}},
			code: record.SettingsInvalid, exit: 2, valid: record.NotRequested},
		{name: "enforce", script: "replies: [{text: a}]",
			req:  turn.Request{Spec: spec(constraint.JSON, `{}`), ConstraintOptions: constraint.Options{Enforce: "hard"}},
			code: record.SettingsInvalid, exit: 2, valid: record.NotRequested},
		{name: "feedback", script: "replies: [{text: a}]", req: turn.Request{Repair: turn.RepairOptions{Enabled: true, MaxFeedbackBytes: 100}},
			code: record.SettingsInvalid, exit: 2, valid: record.NotRequested},
		{name: "model calls", script: "replies: [{text: a}]", req: turn.Request{ModelCalls: -1},
			code: record.SettingsInvalid, exit: 2, valid: record.NotRequested},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := tt.req
			req.Agent, req.TurnID, req.RunID = "a", "t1", "r1"
			req.Model = scripted(t, tt.script)
			ctx := context.Background()
			if tt.ctx != nil {
				ctx = tt.ctx()
			}
			rec := run(t, ctx, &req)
			if got := record.ExitCode(rec); got != tt.exit {
				t.Errorf("exit code %d, want %d", got, tt.exit)
			}
			if rec.OutputValidation.Status != tt.valid {
				t.Errorf("validation is %s, want %s", rec.OutputValidation.Status, tt.valid)
			}
			switch {
			case tt.code == "" && rec.Error != nil:
				t.Errorf("error %v, want none", rec.Error)
			case tt.code != "" && (rec.Error == nil || rec.Error.Code != tt.code):
				t.Fatalf("error %v, want code %s", rec.Error, tt.code)
			}
			if tt.status == "" {
				if rec.Outcome != nil {
					t.Fatalf("outcome %+v, want a refusal", rec.Outcome)
				}
				return
			}
			o := rec.Outcome
			if o == nil {
				t.Fatalf("no outcome: %v", rec.Error)
			}
			if o.Status != tt.status || o.Limit != tt.limit || o.Delivery != tt.deliver {
				t.Errorf("outcome %+v, want status %s, limit %q, delivery %q", o, tt.status, tt.limit, tt.deliver)
			}
			if tt.status == record.Failed && o.Code != tt.code {
				t.Errorf("outcome's code is %s, want %s", o.Code, tt.code)
			}
			got := "-"
			if o.Output != nil {
				got = *o.Output
			}
			if got != tt.output {
				t.Errorf("output %q, want %q", got, tt.output)
			}
			if rec.Accounting.ModelCalls != tt.calls {
				t.Errorf("model_calls %s, want %s", rec.Accounting.ModelCalls, tt.calls)
			}
			if _, ok := rec.Answer(); ok != (tt.status == record.Completed) {
				t.Errorf("Answer() says %v for %s", ok, tt.status)
			}
		})
	}
}

func TestNoModel(t *testing.T) {
	rec := run(t, context.Background(), &turn.Request{Agent: "a", User: "hi"})
	if rec.Outcome != nil || rec.Error.Code != record.ModelUnavailable || rec.Request != nil {
		t.Errorf("got %+v", rec)
	}
}

func TestRefuse(t *testing.T) {
	var events []turn.Event
	rec := turn.Refuse(&turn.Request{Agent: "a", TurnID: "t", RunID: "r", SessionID: "s", Attempt: 2,
		Inputs: []record.FileRef{{Path: "agents/a/input/x", SHA256: strings.Repeat("0", 64), Bytes: 3}},
		Audit:  func(e turn.Event) { events = append(events, e) },
	}, &record.Error{Code: record.InputTooLarge, Message: "the input has 2 MiB"})
	recordtest.Check(t, rec)
	if rec.RunID != nil || rec.SessionID != nil || rec.Attempt != 0 || *rec.TurnID != "t" || len(rec.Inputs) != 1 {
		t.Errorf("got %+v", rec)
	}
	if len(events) != 1 || events[0].Type != turn.EventRefusal || events[0].Error.Code != record.InputTooLarge {
		t.Errorf("audit: %+v", events)
	}
}

// Nothing is asked of a model whose engine cannot hold the constraint, and
// the refusal says where the capability is declared.
func TestCapabilityRefusal(t *testing.T) {
	tests := []struct {
		name   string
		engine constraint.Engine
		hint   string
	}{
		{"local", constraint.Engine{Name: "llama.cpp", Declared: constraint.DeclaredLocal, Where: "agentgraph.yaml, models: small"}, "agentgraph.yaml, models: small"},
		{"server", constraint.Engine{Name: "vllm", Declared: constraint.DeclaredServer, Where: "agentgraph.yaml, models: big"}, "agentgraph.yaml, models: big"},
		{"plugin", constraint.Engine{Name: "mine", Declared: constraint.DeclaredPlugin, Where: "ag-provider-mine"}, "ag-provider-mine"},
		{"script", constraint.Engine{Name: "script", Declared: constraint.DeclaredScript, Where: "answers.yaml, constraints:"}, "answers.yaml"},
		{"another kind", constraint.Engine{Name: "vllm", Declared: constraint.DeclaredServer, Kinds: []constraint.Kind{constraint.Regex}, Where: "here"}, "here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked := false
			m := &wrapped{Model: scripted(t, "replies: [{text: a}]"), engine: &tt.engine,
				generate: func(context.Context, *model.Request) (*model.Response, error) { asked = true; return nil, nil }}
			rec := run(t, context.Background(), &turn.Request{Model: m, User: "hi", Spec: spec(constraint.JSON, ratingSchema), SchemaFile: ".schema-a.json"})
			if asked {
				t.Error("the model was asked")
			}
			e := rec.Error
			if rec.Outcome != nil || e == nil || e.Code != record.CapabilityMissing || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("got %+v, want a hint at %s", e, tt.hint)
			}
			if c := rec.Request.Constraint; c.File != ".schema-a.json" || c.Source != ratingSchema {
				t.Errorf("the record's constraint is %+v", c)
			}
			// The same model answers when validation may decide.
			m.generate = nil
			rec = run(t, context.Background(), &turn.Request{Model: m, User: "hi", Spec: spec(constraint.Regex, "a"), ConstraintOptions: validate})
			if tt.name != "another kind" && (rec.Outcome == nil || *rec.OutputValidation.EnforcedBy != constraint.ByValidation) {
				t.Errorf("with enforce: validate: %v", rec.Error)
			}
		})
	}
}

// A refusal names the construct, its path and its place in the schema file.
func TestConstructRefusal(t *testing.T) {
	native(t)
	src := "{\"type\": \"object\", \"properties\": {\n  \"notes\": {\"type\": \"array\", \"uniqueItems\": true}\n}}"
	rec := run(t, context.Background(), &turn.Request{Model: scripted(t, "replies: [{text: a}]"), User: "hi", Spec: spec(constraint.JSON, src)})
	e := rec.Error
	if e == nil || e.Construct != "uniqueItems" || e.Path != "/properties/notes" || e.Line != 2 || e.File != "agents/a/system/.schema-a.json" {
		t.Errorf("got %+v", e)
	}
	if !strings.HasPrefix(e.Error(), "agents/a/system/.schema-a.json:2:") || !strings.Contains(e.Hint, "enforce: validate") {
		t.Errorf("it reads: %v", e)
	}
}

// An engine that reports less than was promised is not believed.
func TestEnginePromisesMoreThanItHolds(t *testing.T) {
	m := &wrapped{Model: scripted(t, "mask: false\nreplies: [{text: '{\"rating\":3}'}, {text: '{\"rating\":3}'}]")}
	m.generate = func(ctx context.Context, req *model.Request) (*model.Response, error) {
		resp, err := m.Model.Generate(ctx, req)
		resp.EnforcedBy = ""
		return resp, err
	}
	req := turn.Request{Model: m, User: "hi", Spec: spec(constraint.JSON, ratingSchema)}
	if rec := run(t, context.Background(), &req); rec.Error == nil || rec.Error.Code != record.ModelError || record.ExitCode(rec) != 1 {
		t.Errorf("enforce: mask: got %+v", rec.Outcome)
	}
	req.ConstraintOptions = validate
	rec := run(t, context.Background(), &req)
	if record.ExitCode(rec) != 0 || *rec.OutputValidation.EnforcedBy != constraint.ByValidation {
		t.Errorf("enforce: validate: got %+v, %v", rec.OutputValidation, rec.Error)
	}
}

// wrapped changes one thing about a model.
type wrapped struct {
	model.Model
	engine   *constraint.Engine
	generate func(context.Context, *model.Request) (*model.Response, error)
	render   func(context.Context, *model.Request) (model.Rendered, error)
}

func (w *wrapped) Capabilities() model.Capabilities {
	c := w.Model.Capabilities()
	if w.engine != nil {
		c.Engine = *w.engine
	}
	return c
}

func (w *wrapped) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	if w.generate != nil {
		return w.generate(ctx, req)
	}
	return w.Model.Generate(ctx, req)
}

func (w *wrapped) Render(ctx context.Context, req *model.Request) (model.Rendered, error) {
	if w.render != nil {
		return w.render(ctx, req)
	}
	return w.Model.Render(ctx, req)
}
