package record_test

import (
	"encoding/json"
	"fmt"

	"agentgraph/record"
)

// A record says whether its text is an answer. What was cut off is none.
func ExampleRecord_Answer() {
	const line = `{"schema_version": "agentgraph.turn/1", "attempt": 1,
		"outcome": {"status": "limit_exceeded", "limit": "output_tokens", "output": "{\"city\": \"Par", "finish_reason": "length", "usage": null},
		"error": {"code": "truncated", "message": "the answer was cut off after 8 tokens"},
		"output_validation": {"status": "invalid", "enforced_by": "mask", "diagnostics": []}}`
	var rec record.Record
	if err := json.Unmarshal([]byte(line), &rec); err != nil {
		fmt.Println(err)
		return
	}
	text, ok := rec.Answer()
	fmt.Printf("%q %v\n", text, ok)
	fmt.Println(rec.Error, record.ExitCode(&rec))
	// Output:
	// "" false
	// the answer was cut off after 8 tokens 1
}
