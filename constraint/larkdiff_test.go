//go:build cgo && !nonative

package constraint

import (
	"strconv"
	"strings"
	"testing"

	"agentgraph/constraint/internal/llg"
	"agentgraph/constraint/lark"

	"github.com/rogpeppe/go-internal/txtar"
)

// larkSample is one grammar of constraint/lark's corpus and who takes it.
type larkSample struct{ verdict, name, src string }

func larkCorpus(t *testing.T) []larkSample {
	t.Helper()
	ar, err := txtar.ParseFile("lark/testdata/corpus.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var out []larkSample
	for _, f := range ar.Files {
		verdict, name, _ := strings.Cut(f.Name, "/")
		s := larkSample{verdict, name, string(f.Data)}
		if strings.HasSuffix(name, ".quoted") {
			if s.src, err = strconv.Unquote(strings.TrimSpace(s.src)); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
		// The mark is dropped before the engine sees a file.
		s.src = strings.TrimPrefix(s.src, "\uFEFF")
		out = append(out, s)
	}
	return out
}

// TestLarkAgreement: the reader and llguidance take and refuse the same
// grammars, but for the ones that the corpus names.
func TestLarkAgreement(t *testing.T) {
	needNative(t)
	v, err := ByteVocabulary()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range larkCorpus(t) {
		g, ours := lark.Parse([]byte(s.src))
		_, theirs := v.tok.Check(llg.Lark, []byte(s.src), llg.Limits{})
		var takes, took bool // by the corpus: this reader, llguidance
		switch s.verdict {
		case "accept":
			takes, took = true, true
		case "refuse":
		case "stricter":
			took = true
		case "vocabulary":
			takes = true
		default:
			t.Errorf("%s: unknown verdict %q", s.name, s.verdict)
		}
		if (ours == nil) != takes {
			t.Errorf("%s/%s: the reader says %v\n%s", s.verdict, s.name, ours, s.src)
		}
		if (theirs == nil) != took {
			t.Errorf("%s/%s: llguidance says %v\n%s", s.verdict, s.name, theirs, s.src)
		}
		if ours == nil && theirs == nil {
			n++
			if _, err := v.tok.Check(llg.Lark, []byte(g.String()), llg.Limits{}); err != nil {
				t.Errorf("%s: llguidance refuses what the reader printed: %v\n%s", s.name, err, g)
			}
		}
	}
	if n < 150 {
		t.Errorf("only %d grammars were taken by both", n)
	}
}
