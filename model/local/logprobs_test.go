//go:build cgo && !nonative

package local

import (
	"math"
	"strings"
	"testing"

	"agentgraph/constraint"
	"agentgraph/model"
)

// TestLogprobs: one entry for each token of the answer, forced ones too, that
// spell it and are what the model itself thinks.
func TestLogprobs(t *testing.T) {
	m := sharedModel(t, Config{Context: 512})
	object := compile(t, constraint.JSON, `{"type":"object","properties":{"kind":{"enum":["bug","feature"]},"summary":{"type":"string","maxLength":30}},"required":["kind","summary"],"additionalProperties":false}`)
	forcedEnd := compile(t, constraint.Regex, `(yes|no), that is all there is to say about it`)
	forcedStart := compile(t, constraint.Regex, `Dear reader, [a-z ]{3,9}\.`)
	allForced := compile(t, constraint.Regex, `nothing but this`)
	for _, tt := range []struct {
		name string
		c    *constraint.Constraint
		max  int
		// forced tokens, at least
		forced int
	}{
		{"free", nil, 20, 0},
		{"one token", nil, 1, 0},
		{"object", object, 100, 5},
		{"forced end", forcedEnd, 100, 5},
		{"forced start", forcedStart, 100, 2},
		{"all forced", allForced, 100, 2},
		{"cut off", object, 7, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := &model.Request{
				Messages: ask("You triage reports.", "The lamp flickers."), Constraint: tt.c,
				Sampling: model.Sampling{MaxTokens: tt.max},
			}
			plain := generate(t, m, req)
			if plain.Logprobs != nil {
				t.Error("there are log probabilities that nobody asked for")
			}
			req.Sampling.Logprobs = 3
			r := generate(t, m, req)
			if r.Text != plain.Text || r.Finish != plain.Finish {
				t.Errorf("%q (%s) with log probabilities, %q (%s) without", r.Text, r.Finish, plain.Text, plain.Finish)
			}
			if n := r.Stats.ForcedTokens; n < tt.forced {
				t.Errorf("%d tokens were forced, want %d or more", n, tt.forced)
			}
			var text strings.Builder
			for i, p := range r.Logprobs {
				text.WriteString(p.Token)
				if len(p.Top) != 3 {
					t.Fatalf("token %d has %d likeliest", i, len(p.Top))
				}
				sum := 0.0
				for k, top := range p.Top {
					sum += math.Exp(top.Logprob)
					if top.Top != nil || k > 0 && top.Logprob > p.Top[k-1].Logprob {
						t.Errorf("token %d: %+v is out of order", i, p.Top)
					}
					if top.Token == p.Token && math.Abs(top.Logprob-p.Logprob) > 1e-5 {
						t.Errorf("token %d: %q has %f and %f", i, p.Token, p.Logprob, top.Logprob)
					}
				}
				if sum > 1+1e-5 || p.Logprob > p.Top[0].Logprob+1e-6 || math.IsInf(p.Logprob, 0) || math.IsNaN(p.Logprob) {
					t.Errorf("token %d: %+v are no probabilities", i, p)
				}
				if tt.c == nil && p.Token != p.Top[0].Token {
					t.Errorf("token %d: greedy chose %q over %q", i, p.Token, p.Top[0].Token)
				}
			}
			if text.String() != r.Text {
				t.Errorf("the tokens spell %q, the answer is %q", text.String(), r.Text)
			}
		})
	}
}

// TestLogprobsOfForcedTokens compares them with those of the same text chosen
// freely: they are the model's own, whatever the mask.
func TestLogprobsOfForcedTokens(t *testing.T) {
	m := sharedModel(t, Config{Context: 512})
	req := &model.Request{Messages: ask("Be brief.", "Name the capital of France."), Sampling: model.Sampling{MaxTokens: 6, Logprobs: 1}, Solo: true}
	free := generate(t, m, req)
	quoted := strings.NewReplacer(".", `\.`, "(", `\(`, ")", `\)`, "*", `\*`, "?", `\?`).Replace(free.Text)
	req.Constraint = compile(t, constraint.Regex, quoted)
	forced := generate(t, m, req)
	if forced.Text != free.Text || forced.Stats.ForcedTokens == 0 {
		t.Fatalf("%q forced (%d tokens), %q free", forced.Text, forced.Stats.ForcedTokens, free.Text)
	}
	for i := range min(len(free.Logprobs), len(forced.Logprobs)) {
		a, b := free.Logprobs[i], forced.Logprobs[i]
		if a.Token != b.Token {
			t.Skipf("the text is forced in other tokens than the model chose (%q, %q)", a.Token, b.Token)
		}
		if math.Abs(a.Logprob-b.Logprob) > 0.05 {
			t.Errorf("%q: %f free, %f forced", a.Token, a.Logprob, b.Logprob)
		}
	}
}
