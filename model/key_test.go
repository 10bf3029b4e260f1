package model_test

import (
	"encoding/json"
	"testing"

	"agentgraph/model"
)

func TestConversationSHA256(t *testing.T) {
	base := func() []model.Message {
		return []model.Message{{Role: model.User, Content: "a"}, {Role: model.Assistant, Content: "b",
			ToolCalls: []model.ToolCall{{ID: "1", Name: "f", Arguments: json.RawMessage(`{"x": 1}`)}}}, {Role: model.ToolRole, Content: "c", ToolCallID: "1", Name: "f"}}
	}
	want := model.ConversationSHA256(base())
	same := map[string]func([]model.Message){
		"another id":    func(m []model.Message) { m[1].ToolCalls[0].ID, m[2].ToolCallID = "2", "2" },
		"spaces":        func(m []model.Message) { m[1].ToolCalls[0].Arguments = json.RawMessage(`{"x":1}`) },
		"its reasoning": func(m []model.Message) { m[1].Reasoning = "hm" },
	}
	for name, change := range same {
		m := base()
		change(m)
		if model.ConversationSHA256(m) != want {
			t.Errorf("%s makes it another conversation", name)
		}
	}
	other := map[string]func([]model.Message){
		"a role":            func(m []model.Message) { m[0].Role = model.System },
		"a text":            func(m []model.Message) { m[0].Content = "A" },
		"an argument":       func(m []model.Message) { m[1].ToolCalls[0].Arguments = json.RawMessage(`{"x":2}`) },
		"arguments of none": func(m []model.Message) { m[1].ToolCalls[0].Arguments = json.RawMessage(`{`) },
		"no call":           func(m []model.Message) { m[1].ToolCalls = nil },
		"moved text":        func(m []model.Message) { m[0].Content, m[1].Content = "ab", "" },
	}
	seen := map[string]string{want: "nothing"}
	for name, change := range other {
		m := base()
		change(m)
		sum := model.ConversationSHA256(m)
		if was, ok := seen[sum]; ok {
			t.Errorf("%s and %s give the same hash", name, was)
		}
		seen[sum] = name
	}
}
