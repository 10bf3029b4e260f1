package bench

import (
	"context"
	"testing"
)

// A small run of everything: the figures are made of turns that took place.
func TestRunner(t *testing.T) {
	f, err := Runner(context.Background(), RunnerOptions{
		Dir: t.TempDir(), Turns: 120, Drops: 5, Old: []int{0, 50}, Agents: 3, Answers: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Latency) != 2 || len(f.Throughput) != 3 || f.StartUp == nil {
		t.Fatalf("figures are missing: %+v", f)
	}
	for _, l := range f.Latency {
		if l.Drops != 5 || l.P50 <= 0 || l.P99 < l.P50 || l.AnswerP50 < l.P50 {
			t.Errorf("latency: %+v", l)
		}
	}
	for _, p := range f.Throughput {
		if p.Turns != 120 || p.PerSecond <= 0 {
			t.Errorf("throughput: %+v", p)
		}
	}
	if s := f.StartUp; s.ReadySeconds <= 0 || s.RebuildSeconds <= 0 {
		t.Errorf("start-up: %+v", s)
	}
}

func TestQuantile(t *testing.T) {
	v := []float64{1, 2, 3, 4}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.99: 4, 1: 4} {
		if got := quantile(v, q); got != want {
			t.Errorf("quantile(%v) = %v, want %v", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("quantile of nothing is not 0")
	}
}
