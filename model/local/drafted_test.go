//go:build cgo && !nonative

package local

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"agentgraph/constraint"
	"agentgraph/internal/bench"
	"agentgraph/model"
)

// copying are requests whose answers repeat their inputs.
func copying(t *testing.T) []*model.Request {
	order := compile(t, constraint.JSON, `{"type":"object","properties":{"item":{"type":"string","maxLength":40},"count":{"type":"integer"},"address":{"type":"string","maxLength":60},"items":{"type":"array","items":{"type":"string","maxLength":20},"maxItems":6}},"required":["item","count","address","items"],"additionalProperties":false}`)
	words := compile(t, constraint.Lark, "start: WORD (\" \" WORD){0,30}\nWORD: /[A-Za-z]{1,12}/\n")
	text := "Twelve copper kettles with wooden handles go to Harbour Street 14, Lower Easthaven, and twelve copper lids go to Harbour Street 15, Lower Easthaven."
	seed := uint64(11)
	var out []*model.Request
	temperatures := []float64{0, 0.7}
	if !sameAnyRows() {
		temperatures = temperatures[:1]
	}
	for _, c := range []*constraint.Constraint{order, words, nil} {
		for _, temperature := range temperatures {
			out = append(out, &model.Request{
				Messages:   ask("Repeat what you are told, word for word.", text),
				Constraint: c, Sampling: model.Sampling{MaxTokens: 60, Temperature: temperature, Seed: &seed},
			})
		}
	}
	return out
}

// drafting is a model that drafts whatever that costs.
func drafting(t *testing.T, cfg Config) *local {
	t.Helper()
	cfg.Path = testModel(t)
	m, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	m.engine.drafter.always = true
	return m
}

// sameAnyRows reports that a token's logits are the same to the bit however
// many tokens share its step.
func sameAnyRows() bool {
	attention, products := kernelRuns()
	return attention >= 0 && products >= 0
}

// TestDraftsKeepAnswers: drafts change no answer, greedy or sampled, nor what
// later turns take over from the cache. Together, answers depend on where in the
// cache their tokens come to lie, with drafts and without; they are valid.
func TestDraftsKeepAnswers(t *testing.T) {
	const parallel = 4
	run := func(w Without) (drafted [2]int, seen map[string][]choice, texts map[string]string) {
		m := drafting(t, Config{Context: 1024, Parallel: parallel, Without: w})
		defer m.Close()
		var rec choices
		if !sameAnyRows() {
			m.engine.onChoice = rec.add
		}
		texts = map[string]string{}
		var mu sync.Mutex
		answer := func(key string, r *model.Request) *model.Response {
			resp := generate(t, m, r)
			if c := r.Constraint; c != nil && resp.Finish == model.Stop && !c.Validate(t.Context(), resp.Text).Valid {
				t.Errorf("%s: %q is not valid", key, resp.Text)
			}
			mu.Lock()
			defer mu.Unlock()
			if key == "together" {
				drafted[1] += resp.Stats.DraftedTokens
				return resp
			}
			texts[key] = resp.Text
			drafted[0] += resp.Stats.DraftedTokens
			return resp
		}
		for i, r := range copying(t) {
			resp := answer(fmt.Sprint("first ", i), r)
			next := *r
			next.Messages = append(append([]model.Message(nil), r.Messages...),
				model.Message{Role: model.Assistant, Content: resp.Text}, model.Message{Role: model.User, Content: "Again."})
			answer(fmt.Sprint("second ", i), &next)
		}
		seen = rec.take()
		var wg sync.WaitGroup
		for i, r := range copying(t) {
			if i%3 == 2 {
				r.Sampling.Logprobs = 2 // has no drafts, its neighbours do
			}
			wg.Go(func() { answer("together", r) })
		}
		wg.Wait()
		return drafted, seen, texts
	}
	drafted, got, texts := run(Without{})
	none, want, plain := run(Without{Drafts: true})
	if drafted[0] < 50 || drafted[1] < 20 || none != [2]int{} {
		t.Errorf("%d tokens were drafted alone and together, and %d without drafts", drafted, none)
	}
	if !sameAnyRows() {
		sameOrTied(t, "drafts", want, got)
		return
	}
	for key, text := range plain {
		if texts[key] != text {
			t.Errorf("%s: %q, without drafts %q", key, texts[key], text)
		}
	}
}

// TestDraftsTakenBack: whenever an answer is cancelled, what its draft left in
// the cache is in nobody's way; and a solo answer has none.
func TestDraftsTakenBack(t *testing.T) {
	m := drafting(t, Config{Context: 1024})
	r := copying(t)[0]
	want := generate(t, m, r)
	for tokens := 1; tokens < int(*want.Usage.OutputTokens)-draftMost-1; tokens += 3 { // the last step may choose several
		ctx, cancel := context.WithCancel(t.Context())
		part := *r
		part.Progress = func(p model.Progress) {
			if p.Tokens >= tokens {
				cancel()
			}
		}
		if _, err := m.Generate(ctx, &part); err == nil {
			t.Errorf("it goes on after %d tokens", tokens)
		}
		cancel()
		if got := generate(t, m, r); sameAnyRows() && got.Text != want.Text {
			t.Fatalf("after one that was cancelled at %d tokens: %q, before %q", tokens, got.Text, want.Text)
		}
	}
	alone := *r
	alone.Solo = true
	if got := generate(t, m, &alone); got.Stats.DraftedTokens != 0 {
		t.Errorf("%d tokens of a solo answer are drafted", got.Stats.DraftedTokens)
	}
}

// TestDraftsEnd: an answer may end at each place of a draft: at its limit, and
// where the grammar ends.
func TestDraftsEnd(t *testing.T) {
	m := drafting(t, Config{Context: 1024})
	whole := map[int]string{}
	drafted := 0
	for _, limit := range []int{40, 33, 26, 20, 15, 11, 8, 6, 5, 4, 3, 2, 1} {
		for i, r := range copying(t) {
			if r.Sampling.Temperature > 0 {
				continue
			}
			r.Sampling.MaxTokens = limit
			resp := generate(t, m, r)
			drafted += resp.Stats.DraftedTokens
			if n := int(*resp.Usage.OutputTokens); n > limit {
				t.Fatalf("%d tokens of %d", n, limit)
			}
			if whole[i] == "" {
				whole[i] = resp.Text
			}
			if sameAnyRows() && whole[i][:min(len(whole[i]), len(resp.Text))] != resp.Text {
				t.Errorf("limit %d: %q, with 40 %q", limit, resp.Text, whole[i])
			}
		}
	}
	if drafted < 50 {
		t.Errorf("%d tokens were drafted", drafted)
	}
	for n := 1; n < 30; n += 3 {
		c := compile(t, constraint.Regex, fmt.Sprintf("(ab|ba){%d}", n))
		if resp := generate(t, m, &model.Request{Messages: ask("Be brief.", "ab ab ababab"), Constraint: c, Sampling: model.Sampling{MaxTokens: 200}}); !c.Validate(t.Context(), resp.Text).Valid {
			t.Errorf("%q is not (ab|ba){%d}", resp.Text, n)
		}
	}
}

// BenchmarkDrafts runs the answer workload with and without drafts by turns.
func BenchmarkDrafts(b *testing.B) {
	w, err := bench.ReadWorkload("../../bench/answer-workload.json")
	if err != nil {
		b.Fatal(err)
	}
	for _, parallel := range []int{1, 2, 8} {
		b.Run(fmt.Sprint("parallel=", parallel), func(b *testing.B) {
			var models [2]*local
			for i, without := range []Without{{}, {Drafts: true}} {
				if models[i], err = open(Config{Path: testModel(b), Context: 2048, Parallel: parallel, Without: without}); err != nil {
					b.Fatal(err)
				}
				defer models[i].Close()
				if _, err := bench.Answers(b.Context(), models[i], w, bench.Options{Parallel: parallel}); err != nil {
					b.Fatal(err)
				}
			}
			var ratios, speeds []float64
			drafted, tokens := 0, 0
			b.ResetTimer()
			for range b.N {
				var f [2]*bench.Figures
				for i, m := range models {
					if f[i], err = bench.Answers(b.Context(), m, w, bench.Options{Parallel: parallel}); err != nil {
						b.Fatal(err)
					}
				}
				ratios = append(ratios, f[1].Seconds/f[0].Seconds)
				speeds = append(speeds, f[0].AnswersPerSecond)
				drafted, tokens = drafted+f[0].Drafted, tokens+f[0].Tokens
			}
			b.ReportMetric(median(ratios), "times-as-fast")
			b.ReportMetric(median(speeds), "answers/s")
			b.ReportMetric(100*float64(drafted)/float64(tokens), "%-drafted")
		})
	}
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
