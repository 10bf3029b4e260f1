package local

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// fakeCells keeps what a context would hold, and fails the test where a
// sequence is continued from what is not there.
type fakeCells struct{ seqs [][]int32 }

func (f *fakeCells) remove(seq, from int) bool {
	f.seqs[seq] = f.seqs[seq][:min(from, len(f.seqs[seq]))]
	return true
}

func (f *fakeCells) share(from, to, n int) {
	f.seqs[to] = append([]int32(nil), f.seqs[from][:n]...)
}

// TestSlotsHoldWhatTheySay runs random conversations: what slots believes to
// be in the cache is there, and the room is kept.
func TestSlotsHoldWhatTheySay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, total = 5, 200
	f := &fakeCells{seqs: make([][]int32, n)}
	s := newSlots(n, total)
	busy := map[int][]int32{}
	reused := 0
	for range 5000 {
		if len(busy) < 2 && rng.IntN(2) == 0 {
			prompt := make([]int32, 5+rng.IntN(60))
			for i := range prompt {
				prompt[i] = int32(i / 20 * rng.IntN(2))
			}
			at, have := s.take(f, prompt, rng.IntN(10) > 0)
			if _, taken := busy[at]; taken {
				t.Fatalf("slot %d is given twice", at)
			}
			if have >= len(prompt) || !slices.Equal(f.seqs[at], prompt[:have]) {
				t.Fatalf("slot %d says it has %d of %v and holds %v", at, have, prompt, f.seqs[at])
			}
			reused += have
			s.room(f, len(prompt)-have)
			f.seqs[at] = append(f.seqs[at], prompt[have:]...)
			s.decoded(at, prompt[have:])
			busy[at] = prompt
			sum := 0
			for _, q := range f.seqs {
				sum += len(q)
			}
			if sum > total {
				t.Fatalf("%d positions of %d", sum, total)
			}
			continue
		}
		for at := range busy {
			s.give(f, at, rng.IntN(5) > 0)
			delete(busy, at)
			break
		}
		for i, sl := range s.all {
			if !slices.Equal(sl.tokens, f.seqs[i]) {
				t.Fatalf("slot %d says %v and holds %v", i, sl.tokens, f.seqs[i])
			}
		}
	}
	if reused == 0 {
		t.Error("nothing was ever reused")
	}
}

// TestSlotsKeepTheSystemPrompt: two agents in turn each find their own system
// prompt again.
func TestSlotsKeepTheSystemPrompt(t *testing.T) {
	f := &fakeCells{seqs: make([][]int32, 5)}
	s := newSlots(5, 10000)
	system := [2][]int32{}
	for a := range system {
		for i := range 50 {
			system[a] = append(system[a], int32(100*a+i))
		}
	}
	for turn := range 10 {
		for a := range system {
			prompt := append(slices.Clone(system[a]), int32(1000+turn), 7, 8, 9)
			at, have := s.take(f, prompt, true)
			if turn > 0 && have < 50 {
				t.Errorf("turn %d of agent %d reuses %d of 50", turn, a, have)
			}
			f.seqs[at] = append(f.seqs[at], prompt[have:]...)
			s.decoded(at, prompt[have:])
			s.give(f, at, true)
		}
	}
}
