package acp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"agentgraph/record"
	"agentgraph/serve/acp"
)

// endless writes until it is stopped.
const endless = `
constraints: none
replies:
  - match: slow
    prefer: "word "
    token_delay: 1ms
  - match: stuck
    text: late
    delay: 10m
default: {text: "What?"}
`

func cancel(session string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session)
}

// A turn that is cancelled ends at its next step, wherever it is, and says
// nothing after its response.
func TestCancel(t *testing.T) {
	svc := service(t, "", endless)
	for _, prompt := range []string{"slow", "stuck"} {
		t.Run(prompt, func(t *testing.T) {
			c := connect(t, acp.Config{Service: svc})
			id := c.start(announcing)
			n, line := c.request("session/prompt", text(id, prompt, ""))
			c.write(line)
			if prompt == "slow" {
				c.wait("text", func(f frame) bool { return strings.Contains(f.raw, "agent_message_chunk") })
			}
			began := time.Now()
			c.write(cancel(id))
			p := readPrompted(t, c.response(n))
			if took := time.Since(began); took > patience {
				t.Errorf("it took %v", took)
			}
			rec := readRecord(t, p)
			if p.StopReason != "cancelled" || rec.Outcome == nil || rec.Outcome.Status != record.Cancelled {
				t.Errorf("%s: %+v", p.StopReason, rec.Outcome)
			}
			// The session goes on, without what was cancelled.
			rec = readRecord(t, readPrompted(t, c.call("session/prompt", text(id, "and now?", ""))))
			if answer, _ := rec.Answer(); answer != "What?" || len(rec.Request.Messages) != 1 {
				t.Errorf("afterwards: %q of %d messages", answer, len(rec.Request.Messages))
			}
			frames := strings.Split(c.dump(), "\n")
			for i, f := range frames {
				if strings.Contains(f, `"stopReason":"cancelled"`) && i+1 < len(frames) && strings.Contains(frames[i+1], "word") {
					t.Errorf("text after the response: %s", frames[i+1])
				}
			}
		})
	}
}

// A cancel right behind its prompt is never lost, though requests have
// goroutines of their own. It is no cancel for the prompt after it.
func TestCancelFollowsAtOnce(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", endless)})
	for i := range 100 {
		if i == 0 {
			c.start(`{}`)
		}
		id := c.session()
		first, prompt := c.request("session/prompt", text(id, "stuck", ""))
		second, next := c.request("session/prompt", text(id, "and now?", ""))
		c.write(prompt, cancel(id), next)
		if p := readPrompted(t, c.response(first)); p.StopReason != "cancelled" {
			t.Fatalf("%d: %s", i, p.StopReason)
		}
		if p := readPrompted(t, c.response(second)); p.StopReason != "end_turn" {
			t.Fatalf("%d: the next prompt: %s", i, p.StopReason)
		}
	}
}

// A prompt that waits for another of its session can be cancelled too, and
// other sessions are not.
func TestCancelIsForOneSession(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", endless)})
	one, other := c.start(`{}`), c.session()
	var ids []int
	for _, s := range []string{one, one, other} {
		n, line := c.request("session/prompt", text(s, "stuck", ""))
		ids = append(ids, n)
		c.write(line)
	}
	c.write(cancel(one))
	for _, n := range ids[:2] {
		if p := readPrompted(t, c.response(n)); p.StopReason != "cancelled" {
			t.Errorf("%d: %s", n, p.StopReason)
		}
	}
	if strings.Contains(c.dump(), fmt.Sprintf(`"id":%d,`, ids[2])) {
		t.Errorf("the other session ended too:\n%s", c.dump())
	}
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}`, ids[2]))
	if p := readPrompted(t, c.response(ids[2])); p.StopReason != "cancelled" {
		t.Errorf("the request that was cancelled by its id: %s", p.StopReason)
	}
}

// When the client goes away, or the program is stopped, its turns end.
func TestConnectionEnds(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", endless)})
	id := c.start(`{}`)
	_, line := c.request("session/prompt", text(id, "slow", ""))
	c.write(line)
	c.wait("text", func(f frame) bool { return strings.Contains(f.raw, "agent_message_chunk") })
	if err := c.end(); err != nil {
		t.Errorf("ended with %v", err)
	}

	// Also when the client does not read any more.
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	in, client := io.Pipe()
	defer client.Close()
	unread, out := io.Pipe()
	defer unread.Close()
	svc := service(t, "", endless)
	go func() { ended <- acp.Serve(ctx, acp.Config{Service: svc}, in, out) }()
	lines := bufio.NewReader(unread)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`,
		`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":` + text("SESSION", "slow", "") + `}`,
	} {
		if _, err := io.WriteString(client, strings.Replace(line, "SESSION", id, 1)+"\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := lines.ReadString('\n') // the response, then the first text
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, ok := strings.Cut(answer, `"sessionId":"`); ok {
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	stop()
	select {
	case err := <-ended:
		if err != context.Canceled {
			t.Errorf("stopped with %v", err)
		}
	case <-time.After(patience):
		t.Error("it does not stop")
	}
}
