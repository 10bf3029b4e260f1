package acp_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"agentgraph/agents"
	"agentgraph/model/script"
	"agentgraph/serve"
	"agentgraph/serve/acp"
	"agentgraph/serve/internal/frame/frametest"
)

// Whatever a client sends, the conversation ends with its input, and each line
// of the answers is one message.
func FuzzServe(f *testing.F) {
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"_meta":{"agentgraph/v1":{}}}}}` + "\n"
	f.Add([]byte(hello + `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}` + "\n"))
	f.Add([]byte(hello + `{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"t","cwd":"/tmp","mcpServers":[]}}` + "\n" +
		`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"t","prompt":[{"type":"text","text":"who?"}]}}` + "\n" +
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"t"}}` + "\n"))
	f.Add([]byte(hello + `{"jsonrpc":"2.0","id":2,"method":"session/list","params":{"cursor":"MTIvdA"}}` + "\n[]\nnull\n{\n\xff\n" + `{"jsonrpc":"2.0","id":3,"method":"session/resume","params":{"sessionId":"t","cwd":"/tmp"}}` + "\n"))
	f.Add([]byte(hello + `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[{"name":"x","command":"","args":[],"env":[]}]}}` + "\n" + `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}`))
	m, err := script.New("answers.yaml", []byte(talker), script.Config{})
	if err != nil {
		f.Fatal(err)
	}
	svc, err := serve.New(serve.Config{Load: agents.LoadOptions{Model: "script:answers.yaml"}, Models: only{m}, StateDir: f.TempDir(), Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { svc.Close() })
	if _, err := svc.Respond(context.Background(), serve.Call{Prompt: "who?", Thread: "t"}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if bytes.Contains(in, []byte("command")) && !bytes.Contains(in, []byte(`"command":""`)) || bytes.Contains(bytes.ToLower(in), []byte(`"url"`)) || bytes.ContainsRune(in, '\\') {
			t.Skip() // no program and no server is to be made up
		}
		frametest.Ends(t, in, patience, func(in io.Reader, out io.Writer) error {
			return acp.Serve(context.Background(), acp.Config{Service: svc}, in, out)
		})
	})
}
