package lark

import (
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// sample is one grammar of testdata/corpus.txtar.
type sample struct{ verdict, name, src string }

func corpus(t testing.TB) []sample {
	t.Helper()
	ar, err := txtar.ParseFile("testdata/corpus.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var out []sample
	for _, f := range ar.Files {
		verdict, name, _ := strings.Cut(f.Name, "/")
		s := sample{verdict, name, string(f.Data)}
		if base, ok := strings.CutSuffix(name, ".quoted"); ok {
			s.name = base
			if s.src, err = strconv.Unquote(strings.TrimSpace(s.src)); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
		s.name = strings.TrimSuffix(s.name, ".lark")
		out = append(out, s)
	}
	return out
}

// TestCorpus reads every grammar of the corpus. What llguidance makes of the
// same grammars is compared in the parent folder, where the native library is
// at hand.
func TestCorpus(t *testing.T) {
	var got []string
	for _, s := range corpus(t) {
		g, err := Parse([]byte(s.src))
		refused := s.verdict == "refuse" || s.verdict == "stricter"
		switch {
		case refused != (err != nil):
			t.Errorf("%s/%s: error %v\n%s", s.verdict, s.name, err, s.src)
		case err != nil:
			got = append(got, s.name+": "+err.Error())
			checkPosition(t, s, err.(*Error))
		case len(g.Warnings()) > 0:
			for _, w := range g.Warnings() {
				got = append(got, s.name+": warning "+w.Error())
			}
		}
	}
	golden(t, "testdata/errors.golden", got)
}

// checkPosition fails when an error points outside the source, counted in
// characters.
func checkPosition(t *testing.T, s sample, e *Error) {
	t.Helper()
	lines := strings.Split(strings.TrimPrefix(s.src, "\uFEFF"), "\n")
	if e.Line < 1 || e.Line > len(lines) || e.Col < 1 || e.Col > len([]rune(lines[e.Line-1]))+1 {
		t.Errorf("%s: %d:%d is not in the source: %v", s.name, e.Line, e.Col, e)
	}
	if e.Construct == "" || e.Msg == "" {
		t.Errorf("%s: construct %q, message %q", s.name, e.Construct, e.Msg)
	}
}

func golden(t *testing.T, file string, got []string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got; write it anew with -update when the change is meant):\n%s", file, d)
	}
}

func TestCorpusSize(t *testing.T) {
	n := map[string]int{}
	for _, s := range corpus(t) {
		n[s.verdict]++
	}
	if n["accept"] < 150 || n["refuse"] < 150 {
		t.Errorf("the corpus has shrunk: %v", n)
	}
	if !slices.Equal([]string{"accept", "refuse", "stricter", "vocabulary"}, sortedKeys(n)) {
		t.Errorf("unknown verdicts in %v", n)
	}
}

func sortedKeys(m map[string]int) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
