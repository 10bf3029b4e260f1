package record_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/record/recordtest"
)

func ptr[T any](v T) *T { return &v }

// completed is a record of an admitted turn, as small as it may be.
func completed() *record.Record {
	t := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &record.Record{
		RunID: ptr("r"), SessionID: ptr("s"), TraceID: ptr("t"), Attempt: 1,
		Outcome:    &record.Outcome{Status: record.Completed, Output: ptr("yes"), FinishReason: ptr(model.Stop)},
		Accounting: &record.Accounting{ModelCalls: "1", ToolCalls: "0"},
		Request:    &record.Request{Model: model.Identity{Engine: "e", Name: "n"}, Determinism: "fast"},
		Timing:     &record.Timing{Started: t, Finished: t},
	}
}

func refused() *record.Record {
	return &record.Record{Error: &record.Error{Code: record.SchemaRefused, Message: "no"}}
}

func failed(o record.Outcome, code record.Code) *record.Record {
	r := completed()
	r.Outcome = &o
	r.Error = &record.Error{Code: code, Message: "m"}
	return r
}

func TestSchemaIsPublished(t *testing.T) {
	docs, err := os.ReadFile("../docs/turn.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(docs, record.JSONSchema()) {
		t.Error("docs/turn.schema.json is not record/turn.schema.json; copy it")
	}
}

func TestCheckAccepts(t *testing.T) {
	by := constraint.ByMask
	diag := []constraint.Diagnostic{{Code: constraint.SchemaViolation, Instance: "/a", Schema: "/type"}}
	tests := map[string]*record.Record{
		"completed":     completed(),
		"refused":       refused(),
		"cancelled":     failed(record.Outcome{Status: record.Cancelled}, record.CodeCancelled),
		"timed out":     failed(record.Outcome{Status: record.TimedOut}, record.CodeTimedOut),
		"policy denied": failed(record.Outcome{Status: record.PolicyDenied, Rule: "net"}, record.CodePolicyDenied),
		"limit":         failed(record.Outcome{Status: record.LimitExceeded, Limit: "output_tokens"}, record.Truncated),
		"failed": failed(record.Outcome{Status: record.Failed, Code: record.ModelError,
			Delivery: model.MayHaveBeenSent, Usage: &model.Usage{}}, record.ModelError),
	}
	full := completed()
	full.TurnID, full.Agent, full.SettingsSHA256 = ptr("t"), ptr("a"), ptr(strings.Repeat("0", 64))
	full.OutputValidation = record.Validation{Status: record.Valid, EnforcedBy: &by}
	full.Repair = &record.Repair{Status: record.RepairSucceeded, Attempts: "1", Validations: "2",
		Rejected: ptr("no"), RejectedDiagnostics: diag, Feedback: ptr("f")}
	full.Outputs = []record.FileRef{{Path: "o", SHA256: strings.Repeat("0", 64)}}
	full.ToolCalls = []record.ToolCall{{ID: "1", Name: "add", Arguments: json.RawMessage(`{"a":1}`), Result: ptr("2"), ExitStatus: ptr(0)}}
	full.Lineage = &record.Lineage{}
	full.Request.Messages = []model.Message{{Role: model.Assistant, Content: "c", Reasoning: "r",
		ToolCalls: []model.ToolCall{{ID: "1", Name: "add", Arguments: json.RawMessage(`{}`)}}},
		{Role: model.ToolRole, Content: "2", ToolCallID: "1", Name: "add"}}
	full.Request.Tools = []model.Tool{{Name: "add", Parameters: json.RawMessage(`{"type":"object"}`)}}
	full.Request.Constraint = &record.Constraint{Kind: constraint.Lark, Source: "s", SHA256: strings.Repeat("0", 64),
		Enforce: constraint.EnforceMask, Formats: constraint.FormatsMask}
	full.Request.Clock, full.Request.Prompt = ptr(time.Now()), ptr("p")
	full.Request.Sampling = model.Sampling{Temperature: 1, TopK: 1, TopP: 0.5, MinP: 0.1, Seed: ptr(uint64(1)), MaxTokens: 1, Logprobs: 1}
	full.Request.Thinking = ptr(true)
	full.Outcome.Logprobs = []model.TokenLogprob{{Token: "\uFFFD", Bytes: []byte{0xe2, 0x82}, Logprob: -0.5,
		Top: []model.TokenLogprob{{Token: "a", Logprob: -0.5}}}}
	tests["everything"] = full
	for name, r := range tests {
		t.Run(name, func(t *testing.T) { recordtest.Check(t, r) })
	}
}

// Each change to a valid record breaks one promise of it.
func TestCheckRefuses(t *testing.T) {
	tests := map[string]struct {
		r      *record.Record
		change func(*record.Record)
	}{
		"completed with an error":        {completed(), func(r *record.Record) { r.Error = refused().Error }},
		"completed without text":         {completed(), func(r *record.Record) { r.Outcome.Output = nil }},
		"completed and invalid":          {completed(), func(r *record.Record) { r.OutputValidation.Status = record.Invalid }},
		"completed without names":        {completed(), func(r *record.Record) { r.RunID = nil }},
		"completed without accounting":   {completed(), func(r *record.Record) { r.Accounting = nil }},
		"completed with a limit":         {completed(), func(r *record.Record) { r.Outcome.Limit = "x" }},
		"a count that is no decimal":     {completed(), func(r *record.Record) { r.Accounting.ModelCalls = "1e3" }},
		"a count with a leading zero":    {completed(), func(r *record.Record) { r.Accounting.ModelCalls = "01" }},
		"an empty count":                 {completed(), func(r *record.Record) { r.Accounting.ToolCalls = "" }},
		"attempt 0":                      {completed(), func(r *record.Record) { r.Attempt = 0 }},
		"an unknown status":              {completed(), func(r *record.Record) { r.Outcome.Status = "done" }},
		"another version":                {completed(), func(r *record.Record) { r.SchemaVersion = "agentgraph.turn/0" }},
		"an unknown role":                {completed(), func(r *record.Record) { r.Request.Messages = []model.Message{{Role: "bot"}} }},
		"failed without a code":          {failed(record.Outcome{Status: record.Failed, Delivery: model.NotSent}, record.ModelError), nil},
		"failed without a delivery":      {failed(record.Outcome{Status: record.Failed, Code: record.ModelError}, record.ModelError), nil},
		"an unknown code":                {failed(record.Outcome{Status: record.TimedOut}, "late"), nil},
		"a limit without its name":       {failed(record.Outcome{Status: record.LimitExceeded}, record.Truncated), nil},
		"a denial without its rule":      {failed(record.Outcome{Status: record.PolicyDenied}, record.CodePolicyDenied), nil},
		"not completed without an error": {failed(record.Outcome{Status: record.Cancelled}, record.CodeCancelled), func(r *record.Record) { r.Error = nil }},
		"refused without an error":       {refused(), func(r *record.Record) { r.Error = nil }},
		"refused with a name":            {refused(), func(r *record.Record) { r.RunID = ptr("r") }},
		"refused with accounting":        {refused(), func(r *record.Record) { r.Accounting = completed().Accounting }},
		"refused and valid":              {refused(), func(r *record.Record) { r.OutputValidation.Status = record.Valid }},
		"a blocked repair without why": {completed(), func(r *record.Record) {
			r.Repair = &record.Repair{Status: record.RepairBlocked, Attempts: "0", Validations: "1"}
		}},
		"valid with diagnostics": {completed(), func(r *record.Record) {
			r.OutputValidation = record.Validation{Status: record.Valid, Diagnostics: []constraint.Diagnostic{{Code: constraint.JSONBytes}}}
		}},
		"nine diagnostics": {failed(record.Outcome{Status: record.Cancelled}, record.CodeCancelled), func(r *record.Record) {
			r.OutputValidation.Status = record.Invalid
			for range 9 {
				r.OutputValidation.Diagnostics = append(r.OutputValidation.Diagnostics, constraint.Diagnostic{Code: constraint.JSONBytes})
			}
		}},
		"a hash that is none": {completed(), func(r *record.Record) { r.Inputs = []record.FileRef{{Path: "p", SHA256: "abc"}} }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.change != nil {
				tt.change(tt.r)
			}
			b, err := record.Marshal(tt.r)
			if err != nil {
				t.Fatal(err)
			}
			if err := record.Check(b); err == nil {
				t.Errorf("accepted: %s", b)
			}
		})
	}
	b, _ := record.Marshal(completed())
	for name, text := range map[string]string{
		"an unknown key": strings.Replace(string(b), `"attempt":1`, `"attempt":1,"extra":1`, 1),
		"a missing key":  strings.Replace(string(b), `"attempt":1,`, ``, 1),
		"a null list":    strings.Replace(string(b), `"inputs":[]`, `"inputs":null`, 1),
		"cut short":      string(b[:len(b)-1]),
		"two":            string(b) + string(b),
		"nothing":        "",
	} {
		if err := record.Check([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestMarshal(t *testing.T) {
	r := completed()
	r.Outcome.Output = ptr("<&>\u2028\u2029\"\\\x00é")
	b := recordtest.Check(t, r)
	if want := `"output":"<&>\u2028\u2029\"\\\u0000é"`; !bytes.Contains(b, []byte(want)) {
		t.Errorf("no %s in %s", want, b)
	}
	if bytes.ContainsAny(b, "\n\u2028\u2029") {
		t.Error("not one line")
	}
	indented, err := record.MarshalIndent(r)
	if err != nil || record.Check(indented) != nil {
		t.Errorf("indented: %v", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, indented); err != nil || !bytes.Equal(compact.Bytes(), b) {
		t.Errorf("the indented form differs: %v", err)
	}
	if r.Inputs != nil || r.SchemaVersion != "" {
		t.Error("encoding changed the record")
	}
}

func TestExitCodeAndAnswer(t *testing.T) {
	tests := []struct {
		name string
		r    *record.Record
		code int
		ok   bool
	}{
		{"nil", nil, 2, false},
		{"refused", refused(), 2, false},
		{"completed", completed(), 0, true},
		{"cancelled", failed(record.Outcome{Status: record.Cancelled, Output: ptr("x")}, record.CodeCancelled), 130, false},
		{"timed out", failed(record.Outcome{Status: record.TimedOut, Output: ptr("x")}, record.CodeTimedOut), 1, false},
		{"limit", failed(record.Outcome{Status: record.LimitExceeded, Output: ptr("x")}, record.Truncated), 1, false},
		{"failed", failed(record.Outcome{Status: record.Failed, Output: ptr("x")}, record.Internal), 1, false},
		{"denied", failed(record.Outcome{Status: record.PolicyDenied}, record.CodePolicyDenied), 1, false},
	}
	for _, tt := range tests {
		if got := record.ExitCode(tt.r); got != tt.code {
			t.Errorf("%s: exit code %d, want %d", tt.name, got, tt.code)
		}
		if _, ok := tt.r.Answer(); ok != tt.ok {
			t.Errorf("%s: answer %v", tt.name, ok)
		}
	}
	invalid := completed()
	invalid.OutputValidation.Status = record.Invalid
	if _, ok := invalid.Answer(); ok {
		t.Error("an invalid answer is given out")
	}
}

// An error reads as file:line:col: message; hint.
func TestErrorReads(t *testing.T) {
	e := &record.Error{Code: record.SchemaRefused, File: "a/.schema-x.json", Line: 3, Column: 4, Message: "bad", Hint: "mend it"}
	if got, want := e.Error(), "a/.schema-x.json:3:4: bad; mend it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e = &record.Error{Message: "bad"}
	if got := e.Error(); got != "bad" {
		t.Errorf("got %q", got)
	}
}
