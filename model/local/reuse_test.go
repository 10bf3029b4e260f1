//go:build cgo && !nonative

package local

import (
	"testing"

	"agentgraph/model"
)

// TestLaterTurnsReuseThePrompt: from the second turn on, an agent's prompt is
// decoded from where it differs, also when another agent has the same system
// text and when others answered in between.
func TestLaterTurnsReuseThePrompt(t *testing.T) {
	m := sharedModel(t, Config{Context: 1024, Parallel: 2})
	first, later := secondTurn(t, m, 1_000_000)
	prompt := int(*first[0].Usage.InputTokens)
	if got := first[0].Stats.ReusedTokens; got > prompt/4 {
		t.Fatalf("the first turn reuses %d of %d tokens; the test's prompt is not new", got, prompt)
	}
	if prompt < 200 {
		t.Fatalf("a prompt of %d tokens shows nothing", prompt)
	}
	for i, r := range later {
		all, got := int(*r.Usage.InputTokens), r.Stats.ReusedTokens
		if all-got > 30 {
			t.Errorf("turn %d decodes %d of its %d prompt tokens anew", i+2, all-got, all)
		}
		if n := r.Usage.CacheReadTokens; n == nil || int(*n) != got {
			t.Errorf("turn %d: usage says %v reused, the figures %d", i+2, n, got)
		}
	}
	for i := range 3 {
		generate(t, m, &model.Request{Messages: ask("You are somebody else.", "What is the time?"), Sampling: model.Sampling{MaxTokens: 2 + i}})
	}
	again, _ := secondTurn(t, m, 1_000_000) // another agent, same system text
	if r := again[0]; int(*r.Usage.InputTokens)-r.Stats.ReusedTokens > 30 {
		t.Errorf("another agent with the same system text reuses %d of %d tokens", r.Stats.ReusedTokens, *r.Usage.InputTokens)
	}
}
