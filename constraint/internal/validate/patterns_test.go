package validate

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The corpus is also read by the test that holds these expressions against
// the engine's masks.
func TestPatternCorpus(t *testing.T) {
	data, err := os.ReadFile("testdata/patterns.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		var pattern string
		var yes, no []string
		fields := strings.Split(line, "\t")
		for i, into := range []any{&pattern, &yes, &no} {
			if err := json.Unmarshal([]byte(fields[i]), into); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		n++
		p, err := Regex(pattern)
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
			continue
		}
		for _, s := range yes {
			if p.Validate(context.Background(), s) != nil {
				t.Errorf("%q does not match %q", pattern, s)
			}
		}
		for _, s := range no {
			if p.Validate(context.Background(), s) == nil {
				t.Errorf("%q matches %q", pattern, s)
			}
		}
	}
	if n < 300 {
		t.Errorf("only %d expressions", n)
	}
}
