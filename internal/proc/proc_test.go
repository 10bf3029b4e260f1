package proc

import (
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	for _, tc := range []struct {
		name   string
		writes []string
		want   string
	}{
		{"short", []string{"ab", " c"}, "ab c"},
		{"exact", []string{"0123456789"}, "0123456789"},
		{"over in one", []string{"secret word end"}, "word end"},
		{"over in many", []string{"secret ", "word\n", "end"}, "word\nend"},
		{"a long word", []string{strings.Repeat("x", 100)}, ""},
		{"half a rune", []string{"a \xc3"}, "a \uFFFD"},
	} {
		tail := &Tail{Keep: 10}
		for _, w := range tc.writes {
			if n, err := tail.Write([]byte(w)); n != len(w) || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := tail.String(); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("HOME", "/home/x")
	t.Setenv("SOME_KEY", "abcdef-1")
	t.Setenv("SOME_KEY_LONGER", "abcdef-12")
	t.Setenv("SHORT", "abc")
	t.Setenv("AG_PROVIDER_X_MODEL", "model-file")
	t.Setenv("AG_PROVIDER_X_TOKEN", "token-value")
	t.Setenv("AG_PROVIDER_Y_TOKEN", "other-value")
	t.Setenv("OTHER", "nobody")
	env := Environment([]string{"SOME_KEY", "SOME_KEY_LONGER", "SHORT", "UNSET", "HOME"}, "AG_PROVIDER_X_")
	all := "|" + strings.Join(env.Vars, "|") + "|"
	for entry, want := range map[string]int{"|HOME=/home/x|": 1, "|SOME_KEY=abcdef-1|": 1, "|SHORT=abc|": 1, "|AG_PROVIDER_X_TOKEN=token-value|": 1,
		"AG_PROVIDER_Y": 0, "OTHER": 0, "UNSET": 0} {
		if got := strings.Count(all, entry); got != want {
			t.Errorf("%s stands %d times among the variables, want %d", entry, got, want)
		}
	}
	const text = "abcdef-12 abcdef-1 abc token-value model-file /home/x"
	if got, want := env.Redact(text), "[SOME_KEY_LONGER] [SOME_KEY] abc [AG_PROVIDER_X_TOKEN] model-file /home/x"; got != want {
		t.Errorf("redacted: %q, want %q", got, want)
	}
	if env := Environment(nil, ""); env.Vars == nil {
		t.Error("no variables are nil, which passes on everything")
	}
}
