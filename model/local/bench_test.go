//go:build cgo && !nonative

package local

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/internal/bench"
	"agentgraph/model"
)

// switches are all optimisations, by the name their absence has.
var switches = []struct {
	name    string
	without Without
}{
	{"all", Without{}},
	{"no-forced-batch", Without{ForcedBatch: true}},
	{"no-prefix-reuse", Without{PrefixReuse: true}},
	{"no-repack", Without{Repack: true}},
	{"no-flash-attention", Without{FlashAttention: true}},
	{"no-unified-cache", Without{UnifiedCache: true}},
	{"no-mask-overlap", Without{MaskOverlap: true}},
	{"no-pace", Without{Pace: true}},
}

// BenchmarkAnswers runs the answer workload with each optimisation off.
func BenchmarkAnswers(b *testing.B) {
	w, err := bench.ReadWorkload("../../bench/answer-workload.json")
	if err != nil {
		b.Fatal(err)
	}
	for _, parallel := range []int{1, 8} {
		for _, s := range switches {
			b.Run(fmt.Sprintf("parallel=%d/%s", parallel, s.name), func(b *testing.B) {
				m, err := Open(Config{Path: testModel(b), Context: 2048, Parallel: parallel, Without: s.without})
				if err != nil {
					b.Fatal(err)
				}
				defer m.Close()
				answers, tokens, seconds := 0, 0, 0.0
				b.ResetTimer()
				for range b.N {
					f, err := bench.Answers(b.Context(), m, w, bench.Options{Parallel: parallel})
					if err != nil {
						b.Fatal(err)
					}
					answers, tokens, seconds = answers+f.Answers, tokens+f.Tokens, seconds+f.Seconds
				}
				b.ReportMetric(float64(answers)/seconds, "answers/s")
				b.ReportMetric(float64(tokens)/seconds, "tokens/s")
			})
		}
	}
}

// BenchmarkDecode compares free text from Generate with a loop over the same
// context that never leaves the native side.
func BenchmarkDecode(b *testing.B) {
	const n = 200
	l, err := open(Config{Path: testModel(b), Context: 1024, Without: Without{Pace: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	req := &model.Request{Messages: ask("Tell long stories.", "Tell me about the sea."), Sampling: model.Sampling{MaxTokens: n}, Solo: true}
	b.Run("generate", func(b *testing.B) {
		tokens, spent := 0, time.Duration(0)
		for range b.N {
			r := generate(b, l, req)
			tokens += int(*r.Usage.OutputTokens) - 1 // the first comes with the prompt
			spent += r.Stats.Decode + r.Stats.Sample
		}
		b.ReportMetric(float64(tokens)/spent.Seconds(), "tokens/s")
	})
	b.Run("native", func(b *testing.B) {
		_, ids, err := l.prompt(req)
		if err != nil {
			b.Fatal(err)
		}
		var bt batch
		tokens, spent := 0, time.Duration(0)
		for range b.N {
			l.engine.cells.clear()
			bt.clear()
			for i, id := range ids {
				bt.add(id, i, 0, i == len(ids)-1)
			}
			if err := l.engine.cells.decode(&bt); err != nil {
				b.Fatal(err)
			}
			first, err := l.engine.cells.sample(len(ids)-1, nil, new(sampler))
			if err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			if got := l.engine.cells.plainLoop(first, len(ids), n-1); got != n-1 {
				b.Fatalf("%d of %d tokens", got, n-1)
			}
			spent += time.Since(began)
			tokens += n - 1
		}
		b.ReportMetric(float64(tokens)/spent.Seconds(), "tokens/s")
		l.engine.cells.clear()
		l.engine.slots.clear()
	})
}

// BenchmarkSecondTurn gives the time to the first token of an agent's first
// and later turns.
func BenchmarkSecondTurn(b *testing.B) {
	m := sharedModel(b, Config{Context: 2048})
	var first, later time.Duration
	for i := range b.N {
		system := fmt.Sprintf("You are editor %d of a small paper. ", i) + strings.Repeat("Keep what is said, say it plainly, and keep every name and number as it is. ", 15)
		for turn, input := range []string{"The lift is out of order until Monday.", "The stairs are wet in the mornings.", "The shop opens at nine."} {
			r := generate(b, m, &model.Request{Messages: ask(system, input), Sampling: model.Sampling{MaxTokens: 1}})
			if turn == 0 {
				first += r.Stats.FirstToken
			} else {
				later += r.Stats.FirstToken / 2
			}
		}
	}
	b.ReportMetric(float64(first.Microseconds())/1000/float64(b.N), "first-ms")
	b.ReportMetric(float64(later.Microseconds())/1000/float64(b.N), "later-ms")
}

// BenchmarkConstrained compares shaped answers of the workload with free ones
// of the same length.
func BenchmarkConstrained(b *testing.B) {
	w, err := bench.ReadWorkload("../../bench/answer-workload.json")
	if err != nil {
		b.Fatal(err)
	}
	m := sharedModel(b, Config{Context: 2048})
	var shaped, free time.Duration
	for range b.N {
		for _, task := range w.Tasks {
			c, err := constraint.Compile(constraint.Spec{Kind: constraint.JSON, Source: task.Schema}, constraint.Options{})
			if err != nil {
				b.Fatal(err)
			}
			for _, input := range task.Inputs {
				req := &model.Request{Messages: ask(task.System, input), Constraint: c, Sampling: model.Sampling{MaxTokens: 200}}
				began := time.Now()
				n := *generate(b, m, req).Usage.OutputTokens
				shaped += time.Since(began)
				req.Constraint = nil
				began = time.Now()
				got := int64(0)
				for got < n { // a free answer may end earlier
					req.Sampling.MaxTokens = int(n - got)
					got += max(1, *generate(b, m, req).Usage.OutputTokens)
				}
				free += time.Since(began)
			}
		}
	}
	b.ReportMetric(free.Seconds()/shaped.Seconds(), "times-faster")
}

// BenchmarkOpen is the time from nothing to a model that answers.
func BenchmarkOpen(b *testing.B) {
	path := testModel(b)
	var answer time.Duration
	req := shortRequest(b)
	for range b.N {
		began := time.Now()
		m, err := Open(Config{Path: path, Context: 2048})
		if err != nil {
			b.Fatal(err)
		}
		r := generate(b, m, req)
		answer += time.Since(began) - r.Stats.Prefill
		m.Close()
	}
	b.ReportMetric(float64(answer.Microseconds())/1000/float64(b.N), "start-to-first-token-beyond-prefill-ms")
}

func shortRequest(b *testing.B) *model.Request {
	return &model.Request{
		Messages:   ask("Rate it.", "The kettle leaks."),
		Constraint: compile(b, constraint.JSON, `{"type":"object","properties":{"rating":{"type":"integer","minimum":1,"maximum":5}},"required":["rating"],"additionalProperties":false}`),
		Sampling:   model.Sampling{MaxTokens: 1},
	}
}

// TestNoAllocationPerToken: a longer answer allocates no more than a shorter.
func TestNoAllocationPerToken(t *testing.T) {
	m := sharedModel(t, Config{Context: 1024})
	for _, tt := range []struct {
		name string
		c    *constraint.Constraint
	}{{"free", nil}, {"constrained", compile(t, constraint.Regex, `[a-z ]{2000}`)}} {
		mallocs := func(n int) uint64 {
			req := &model.Request{Messages: ask("Write on.", "About the sea."), Constraint: tt.c, Sampling: model.Sampling{MaxTokens: n}}
			least := ^uint64(0)
			for range 3 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				generate(t, m, req)
				runtime.ReadMemStats(&after)
				least = min(least, after.Mallocs-before.Mallocs)
			}
			return least
		}
		mallocs(8)
		short, long := mallocs(8), mallocs(72)
		if per := float64(int64(long-short)) / 64; per > 0.5 {
			t.Errorf("%s: %.1f allocations a token (%d for 8, %d for 72)", tt.name, per, short, long)
		}
	}
}
