package agentgraph_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/record/recordtest"
)

// answerCase is a response as a client in another language gets it, and what
// the client is to find: the turn's id, the answer, and the answer where it is
// JSON that was validated.
type answerCase struct {
	Name     string  `json:"name"`
	Response string  `json:"response"`
	Task     *string `json:"task"`
	Text     *string `json:"text"`
	Value    *string `json:"value"`
}

func ptr[T any](v T) *T { return &v }

// answerRecords are records of turns that ended in every way, with every
// member that a record can have.
func answerRecords(t *testing.T) map[string]*record.Record {
	t.Helper()
	sum := strings.Repeat("0", 64)
	by, at := constraint.ByMask, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	make := func(name string, o *record.Outcome, v record.ValidationStatus) *record.Record {
		r := &record.Record{
			TurnID: ptr(name), RunID: ptr("r"), SessionID: ptr("s"), TraceID: ptr("t"), Attempt: 1, Outcome: o,
			OutputValidation: record.Validation{Status: v},
			Accounting:       &record.Accounting{ModelCalls: "1", ToolCalls: "0"},
			Request:          &record.Request{Model: model.Identity{Engine: "e", Name: "n"}, Determinism: "fast"},
			Timing:           &record.Timing{Started: at, Finished: at},
		}
		if o.Status != record.Completed {
			r.Error = &record.Error{Code: record.Internal, Message: "m"}
		}
		if v != record.NotRequested {
			r.OutputValidation.EnforcedBy = &by
		}
		return r
	}
	answer := func(name, text string, v record.ValidationStatus) *record.Record {
		return make(name, &record.Outcome{Status: record.Completed, Output: &text, FinishReason: ptr(model.Stop)}, v)
	}
	ended := func(name string, o record.Outcome) *record.Record {
		o.Output = ptr(`{"a":1}`)
		return make(name, &o, record.Invalid)
	}
	diagnostics := []constraint.Diagnostic{{Code: constraint.SchemaViolation, Instance: "/a", Schema: "/type"}}
	full := answer("full", "{\"name\":\"é \U0001F600\",\"n\":9007199254740993,\"list\":[true,null,-0.5e-3]}", record.Valid)
	full.Agent, full.SettingsSHA256 = ptr("a"), &sum
	full.Outcome.Usage, full.Outcome.Reasoning = &model.Usage{InputTokens: ptr(int64(7))}, "r"
	full.Repair = &record.Repair{Status: record.RepairSucceeded, Attempts: "1", Validations: "2", Rejected: ptr("no"), RejectedDiagnostics: diagnostics, Feedback: ptr("f")}
	full.Inputs = []record.FileRef{{Path: "i", SHA256: sum, Bytes: 1}}
	full.Outputs = full.Inputs
	full.ToolCalls = []record.ToolCall{{ID: "1", Name: "add", Arguments: json.RawMessage(`{"a":[1,"x",null]}`), Result: ptr("2"), ResultBytes: ptr(int64(1)), ResultSHA256: &sum, Error: "e", ExitStatus: ptr(0)}}
	full.ToolRounds = []record.ToolRound{{Text: "t", Reasoning: "r", Calls: 1}}
	full.Lineage = &record.Lineage{Roots: full.Inputs, Hops: 1}
	full.Request.Messages = []model.Message{
		{Role: model.User, Content: "u"},
		{Role: model.Assistant, Content: "c", Reasoning: "r", ToolCalls: []model.ToolCall{{ID: "1", Name: "add", Arguments: json.RawMessage(`{}`)}}},
		{Role: model.ToolRole, Content: "2", ToolCallID: "1", Name: "add"},
	}
	full.Request.Tools = []model.Tool{{Name: "add", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}}
	full.Request.DisabledTools = []record.DisabledTool{{Name: "x", Reason: "r"}}
	full.Request.Constraint = &record.Constraint{Kind: constraint.JSON, File: "f", Source: "s", SHA256: sum, Enforce: constraint.EnforceMask, Formats: constraint.FormatsMask}
	full.Request.PassedOver = []record.PassedOver{{Model: model.Identity{Engine: "e", Name: "n"}, Code: record.ModelUnavailable, Message: "m"}}
	full.Sample, full.Request.Thinking = &record.Sample{Index: 1, Of: 2}, ptr(false)
	full.Outcome.Logprobs = []model.TokenLogprob{{Token: "t", Bytes: []byte{0xff}, Logprob: -0.5, Top: []model.TokenLogprob{{Token: "t", Logprob: -0.5}}}}
	full.Request.Clock, full.Request.Prompt, full.Request.TemplateSHA256 = &at, ptr("p"), &sum
	full.Request.Sampling = model.Sampling{Temperature: 1, TopK: 1, TopP: 0.5, MinP: 0.1, Seed: ptr(uint64(1)), MaxTokens: 1, Logprobs: 1}
	full.Request.Model = model.Identity{Engine: "e", Name: "n", Alias: "a", WeightsSHA256: sum, Server: "s"}
	full.Timing.MaskMS, full.Timing.ForcedTokens = ptr(0.5), ptr(3)

	invalid := ended("invalid", record.Outcome{Status: record.Failed, Code: record.OutputValidationFailed, Delivery: model.ResponseReceived})
	invalid.OutputValidation.Diagnostics = diagnostics
	all := map[string]*record.Record{
		"full": full, "invalid": invalid,
		"object":    answer("object", `{"a":1}`, record.Valid),
		"null":      answer("null", `null`, record.Valid),
		"number":    answer("number", `-12.50`, record.Valid),
		"regex":     answer("regex", "0042", record.Valid),
		"empty":     answer("empty", "", record.Valid),
		"free":      answer("free", `{"a":1}`, record.NotRequested),
		"cut off":   ended("cut off", record.Outcome{Status: record.LimitExceeded, Limit: "output_tokens"}),
		"cancelled": ended("cancelled", record.Outcome{Status: record.Cancelled}),
		"timed out": ended("timed out", record.Outcome{Status: record.TimedOut}),
		"denied":    ended("denied", record.Outcome{Status: record.PolicyDenied, Rule: "ask"}),
		"refused": {TurnID: ptr("refused"), Error: &record.Error{Code: record.SchemaRefused, Message: "m", Hint: "h", File: "f", Line: 1, Column: 2,
			Construct: "not", Path: "/a", Retry: true}},
	}
	for name, r := range all {
		if t.Failed() {
			break
		}
		if err := record.Check(recordtest.Check(t, r)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return all
}

// answerCases puts each record where the protocols have it, and adds what is
// no record at all.
func answerCases(t *testing.T) []answerCase {
	t.Helper()
	var cases []answerCase
	for name, r := range answerRecords(t) {
		b, err := record.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		c := answerCase{Name: name, Task: r.TurnID}
		if text, ok := r.Answer(); ok {
			c.Text = &text
			if r.OutputValidation.Status == record.Valid && json.Valid([]byte(text)) {
				c.Value = &text
			}
		}
		for _, wrap := range []string{
			`%`, `{"structuredContent": {"output": 1, "task": %}, "content": []}`,
			`{"stopReason": "end_turn", "_meta": {"agentgraph/v1": {"task": %}}}`,
		} {
			c.Response = strings.Replace(wrap, "%", string(b), 1)
			cases = append(cases, c)
		}
	}
	for _, foreign := range []string{
		`null`, `1`, `"x"`, `[]`, `{}`, `[{"structuredContent": 1}]`, `{"structuredContent": null}`, `{"structuredContent": {"task": []}}`,
		`{"_meta": {"agentgraph/v1": true}}`, `{"_meta": {"agentgraph/v1": {"task": {"schema_version": "agentgraph.turn/1"}}}}`,
		`{"schema_version": "agentgraph.turn/2", "outcome": {"status": "completed", "output": "1"}, "output_validation": {"status": "valid"}}`,
		`{"schema_version": "agentgraph.turn/1", "outcome": {"status": "completed", "output": 1}, "output_validation": {"status": "valid"}}`,
		`{"schema_version": "agentgraph.turn/1", "outcome": {"status": "completed"}, "output_validation": {"status": "valid"}}`,
		`{"schema_version": "agentgraph.turn/1", "outcome": {"status": 1, "output": "1"}, "output_validation": {"status": "valid"}}`,
		`{"schema_version": "agentgraph.turn/1", "outcome": {"status": "completed", "output": "1"}, "output_validation": "valid"}`,
		`{"schema_version": "agentgraph.turn/1", "output_validation": {"status": "valid"}}`,
		`{"schema_version": ["agentgraph.turn/1"], "outcome": null, "output_validation": {"status": "valid"}}`,
	} {
		cases = append(cases, answerCase{Name: foreign, Response: foreign})
	}
	return cases
}
