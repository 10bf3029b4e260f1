package record_test

import (
	"testing"

	"agentgraph/record"
)

func TestIDsSortByTime(t *testing.T) {
	last := ""
	for range 1000 {
		id := record.NewID()
		if id <= last || len(id) != 36 {
			t.Fatalf("%q follows %q", id, last)
		}
		last = id
	}
}
