package bench

import "testing"

func TestAgree(t *testing.T) {
	text := func(list ...string) (out []Answer) {
		for _, s := range list {
			out = append(out, Answer{Text: s})
		}
		return out
	}
	for _, tt := range []struct {
		a, b []Answer
		want Agreement
	}{
		{nil, nil, Agreement{}},
		{text("same", ""), text("same", ""), Agreement{Same: 2, Answers: 2, Alike: 1}},
		{text("abcd"), text("abxy"), Agreement{Answers: 1, Alike: 0.5}},
		{text("ab", "x"), text("abcd", "y"), Agreement{Answers: 2, Alike: 0.25}},
	} {
		if got := Agree(tt.a, tt.b); got != tt.want {
			t.Errorf("Agree(%v, %v) = %+v, want %+v", tt.a, tt.b, got, tt.want)
		}
	}
}
