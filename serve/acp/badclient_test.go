package acp_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"agentgraph/serve/acp"
	"agentgraph/serve/internal/frame/frametest"
)

// Each line that is no message has one answer, and the session goes on.
func TestWrongMessages(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", talker)})
	id := c.start(announcing)
	huge := strings.Repeat("x", 11<<20)
	for _, tt := range []struct {
		name, line, id string
		code           int
		says           string
	}{
		{"no JSON", `{`, "null", -32700, "no JSON"},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":901,\"method\":\"session/list\",\"params\":{\"cursor\":\"\xff\xfe\"}}", "null", -32700, "UTF-8"},
		{"batch", `[{"jsonrpc":"2.0","id":902,"method":"session/list"}]`, "null", -32600, "array"},
		{"null", `null`, "null", -32600, "object"},
		{"number", `17`, "null", -32600, "object"},
		{"id that is none", `{"jsonrpc":"2.0","id":{},"method":"initialize","params":{}}`, "null", -32600, "id"},
		{"prompt with an id that is null", `{"jsonrpc":"2.0","id":null,"method":"session/prompt","params":{}}`, "null", -32600, "id"},
		{"no method", `{"jsonrpc":"2.0","id":903}`, "903", -32600, "no method"},
		{"member of another type", `{"jsonrpc":"2.0","id":904,"method":"session/list","error":17}`, "904", -32600, "type"},
		{"too long", `{"jsonrpc":"2.0","id":905,"method":"session/prompt","params":{"x":"` + huge + `"}}`, "905", -32600, "more than 10485759 bytes"},
		{"too long and nothing", huge, "null", -32600, "more than 10485759 bytes"},
		{"unknown method", `{"jsonrpc":"2.0","id":906,"method":"session/dance"}`, "906", -32601, "session/dance"},
		{"parameters of another type", `{"jsonrpc":"2.0","id":907,"method":"session/prompt","params":[]}`, "907", -32602, ""},
		{"no parameters", `{"jsonrpc":"2.0","id":908,"method":"session/prompt"}`, "908", -32602, ""},
		{"deep", `{"jsonrpc":"2.0","id":909,"method":"session/prompt","params":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "null", -32700, "no JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.mu.Lock()
			before := len(c.got)
			c.mu.Unlock()
			c.write(tt.line)
			n := 0
			f := c.wait("an answer", func(f frame) bool { n++; return n > before })
			if f.Error == nil || string(f.ID) != tt.id && tt.id != "null" || f.Error.Code != tt.code || !strings.Contains(f.Error.Message+string(f.Error.Data), tt.says) {
				t.Errorf("%s", f.raw)
			}
			if tt.id == "null" && !strings.Contains(f.raw, `"id":null`) {
				t.Errorf("whose answer is %s", f.raw)
			}
		})
	}
	// Nobody waits for an answer to these.
	c.write(``, `{"jsonrpc":"2.0","method":"session/prompt","params":{}}`, `{"jsonrpc":"2.0","method":"session/cancel"}`, `{"jsonrpc":"2.0","method":"session/cancel","params":17}`,
		`{"jsonrpc":"2.0","id":910,"result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`, `{"jsonrpc":"2.0","method":"$/cancel_request","params":17}`)
	c.write(strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","method":"whatever"}`+"\n", 5000), "\n"))
	c.mu.Lock()
	before := len(c.got)
	c.mu.Unlock()
	if p := readPrompted(t, c.call("session/prompt", text(id, "who?", ""))); p.StopReason != "end_turn" {
		t.Errorf("%+v", p)
	}
	for _, f := range c.got[before:] {
		if f.Error != nil {
			t.Errorf("answered with %s", f.raw)
		}
	}
}

// Nothing is done before initialize; what follows it in the same breath is.
func TestBeforeInitialize(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", talker)})
	for _, method := range []string{"session/new", "session/list", "session/prompt", "whatever"} {
		if f := c.call(method, `{"cwd":"/tmp","mcpServers":[]}`); f.Error == nil || f.Error.Code != -32600 || !strings.Contains(f.Error.Message, "initialize") {
			t.Errorf("%s: %s", method, f.raw)
		}
	}
	if f := c.call("initialize", `{"protocolVersion":"one"}`); f.Error == nil || f.Error.Code != -32602 {
		t.Errorf("%s", f.raw)
	}
	c.write(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`)
	for range 20 {
		_, first := c.request("initialize", `{"protocolVersion":1,"clientCapabilities":`+announcing+`}`)
		n, second := c.request("session/new", `{"cwd":"/tmp","mcpServers":[]}`)
		c.write(first, second)
		if f := c.response(n); f.Error != nil {
			t.Fatal(f.raw)
		}
	}
}

// An id that is in use is not used twice; once it is answered it is free.
func TestDuplicateIDs(t *testing.T) {
	c := connect(t, acp.Config{Service: service(t, "", endless)})
	id := c.start(`{}`)
	n, line := c.request("session/prompt", text(id, "slow", ""))
	c.write(line)
	c.wait("text", func(f frame) bool { return strings.Contains(f.raw, "agent_message_chunk") })
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/list"}`, n))
	f := c.wait("the refusal", func(f frame) bool { return f.Error != nil })
	if f.Error.Code != -32600 || !strings.Contains(f.raw, `"id":null`) || !strings.Contains(f.Error.Message, "id") {
		t.Errorf("%s", f.raw)
	}
	c.write(cancel(id))
	if p := readPrompted(t, c.response(n)); p.StopReason != "cancelled" {
		t.Errorf("%+v", p)
	}
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/list"}`, n))
	c.wait("the list", func(f frame) bool { return string(f.ID) == fmt.Sprint(n) && strings.Contains(f.raw, "sessions") })
}

// The end of the input ends what runs, wherever it comes.
func TestInputEnds(t *testing.T) {
	for name, last := range map[string]string{"in a prompt": "", "in a message": `{"jsonrpc":"2.0","id":900,"meth`, "behind a message without its end": `{"jsonrpc":"2.0","id":900,"method":"session/list"}`} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, acp.Config{Service: service(t, graph(t, toolGraph("ask")), lister)})
			id := c.start(`{}`)
			_, line := c.request("session/prompt", text(id, "list it", ""))
			c.write(line)
			c.wait("the question", func(f frame) bool { return f.Method == "session/request_permission" })
			if _, err := io.WriteString(c.in, last); err != nil {
				t.Fatal(err)
			}
			if err := c.end(); err != nil {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// What was asked before the end of the input is answered.
func TestLastAnswers(t *testing.T) {
	svc := service(t, "", talker)
	for range 20 {
		in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}
{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}
{"jsonrpc":"2.0","id":3,"method":"session/list"}
what?`)
		var out frametest.Output
		if err := acp.Serve(t.Context(), acp.Config{Service: svc}, in, &out); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"1", "2", "3", "null"} {
			if all := out.Text(); !strings.Contains(all, `"id":`+id+`,`) {
				t.Fatalf("%s is not answered: %s", id, all)
			}
		}
	}
}
