package acp

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentgraph/tools"
)

// A server that ends with its session leaves nobody waiting who came too late:
// a set-up that another one overtook, or a prompt.
func TestEndedServer(t *testing.T) {
	m := &clientServer{name: "gone", cfg: tools.Config{MCP: &tools.Server{Name: "gone", Command: []string{"no-such-program-here"}}}}
	m.start(func(error) {})
	m.close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got := make(chan []serverStatus, 1)
	go func() { got <- new(server).connected(ctx, []*clientServer{m}) }()
	select {
	case list := <-got:
		if len(list) != 1 || list[0].Error == "" {
			t.Errorf("it came to %+v", list)
		}
	case <-ctx.Done():
		t.Fatal("the set-up still waits")
	}
	if _, _, err := m.offers(ctx, tools.Ask); !errors.Is(err, errEnded) {
		t.Errorf("a prompt is told %v", err)
	}
}
