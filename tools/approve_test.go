package tools_test

import (
	"context"
	"errors"
	"testing"

	"agentgraph/tools"
)

func TestDesk(t *testing.T) {
	for _, allow := range []bool{true, false} {
		told := make(chan tools.Question, 1)
		desk := &tools.Desk{Tell: func(q tools.Question) { told <- q }}
		got := make(chan bool)
		go func() {
			ok, err := desk.Approve(t.Context(), tools.Question{Tool: "x", Agent: "a"})
			if err != nil {
				t.Error(err)
			}
			got <- ok
		}()
		q := <-told
		if w := desk.Waiting(); len(w) != 1 || w[0].ID != q.ID || q.ID == "" || w[0].Tool != "x" {
			t.Errorf("waiting: %+v", w)
		}
		if err := desk.Decide("nobody", true); err == nil {
			t.Error("an unknown id was decided")
		}
		if err := desk.Decide(q.ID, allow); err != nil {
			t.Error(err)
		}
		if <-got != allow {
			t.Errorf("decided %v, got the other", allow)
		}
		if desk.Decide(q.ID, allow) == nil || len(desk.Waiting()) != 0 {
			t.Error("it still waits")
		}
	}
}

func TestDeskGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	desk := &tools.Desk{Tell: func(tools.Question) { cancel() }}
	if _, err := desk.Approve(ctx, tools.Question{Tool: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if w := desk.Waiting(); len(w) != 0 {
		t.Errorf("waiting: %+v", w)
	}
}
