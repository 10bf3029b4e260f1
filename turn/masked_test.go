package turn_test

import (
	"context"
	"strings"
	"testing"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/turn"
)

// What went wrong for others, on a model that masks.
func TestMasked(t *testing.T) {
	native(t)
	const kind = `{"type":"object","properties":{"kind":{"enum":["a","b"]}},"required":["kind"],"additionalProperties":false}`
	tests := []struct {
		name   string
		script string
		spec   *constraint.Spec
		opt    constraint.Options
		max    int

		status record.Status
		code   record.Code
		output string
		by     constraint.EnforcedBy
	}{
		{"whitespace forever", "default: {spaces_forever: true}", spec(constraint.JSON, kind), constraint.Options{}, 0,
			record.Completed, "", `{"kind":"a"}`, constraint.ByMask},
		{"ends first", "default: {end_first: true}", spec(constraint.JSON, kind), constraint.Options{}, 0,
			record.Completed, "", `{"kind":"a"}`, constraint.ByMask},
		{"loops inside an unbounded string", "default: {prefer: x}", spec(constraint.JSON, `{"type":"string"}`), constraint.Options{}, 10,
			record.LimitExceeded, record.Truncated, `"` + strings.Repeat("x", 39), constraint.ByMask},
		{"free text under a mask", "default: {text: 'I think it is b.'}", spec(constraint.JSON, kind), constraint.Options{}, 0,
			record.Completed, "", `{"kind":"a"}`, constraint.ByMask},
		{"spaced JSON under a compact mask", `default: {text: '{ "kind" : "b" }'}`, spec(constraint.JSON, kind), constraint.Options{}, 0,
			record.Completed, "", `{"kind":"b"}`, constraint.ByMask},
		{"regex", "default: {text: v12 and more}", spec(constraint.Regex, `v\d+`), constraint.Options{}, 0,
			record.Completed, "", "v12", constraint.ByMask},
		{"lark", "default: {text: 'no'}", spec(constraint.Lark, "start: \"yes\" | \"no\"\n"), constraint.Options{}, 0,
			record.Completed, "", "no", constraint.ByMask},
		{"ends at the limit without being cut off", `default: {text: '{"kind":"b"}'}`, spec(constraint.JSON, kind), constraint.Options{}, 3,
			record.Completed, "", `{"kind":"b"}`, constraint.ByMask},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := &turn.Request{Agent: "a", Model: scripted(t, tt.script), User: "hi", Spec: tt.spec,
				ConstraintOptions: tt.opt, Sampling: model.Sampling{MaxTokens: tt.max}}
			rec := run(t, context.Background(), req)
			if rec.Outcome == nil {
				t.Fatal(rec.Error)
			}
			if rec.Outcome.Status != tt.status || deref(rec.Outcome.Output) != tt.output {
				t.Errorf("%s %q, want %s %q (%v)", rec.Outcome.Status, deref(rec.Outcome.Output), tt.status, tt.output, rec.Error)
			}
			if tt.code != "" && rec.Error.Code != tt.code {
				t.Errorf("code %s", rec.Error.Code)
			}
			if by := rec.OutputValidation.EnforcedBy; by == nil || *by != tt.by {
				t.Errorf("enforced by %v, want %s", by, tt.by)
			}
		})
	}
}

// A model that prefers one digit for ever ends after at most 17 of them.
func TestNumberThatNeverEnds(t *testing.T) {
	native(t)
	src := `{"type":"object","properties":{"unit_price":{"type":"number","minimum":0}},"required":["unit_price"],"additionalProperties":false}`
	for _, digit := range []string{"1", "1.", "9"} {
		rec := run(t, context.Background(), &turn.Request{Model: scripted(t, "default: {prefer: '"+digit+"'}"), User: "hi", Spec: spec(constraint.JSON, src)})
		text, ok := rec.Answer()
		if !ok {
			t.Fatalf("prefer %s: %v", digit, rec.Error)
		}
		digits := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, text)
		if len(digits) > 17 || len(digits) == 0 {
			t.Errorf("%d digits: %s", len(digits), text)
		}
	}
}

// What the mask cannot hold is decided by validation, where that is allowed.
func TestMaskAndValidation(t *testing.T) {
	native(t)
	src := `{"type":"array","items":{"type":"integer"},"uniqueItems":true}`
	for _, tt := range []struct {
		text string
		want int
	}{{"[1,2]", 0}, {"[1,1]", 1}} {
		rec := run(t, context.Background(), &turn.Request{Model: scripted(t, "default: {text: '"+tt.text+"'}"), User: "hi",
			Spec: spec(constraint.JSON, src), ConstraintOptions: validate})
		if record.ExitCode(rec) != tt.want || rec.Outcome == nil || *rec.OutputValidation.EnforcedBy != constraint.ByMaskValidation {
			t.Errorf("%s: %+v %v", tt.text, rec.OutputValidation, rec.Error)
		}
	}
}
