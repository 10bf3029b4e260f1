package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"agentgraph/agents"
	"agentgraph/model"
	"agentgraph/model/script"
	"agentgraph/serve"
)

type oneModel struct{ m model.Model }

func (o oneModel) Model(context.Context, string) (model.Model, error) { return o.m, nil }

// kept keeps what is written until it is read.
type kept struct {
	mu   sync.Mutex
	b    bytes.Buffer
	over bool
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return len(p), nil // nobody reads it any more
	}
	return k.b.Write(p)
}

func (k *kept) text() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	return k.b.String()
}

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
		var out kept
		ended := make(chan error, 1)
		go func() {
			ended <- New(Config{Service: svc, Version: "0"}).ServeStdio(context.Background(), bytes.NewReader(in), &out)
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("it does not end")
		}
		for _, line := range strings.Split(strings.TrimSpace(out.text()), "\n") {
			if line != "" && !json.Valid([]byte(line)) {
				t.Fatalf("not a message: %q", line)
			}
		}
	})
}
