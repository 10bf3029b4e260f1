package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/record"
	"agentgraph/serve/acp"
)

const lister = `
constraints: none
tools: true
replies:
  - match: list
    text: "I will look."
    tool_calls: [{name: list_folder, arguments: {path: "."}}]
  - tool_result: "agentgraph.yaml"
    text: "There is a file."
default: {text: "What?"}
`

func toolGraph(policy string) map[string]string {
	return map[string]string{
		"agentgraph.yaml":      "models: {fake: {script: answers.yaml}}\ndefaults: {model: fake, tools: [{tool: list_folder, policy: " + policy + "}]}\n",
		"answers.yaml":         "default: {text: x}\n",
		"agents/a/system/a.md": "You look at files.",
	}
}

// calls are the updates about tools, in order, as kind, id and status.
func calls(list []update) []string {
	var found []string
	for _, u := range list {
		if strings.HasPrefix(u.Update.SessionUpdate, "tool_call") {
			found = append(found, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", u.Update.SessionUpdate, u.Update.ToolCallID, u.Update.Status, u.Update.Title)))
		}
	}
	return found
}

func TestToolThatIsAllowed(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, graph(t, toolGraph("allow")), lister)})
	id := c.start(`{}`)
	if p := readPrompted(t, c.call("session/prompt", text(id, "list it", ""))); p.StopReason != "end_turn" {
		t.Error(p.StopReason)
	}
	list := c.updates(id)
	if diff := cmp.Diff([]string{`tool_call call_1 completed list_folder {"path":"."}`}, calls(list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := said(list, "agent_message_chunk"); !strings.HasSuffix(got, "There is a file.") || strings.Count(got, "There is a file.") != 1 {
		t.Errorf("said %q", got)
	}
	if list[len(list)-1].Update.SessionUpdate != "agent_message_chunk" || !strings.Contains(c.dump(), "agentgraph.yaml") {
		t.Errorf("the answer is not last, or the result is not there:\n%s", c.dump())
	}
}

// The client decides about a tool whose policy is ask.
func TestPermission(t *testing.T) {
	selected := func(option string) string {
		return fmt.Sprintf(`"result":{"outcome":{"outcome":"selected","optionId":%q}}`, option)
	}
	const pending, running, done, failed = `tool_call call_%d pending list_folder {"path":"."}`, `tool_call_update call_%d in_progress`, `tool_call_update call_%d completed`, `tool_call_update call_%d failed`
	tests := []struct {
		name, answer string
		stops        [2]string // of two prompts
		asked        int32
		want         []string
	}{
		{"once", selected("allow_once"), [2]string{"end_turn", "end_turn"}, 2, []string{pending, running, done, pending, running, done}},
		{"always", selected("allow_always"), [2]string{"end_turn", "end_turn"}, 1, []string{pending, running, done, pending, running, done}},
		{"rejected", selected("reject_once"), [2]string{"refusal", "refusal"}, 2, []string{pending, failed, pending, failed}},
		{"unknown choice", selected("whatever"), [2]string{"refusal", "refusal"}, 2, []string{pending, failed, pending, failed}},
		{"no choice", `"result":{"outcome":{"outcome":"cancelled"}}`, [2]string{"refusal", "refusal"}, 2, []string{pending, failed, pending, failed}},
		{"no such method", `"error":{"code":-32601,"message":"no"}`, [2]string{"refusal", "refusal"}, 2, []string{pending, failed, pending, failed}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t, acp.Config{Service: service(t, graph(t, toolGraph("ask")), lister)})
			var asked atomic.Int32
			id := ""
			c.ask = func(f frame) string {
				asked.Add(1)
				var q struct {
					SessionID string
					ToolCall  struct {
						ToolCallID string
						RawInput   json.RawMessage
					}
					Options []struct{ OptionID, Kind string }
				}
				if err := json.Unmarshal(f.Params, &q); err != nil || f.Method != "session/request_permission" {
					t.Errorf("%v: %s", err, f.raw)
				}
				if q.SessionID != id || string(q.ToolCall.RawInput) != `{"path":"."}` || len(q.Options) != 3 {
					t.Errorf("%s", f.raw)
				}
				// What it is about was shown before.
				shown := c.updates(id)
				if last := shown[len(shown)-1].Update; last.ToolCallID != q.ToolCall.ToolCallID || last.Status != "pending" {
					t.Errorf("asked about %s after %+v", q.ToolCall.ToolCallID, last)
				}
				return tt.answer
			}
			id = c.start(announcing)
			for _, stop := range tt.stops {
				p := readPrompted(t, c.call("session/prompt", text(id, "list it", "")))
				rec := readRecord(t, p)
				if p.StopReason != stop || (stop == "refusal") != (rec.Outcome.Status == record.PolicyDenied) {
					t.Errorf("%s: %+v", p.StopReason, rec.Outcome)
				}
			}
			var want []string
			n := 0
			for _, w := range tt.want {
				if w == pending {
					n++
				}
				want = append(want, fmt.Sprintf(w, n))
			}
			if diff := cmp.Diff(want, calls(c.updates(id))); diff != "" || asked.Load() != tt.asked {
				t.Errorf("asked %d times, want %d; (-want +got):\n%s", asked.Load(), tt.asked, diff)
			}
		})
	}
}

// A cancel ends a turn that waits for the client's decision.
func TestCancelWhileAsking(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, graph(t, toolGraph("ask")), lister)})
	id := c.start(`{}`)
	n, line := c.request("session/prompt", text(id, "list it", ""))
	c.write(line)
	asked := c.wait("the question", func(f frame) bool { return f.Method == "session/request_permission" })
	c.write(cancel(id), fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"cancelled"}}}`, asked.ID))
	if p := readPrompted(t, c.response(n)); p.StopReason != "cancelled" {
		t.Errorf("%s", p.StopReason)
	}
	want := []string{`tool_call call_1 pending list_folder {"path":"."}`, "tool_call_update call_1 failed"}
	if diff := cmp.Diff(want, calls(c.updates(id))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
