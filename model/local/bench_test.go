//go:build cgo && !nonative

package local

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
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
	{"no-thread-pool", Without{ThreadPool: true}},
	{"no-guess", Without{Guess: true}},
	{"no-drafts", Without{Drafts: true}},
	{"no-kernels", Without{Kernels: true}},
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
				m, err := open(Config{Path: testModel(b), Context: 2048, Parallel: parallel, Without: s.without})
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
				m.Close() // the engine's own figures are its goroutine's until then
				b.ReportMetric(100*m.engine.choosing.Seconds()/seconds, "%-choosing")
			})
		}
	}
}

// BenchmarkDecode compares free text from Generate with a loop over the same
// context that never leaves the native side, by turns, which are short: the
// machine may change its pace.
func BenchmarkDecode(b *testing.B) {
	const n = 60
	l, err := open(Config{Path: testModel(b), Context: 1024, Without: Without{Pace: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	req := &model.Request{Messages: ask("Tell long stories.", "Tell me about the sea."), Sampling: model.Sampling{MaxTokens: n}, Solo: true}
	_, ids, err := l.prompt(req)
	if err != nil {
		b.Fatal(err)
	}
	generate(b, l, req)
	tokens := 0
	var ours, plain time.Duration
	var ratios []float64
	for range b.N {
		ended := time.Time{}
		req.Progress = func(model.Progress) { ended = time.Now() }
		began := time.Now()
		r := generate(b, l, req)
		if *r.Usage.OutputTokens != n {
			b.Fatalf("%d tokens of %d", *r.Usage.OutputTokens, n)
		}
		// The first token comes with the prompt.
		a := ended.Sub(began) - r.Stats.FirstToken
		c := nativeLoop(b, l, ids, n)
		ours, plain, tokens = ours+a, plain+c, tokens+n-1
		ratios = append(ratios, c.Seconds()/a.Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(float64(tokens)/ours.Seconds(), "tokens/s")
	b.ReportMetric(float64(tokens)/plain.Seconds(), "native-tokens/s")
	b.ReportMetric(100*ratios[len(ratios)/2], "%-of-native")
}

// nativeLoop is how long llama.cpp takes for n-1 tokens behind a prompt and
// its first, in a plain loop of its own.
func nativeLoop(b *testing.B, l *local, ids []int32, n int) time.Duration {
	c := l.engine.cells
	c.clear()
	var bt batch
	for i, id := range ids {
		bt.add(id, i, 0, i == len(ids)-1)
	}
	if err := c.decode(&bt); err != nil {
		b.Fatal(err)
	}
	first, err := c.sample(len(ids)-1, nil, new(sampler))
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if got := c.plainLoop(first, len(ids), n-1); got != n-1 {
		b.Fatalf("%d of %d tokens", got, n-1)
	}
	took := time.Since(began)
	c.clear()
	l.engine.slots.clear()
	return took
}

// secondTurn asks one agent three things; its system prompt is new each time.
func secondTurn(tb testing.TB, m model.Model, agent int) (first, later []*model.Response) {
	system := fmt.Sprintf("You are editor %d of a small paper. ", agent) + strings.Repeat("Keep what is said, say it plainly, and keep every name and number as it is. ", 15)
	for turn, input := range []string{"The lift is out of order until Monday.", "The stairs are wet in the mornings.", "The shop opens at nine."} {
		r := generate(tb, m, &model.Request{Messages: ask(system, input), Sampling: model.Sampling{MaxTokens: 1}})
		if turn == 0 {
			first = append(first, r)
		} else {
			later = append(later, r)
		}
	}
	return first, later
}

var agentsMade atomic.Int64 // a system prompt nobody has seen

// BenchmarkSecondTurn gives the time to the first token of an agent's first
// and later turns.
func BenchmarkSecondTurn(b *testing.B) {
	m := sharedModel(b, Config{Context: 2048})
	var first, later time.Duration
	for range b.N {
		one, two := secondTurn(b, m, int(agentsMade.Add(1)))
		first += one[0].Stats.FirstToken
		for _, r := range two {
			later += r.Stats.FirstToken / time.Duration(len(two))
		}
	}
	b.ReportMetric(float64(first.Microseconds())/1000/float64(b.N), "first-ms")
	b.ReportMetric(float64(later.Microseconds())/1000/float64(b.N), "later-ms")
	b.ReportMetric(later.Seconds()/first.Seconds(), "later/first")
}

// BenchmarkConstrained compares shaped answers of the workload with free ones
// of the same length: same prompt, nothing reused, as many tokens.
func BenchmarkConstrained(b *testing.B) {
	w, err := bench.ReadWorkload("../../bench/answer-workload.json")
	if err != nil {
		b.Fatal(err)
	}
	l, err := open(Config{Path: testModel(b), Context: 2048, Without: Without{PrefixReuse: true, Pace: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	l.engine.endless = true
	l.vocab()
	var shaped, free time.Duration
	tokens, forced := int64(0), 0
	for range b.N {
		for _, task := range w.Tasks {
			c, err := constraint.Compile(constraint.Spec{Kind: constraint.JSON, Source: task.Schema}, constraint.Options{})
			if err != nil {
				b.Fatal(err)
			}
			for _, input := range task.Inputs {
				req := &model.Request{Messages: ask(task.System, input), Constraint: c, Sampling: model.Sampling{MaxTokens: 200}}
				began := time.Now()
				r := generate(b, l, req)
				shaped += time.Since(began)
				n := *r.Usage.OutputTokens
				tokens, forced = tokens+n, forced+r.Stats.ForcedTokens
				req.Constraint, req.Sampling.MaxTokens = nil, int(n)
				began = time.Now()
				if got := *generate(b, l, req).Usage.OutputTokens; got != n {
					b.Fatalf("%d free tokens of %d", got, n)
				}
				free += time.Since(began)
			}
		}
	}
	b.ReportMetric(free.Seconds()/shaped.Seconds(), "times-faster")
	b.ReportMetric(100*float64(forced)/float64(tokens), "%-forced")
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
