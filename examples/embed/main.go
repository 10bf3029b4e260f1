// Command embed answers what waits in a graph, and says so as JSON lines.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/model/local"
	"agentgraph/runner"
)

type only struct{ m model.Model } // one model for all agents

func (o only) Model(context.Context, string) (model.Model, error) { return o.m, nil }

func main() {
	graph, gguf := os.Args[1], os.Args[2]
	m, err := local.Open(local.Config{Path: gguf})
	check(err)
	defer m.Close()
	r, err := runner.New(runner.Config{Root: graph, Models: only{m}, Load: agents.LoadOptions{Model: gguf},
		Events: func(e runner.Event) { json.NewEncoder(os.Stdout).Encode(e) }})
	check(err)
	sum, err := r.Once(context.Background())
	check(err)
	log.Printf("%d completed", sum.Completed)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
