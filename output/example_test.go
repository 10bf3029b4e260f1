package output_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agentgraph/output"
)

// A name that is taken is never used again.
func ExamplePublish() {
	dir, err := os.MkdirTemp("", "answers")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	pattern, err := output.NewPattern("rating", "json")
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		path, err := output.Publish(context.Background(), dir, pattern, time.Now(), []byte(`{"rating": 4}`))
		fmt.Println(filepath.Base(path), err)
	}
	// Output:
	// rating_0.json <nil>
	// rating_1.json <nil>
}

func ExamplePattern_Match() {
	pattern, err := output.NewPattern("rating", "json")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pattern.Match("rating_7.json"), pattern.Match("ratings_7.json"))
	fmt.Println(pattern.Turn("rating_7.json"))
	// Output:
	// true false
	// 7 true
}
