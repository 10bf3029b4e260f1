//go:build cgo && !nonative

package local

import (
	"runtime"
	"slices"
	"testing"

	"agentgraph/model"
)

// TestSwitchesKeepAnswers: greedy answers with each optimisation off are those
// with all on; where it changes the order of additions, they part at near ties
// only.
func TestSwitchesKeepAnswers(t *testing.T) {
	// Those that change the order in which floats are added.
	reorders := map[string]bool{"no-repack": true, "no-flash-attention": true, "no-forced-batch": true, "no-kernels": true}
	run := func(w Without) ([]string, map[string][]choice) {
		m, err := open(Config{Path: testModel(t), Context: 512, Threads: 1, Without: w})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var rec choices
		m.engine.onChoice = rec.add
		var texts []string
		for _, r := range requests(t)[:4] {
			r.Sampling = model.Sampling{MaxTokens: 16}
			r.Solo = true
			texts = append(texts, generate(t, m, r).Text)
		}
		return texts, rec.take()
	}
	want, choices := run(Without{})
	for _, s := range switches[1:] {
		texts, got := run(s.without)
		if reorders[s.name] {
			sameOrTied(t, s.name, choices, got)
			continue
		}
		for i := range want {
			if texts[i] != want[i] {
				t.Errorf("%s: %q, with all on %q", s.name, texts[i], want[i])
			}
		}
	}
}

// TestGuessesChangeNothing: a greedy answer that asks about its likeliest token
// first is the answer that a mask for every token gives, for all kinds.
func TestGuessesChangeNothing(t *testing.T) {
	run := func(w Without) (texts []string, masks int) {
		m, err := open(Config{Path: testModel(t), Context: 1024, Threads: runtime.GOMAXPROCS(0), Without: w})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for _, r := range requests(t) {
			r.Sampling = model.Sampling{MaxTokens: 60}
			r.Solo = true
			texts = append(texts, generate(t, m, r).Text)
		}
		return texts, int(m.engine.masksMade.Load())
	}
	want, all := run(Without{Guess: true})
	got, few := run(Without{})
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwith masks alone %q", got, want)
	}
	if few*2 > all {
		t.Errorf("%d masks were computed, %d without guesses", few, all)
	}
}

// TestSoloRepeats: whatever ran before or beside it, a solo answer is the same.
func TestSoloRepeats(t *testing.T) {
	m := sharedModel(t, Config{Context: 512, Parallel: 4})
	seed := uint64(7)
	req := &model.Request{Messages: ask("Be brief.", "Say something about rain."), Sampling: model.Sampling{MaxTokens: 20, Temperature: 1, Seed: &seed}, Solo: true}
	want := generate(t, m, req)
	for i := range 4 {
		other := make(chan struct{})
		go func() {
			defer close(other)
			m.Generate(t.Context(), &model.Request{Messages: ask("Be brief.", "Count."), Sampling: model.Sampling{MaxTokens: 5 + i}})
		}()
		got := generate(t, m, req)
		<-other
		if got.Text != want.Text || got.Stats.ReusedTokens != 0 {
			t.Errorf("%q, then %q (%d tokens reused)", want.Text, got.Text, got.Stats.ReusedTokens)
		}
	}
}
