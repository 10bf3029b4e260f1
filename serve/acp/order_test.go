package acp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentgraph/serve/acp"
)

// Updates of many sessions at once, each of thousands of tokens with tools
// between them: every session's arrive in order, whole, and before its
// response.
func TestUpdatesArriveInOrder(t *testing.T) {
	var words, thoughts strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&words, "w%d ", i)
		fmt.Fprintf(&thoughts, "t%d ", i)
	}
	script := fmt.Sprintf(`
constraints: none
tools: true
token_bytes: 3
replies:
  - match: list
    text: "first %[1]s"
    reasoning: %[2]q
    tool_calls: [{name: list_folder, arguments: {path: "."}}]
  - tool_result: "agentgraph.yaml"
    reasoning: %[2]q
    text: "second %[1]s"
`, strings.TrimSpace(words.String()), thoughts.String())
	c := connect(t, acp.Config{Service: service(t, graph(t, toolGraph("allow")), script)})
	sessions := []string{c.start(announcing)}
	for range 7 {
		sessions = append(sessions, c.session())
	}
	var asked []int
	for _, id := range sessions {
		n, line := c.request("session/prompt", text(id, "list it", ""))
		c.write(line)
		asked = append(asked, n)
	}
	for _, n := range asked {
		if p := readPrompted(t, c.response(n)); p.StopReason != "end_turn" {
			t.Error(p.StopReason)
		}
	}
	all := c.dump()
	for _, id := range sessions {
		list := c.updates(id)
		kinds := map[string]bool{}
		var order []string // runs of one kind
		tokens := 0
		for _, u := range list {
			kind := u.Update.SessionUpdate
			kinds[kind] = true
			if len(order) == 0 || order[len(order)-1] != kind {
				order = append(order, kind)
				tokens = 0
			}
			if u.Meta.Ours.Tokens < tokens {
				t.Errorf("%s: %d tokens after %d", id, u.Meta.Ours.Tokens, tokens)
			}
			tokens = u.Meta.Ours.Tokens
		}
		if got := strings.Join(order, " "); got != "agent_thought_chunk agent_message_chunk tool_call agent_thought_chunk agent_message_chunk" {
			t.Errorf("%s: %s", id, got)
		}
		w := strings.TrimSpace(words.String())
		if got := said(list, "agent_message_chunk"); got != "first "+w+"second "+w {
			t.Errorf("%s: the text is not whole: %d bytes", id, len(got))
		}
		if got := said(list, "agent_thought_chunk"); got != strings.Repeat(thoughts.String(), 2) {
			t.Errorf("%s: the thoughts are not whole: %d bytes", id, len(got))
		}
		last := strings.LastIndex(all, fmt.Sprintf(`"sessionId":%q`, id))
		if response := strings.LastIndex(all, fmt.Sprintf(`"session_id":%q`, id)); response < last {
			t.Errorf("%s: an update came after the response", id)
		}
	}
}

// A client that does not read holds up no model, and what waits for it is put
// together.
func TestSlowClient(t *testing.T) {
	const script = `
constraints: none
token_bytes: 1
default: {text: "%s"}
`
	long := strings.Repeat("0123456789", 2000)
	svc := service(t, "", fmt.Sprintf(script, long))
	c := connect(t, acp.Config{Service: svc})
	id := c.start(announcing)
	n, line := c.request("session/prompt", text(id, "go", ""))
	c.mu.Lock() // the client reads one line more and then waits
	if _, err := c.in.Write([]byte(line + "\n")); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if past, err := svc.Exchanges(id, 0); err != nil || time.Now().After(deadline) {
			t.Fatalf("the turn does not end: %v", err)
		} else if len(past) > 0 {
			break
		}
	}
	c.mu.Unlock()
	if p := readPrompted(t, c.response(n)); p.StopReason != "end_turn" {
		t.Errorf("%s", p.StopReason)
	}
	list := c.updates(id)
	if got := said(list, "agent_message_chunk"); got != long {
		t.Errorf("%d bytes arrived", len(got))
	}
	if len(list) > 100 {
		t.Errorf("%d updates for a client that did not read", len(list))
	}
}
