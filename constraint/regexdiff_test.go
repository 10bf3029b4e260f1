//go:build cgo

package constraint

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

type patternCase struct {
	pattern string
	yes, no []string
}

func patternCorpus(t *testing.T) []patternCase {
	t.Helper()
	data, err := os.ReadFile("internal/validate/testdata/patterns.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []patternCase
	for _, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		var c patternCase
		fields := strings.Split(line, "\t")
		for i, into := range []any{&c.pattern, &c.yes, &c.no} {
			if err := json.Unmarshal([]byte(fields[i]), into); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		out = append(out, c)
	}
	return out
}

// The mask and local validation read an @regex alike: 300 expressions, each
// against every text of the corpus.
func TestRegexMaskAgreesWithValidation(t *testing.T) {
	needNative(t)
	corpus := patternCorpus(t)
	texts := map[string]bool{}
	for _, c := range corpus {
		for _, s := range append(c.yes, c.no...) {
			texts[s] = true
		}
	}
	checked := 0
	for _, c := range corpus {
		con, err := Compile(Spec{Kind: Regex, Source: []byte(c.pattern)}, Options{})
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		follow := &grammarJudge{c: con.compiled, key: con.grammar}
		agree := func(s string) bool {
			mask := len(follow.judge(context.Background(), s)) == 0
			local := con.Validate(context.Background(), s).Valid
			if mask != local {
				t.Errorf("%q on %q: the mask says %t, validation %t", c.pattern, s, mask, local)
			}
			checked++
			return mask
		}
		for _, s := range c.yes {
			if !agree(s) {
				t.Errorf("%q does not take %q", c.pattern, s)
			}
		}
		for _, s := range c.no {
			if agree(s) {
				t.Errorf("%q takes %q", c.pattern, s)
			}
		}
		for s := range texts {
			agree(s)
		}
	}
	t.Logf("%d expressions, %d texts, %d comparisons", len(corpus), len(texts), checked)
	if len(corpus) < 300 {
		t.Errorf("only %d expressions", len(corpus))
	}
}
