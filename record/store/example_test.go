package store_test

import (
	"fmt"
	"os"
	"time"

	"agentgraph/record"
	"agentgraph/record/store"
)

// A refused turn, written and read again.
func ExampleStore() {
	dir, err := os.MkdirTemp("", "turns")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	turns := store.Open(dir)
	if _, err := turns.Write("0001", &record.Record{Error: &record.Error{Code: record.InputNotText, Message: "the input is not text"}}); err != nil {
		fmt.Println(err)
		return
	}
	err = turns.Each(func(id string, r *record.Record) error {
		fmt.Println(id, r.Error.Code)
		return nil
	})
	fmt.Println(err)
	// Output:
	// 0001 input_not_text
	// <nil>
}

// A thread keeps questions and answers, and never what held an answer to a
// shape.
func ExampleThread() {
	dir, err := os.MkdirTemp("", "threads")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	thread, err := store.OpenThread(dir, "trip")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range []store.Exchange{{User: "Where?", Answer: "Paris."}, {User: "When?", Answer: "In May."}} {
		e.Time = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
		if err := thread.Append(e); err != nil {
			fmt.Println(err)
			return
		}
	}
	last, err := thread.Exchanges(1)
	fmt.Println(last[0].User, last[0].Answer, err)
	// Output: When? In May. <nil>
}
