package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A list that did not arrive is no success.
func TestFullDiskOnStdout(t *testing.T) {
	graph, _ := slowGraph(t, "1ms")
	if err := os.Mkdir(filepath.Join(graph, "agents", "slow", "system"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"scan", graph}, {"scan", "--json", graph}, {"version"}, {"help"}, {"graph", graph}} {
		var stderr bytes.Buffer
		code := Main(t.Context(), args, strings.NewReader(""), fullDisk{}, &stderr)
		if code != exitRefused || stderr.String() != "agentgraph: no space left on device\n" {
			t.Errorf("%q: exit code %d, stderr %q", args, code, stderr.String())
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func TestStdinHasABound(t *testing.T) {
	for what, args := range map[string][]string{
		"the prompt": {"respond", "--model", "script:none.yaml"},
		"the schema": {"respond", "--model", "script:none.yaml", "--schema", "-", "hello"},
	} {
		var stderr bytes.Buffer
		code := Main(t.Context(), args, zeros{}, fullDisk{}, &stderr)
		if code != exitRefused || !strings.Contains(stderr.String(), what+" on stdin has more than the 67108864 bytes") {
			t.Errorf("%s: exit code %d, stderr %q", what, code, stderr.String())
		}
	}
}
