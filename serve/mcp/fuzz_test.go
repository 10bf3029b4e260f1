package mcp

import (
	"context"
	"io"
	"testing"
	"time"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/model/script"
	"agentgraph/serve"
	"agentgraph/serve/internal/frame/frametest"
)

type oneModel struct{ m model.Model }

func (o oneModel) Model(context.Context, string) (model.Model, error) { return o.m, nil }

// Whatever a client sends, the conversation ends with its input, and each line
// of the answers is one message.
func FuzzServeStdio(f *testing.F) {
	const begin = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	for _, s := range []string{
		begin + `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		begin + `{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"respond","arguments":{"prompt":"x","thread":"t"}}}`,
		begin + `[{"jsonrpc":"2.0","id":1,"method":"ping"},17]` + "\n{\n\xff\nnull\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},"name":"respond","arguments":{"prompt":"x"},"requestState":"x"}}`,
	} {
		f.Add([]byte(s))
	}
	m, err := script.New("answers.yaml", []byte("constraints: none\ndefault: {text: hello}\n"), script.Config{})
	if err != nil {
		f.Fatal(err)
	}
	svc, err := serve.New(serve.Config{Load: agents.LoadOptions{Model: "script:answers.yaml"}, Models: oneModel{m}, StateDir: f.TempDir(), Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { svc.Close() })
	f.Fuzz(func(t *testing.T, in []byte) {
		frametest.Ends(t, in, time.Minute, func(in io.Reader, out io.Writer) error {
			return New(Config{Service: svc, Version: "0"}).ServeStdio(context.Background(), in, out)
		})
	})
}
