//go:build cgo && !nonative

package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// choices records what was chosen for each prompt and how near it was.
type choices struct {
	mu   sync.Mutex
	seen map[string][]choice
}

type choice struct {
	id     int32
	margin float32
}

func (c *choices) add(s *sequence, id int32, margin float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string][]choice{}
	}
	key := fmt.Sprint(s.prompt, s.mask != nil)
	c.seen[key] = append(c.seen[key], choice{id, margin})
}

// take returns what was recorded and starts anew.
func (c *choices) take() map[string][]choice {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// nearTie is the margin, in logits, below which the order of additions may
// decide between two tokens: logits here run from about -10 to 30.
const nearTie = 0.5

// sameOrTied compares two runs of the same requests: where they part, the two
// tokens were almost equally likely.
func sameOrTied(t *testing.T, what string, a, b map[string][]choice) {
	t.Helper()
	if len(a) == 0 || len(a) != len(b) {
		t.Fatalf("%s: %d and %d answers recorded", what, len(a), len(b))
	}
	parted := 0
	for key, alone := range a {
		other := b[key]
		for i := range min(len(alone), len(other)) {
			if alone[i].id == other[i].id {
				continue
			}
			parted++
			if m := min(alone[i].margin, other[i].margin); m > nearTie {
				t.Errorf("%s: token %d is %d in one and %d in the other, and neither was near (%.2f logits)", what, i, alone[i].id, other[i].id, m)
			}
			break
		}
	}
	t.Logf("%s: %d of %d answers part, each at a near tie", what, parted, len(a))
}

func requests(t *testing.T) []*model.Request {
	rating := compile(t, constraint.JSON, `{"type":"object","properties":{"rating":{"type":"integer","minimum":1,"maximum":5},"reasoning":{"type":"string","maxLength":60}},"required":["rating","reasoning"],"additionalProperties":false}`)
	kind := compile(t, constraint.Regex, `(bug|feature|question): [a-z ]{5,30}\.`)
	verdict := compile(t, constraint.Lark, "start: \"verdict: \" (\"good\" | \"bad\") \", \" WORDS\nWORDS: /[a-z]{2,9}( [a-z]{2,9}){2,5}/\n")
	system := "You judge what people write about things they bought. Answer in the form you are asked for and say nothing else."
	var out []*model.Request
	for i, c := range []*constraint.Constraint{rating, kind, verdict, nil, rating, kind, verdict, nil} {
		out = append(out, &model.Request{
			Messages:   ask(system, fmt.Sprintf("Report %d: the lamp flickers when the %s is near.", i, []string{"cat", "radio", "door", "phone"}[i%4])),
			Constraint: c, Sampling: model.Sampling{MaxTokens: 40},
		})
	}
	return out
}

// TestTogetherAsAlone: eight goroutines at once get what they get alone.
func TestTogetherAsAlone(t *testing.T) {
	cfg := Config{Path: testModel(t), Context: 512, Parallel: 8}
	m, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var rec choices
	m.engine.onChoice = rec.add
	reqs := requests(t)
	for _, r := range reqs {
		r.Solo = true
		generate(t, m, r)
	}
	alone := rec.take()
	for _, r := range reqs {
		r.Solo = false
		generate(t, m, r)
	}
	sameOrTied(t, "prefix reuse", alone, rec.take())
	for round := range 2 {
		var wg sync.WaitGroup
		for _, r := range reqs {
			wg.Go(func() {
				resp, err := m.Generate(t.Context(), r)
				if err != nil {
					t.Error(err)
					return
				}
				if c := r.Constraint; c != nil && resp.Finish == model.Stop && !c.Validate(t.Context(), resp.Text).Valid {
					t.Errorf("%q is not valid", resp.Text)
				}
			})
		}
		wg.Wait()
		sameOrTied(t, fmt.Sprintf("eight at once, round %d", round), alone, rec.take())
	}
}

// TestForcedTokensSameText: forced tokens in one batch with the next token
// give what one token a step gives.
func TestForcedTokensSameText(t *testing.T) {
	together := sharedModel(t, Config{Context: 512})
	single := sharedModel(t, Config{Context: 512, Without: Without{ForcedBatch: true}})
	forced := 0
	for i, r := range requests(t) {
		r.Solo = true
		a, b := generate(t, together, r), generate(t, single, r)
		if a.Text != b.Text {
			t.Errorf("request %d: %q with forced tokens together, %q one by one", i, a.Text, b.Text)
		}
		if a.Stats.ForcedTokens != b.Stats.ForcedTokens {
			t.Errorf("request %d: %d and %d tokens forced", i, a.Stats.ForcedTokens, b.Stats.ForcedTokens)
		}
		forced += a.Stats.ForcedTokens
	}
	if forced == 0 {
		t.Error("no token was forced")
	}
}

// TestManyCallersManyEnds runs more calls than slots, some cancelled at
// random: every call ends, and the engine is sound afterwards.
func TestManyCallersManyEnds(t *testing.T) {
	m := sharedModel(t, Config{Context: 512, Parallel: 4})
	want := generate(t, m, &model.Request{Messages: ask("Be brief.", "Count to five."), Sampling: model.Sampling{MaxTokens: 12}, Solo: true})
	reqs := requests(t)
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			ctx := t.Context()
			if i%3 == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(60))*time.Millisecond)
				defer cancel()
			}
			r := *reqs[i%len(reqs)]
			r.Sampling.MaxTokens = 12
			r.Solo = i%7 == 0
			if _, err := m.Generate(ctx, &r); err != nil {
				var e *model.Error
				if !errors.As(err, &e) || e.Kind != model.TimedOut {
					t.Errorf("error is %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := generate(t, m, &model.Request{Messages: ask("Be brief.", "Count to five."), Sampling: model.Sampling{MaxTokens: 12}, Solo: true})
	if got.Text != want.Text {
		t.Errorf("before %q, after %q", want.Text, got.Text)
	}
}
