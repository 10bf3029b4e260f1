package openai

import (
	"bufio"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 10<<20)
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"plain", "data: a\n\ndata: b\n\n", []string{"a", "b"}},
		{"carriage returns", "data: a\r\n\r\ndata:b\r\n\r\n", []string{"a", "b"}},
		{"comments and other fields", ": ping\n\nevent: x\nid: 7\ndata: a\n\n", []string{"a"}},
		{"several lines are one event", "data: a\ndata: b\n\n", []string{"a\nb"}},
		{"the last without its blank line", "data: a\n\ndata: b\n", []string{"a", "b"}},
		{"the last without its line end", "data: a\n\ndata: b", []string{"a", "b"}},
		{"an empty event", "data\n\ndata: a\n\n", []string{"a"}},
		{"ten megabytes", "data: " + long + "\n\n", []string{long}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			err := events(bufio.NewReaderSize(strings.NewReader(tc.in), 512), func(b []byte) (bool, error) {
				got = append(got, string(b))
				return false, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, in := range map[string]string{
		"one line":   "data: " + strings.Repeat("y", maxLine+1),
		"many lines": strings.Repeat("data: "+strings.Repeat("y", 1<<20)+"\n", 34),
	} {
		err := events(bufio.NewReader(strings.NewReader(in)), func([]byte) (bool, error) { return false, nil })
		if !errors.Is(err, errLine) {
			t.Errorf("%s: the error is %v, want %v", name, err, errLine)
		}
	}
}

// Pieces of a stream may end within a character: within its bytes, or between
// the halves of a surrogate pair.
func TestPiecesOfCharacters(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pieces []string
		want   string
		shown  []int // whole characters after each piece, in bytes
	}{
		{"plain", []string{`"añ"`, `"b"`}, "añb", []int{3, 4}},
		{"bytes", []string{"\"a\xf0\x9f\"", "\"\x98\x80b\""}, "a😀b", []int{1, 6}},
		{"halves", []string{`"a\ud83d"`, `"\ude00b"`}, "a😀b", []int{1, 6}},
		{"a pair in one piece", []string{`"\ud83d\ude00"`}, "😀", []int{4}},
		{"a Hangul syllable looks like a half", []string{`"퀀"`}, "퀀", []int{3}},
		{"escapes", []string{`"\"\\\/\b\f\n\r\t\u0041"`}, "\"\\/\b\f\n\r\tA", []int{9}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var text []byte
			var shown []int
			for _, p := range tc.pieces {
				b, ok := unquote(json.RawMessage(p))
				if !ok {
					t.Fatalf("%s is no string", p)
				}
				text = append(text, b...)
				shown = append(shown, len(joinPairs(text[:wholeRunes(text)])))
			}
			if got := string(joinPairs(text)); got != tc.want {
				t.Errorf("the text is %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.shown, shown); diff != "" {
				t.Errorf("shown: %s", diff)
			}
		})
	}
	for _, half := range []string{`"\ud83d"`, `"\ude00\ud83d"`, "\"\xf0\x9f\""} {
		b, ok := unquote(json.RawMessage(half))
		if !ok || utf8.Valid(joinPairs(b)) {
			t.Errorf("half a character %q became text", half)
		}
	}
	for _, bad := range []string{``, `"`, `null`, `7`, `"\"`, `"\u12"`, `"\uzzzz"`} {
		if b, ok := unquote(json.RawMessage(bad)); ok {
			t.Errorf("unquote(%q) = %q", bad, b)
		}
	}
}

// What encoding/json reads as a string of whole characters, unquote reads the
// same.
func FuzzUnquote(f *testing.F) {
	for _, s := range []string{`"a"`, `"\ud83d\ude00"`, `"\u00e9\n"`, "\"\xc3\xa9\"", `"\\u0041"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want string
		if json.Unmarshal([]byte(s), &want) != nil || strings.Contains(want, "\uFFFD") {
			return
		}
		if !strings.HasPrefix(strings.TrimSpace(s), `"`) {
			return
		}
		b, ok := unquote(json.RawMessage(s))
		if got := string(joinPairs(b)); !ok || got != want {
			t.Errorf("unquote(%q) = %q, %v, want %q", s, got, ok, want)
		}
		if n := wholeRunes(b); n > len(b) {
			t.Errorf("wholeRunes(%q) = %d", b, n)
		}
	})
}
