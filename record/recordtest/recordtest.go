// Package recordtest holds what tests of other packages share about records.
package recordtest

import (
	"testing"

	"agentgraph/record"
)

// Check fails the test when r does not encode to a record that its JSON
// Schema accepts. It returns the JSON.
func Check(t testing.TB, r *record.Record) []byte {
	t.Helper()
	b, err := record.Marshal(r)
	if err != nil {
		t.Fatalf("the record does not encode: %v", err)
	}
	if err := record.Check(b); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
	return b
}
