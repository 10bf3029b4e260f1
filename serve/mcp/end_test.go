package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server that is told to end does not wait for the calls that are under way.
func TestEndOfCalls(t *testing.T) {
	for _, way := range []string{"stdio", "HTTP"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s, svc := newServer(t, true)
			write(t, svc.Root(), "fake.yaml", "default: {text: never, delay: 10m}\n")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			var at sdk.Transport
			if way == "HTTP" {
				h := HTTP{Token: NewToken()}
				ln, err := h.Listen("127.0.0.1:0")
				must(t, err)
				go func() { done <- s.ServeHTTP(ctx, ln, h) }()
				at = &sdk.StreamableClientTransport{Endpoint: "http://" + ln.Addr().String() + Path,
					HTTPClient: &http.Client{Transport: withToken{h.Token}}, MaxRetries: -1}
			} else {
				fromClient, toServer := io.Pipe()
				fromServer, toClient := io.Pipe()
				go func() { done <- s.ServeStdio(ctx, fromClient, toClient) }()
				at = &sdk.IOTransport{Reader: fromServer, Writer: toServer}
			}
			c := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "0"}, nil)
			session, err := c.Connect(within(t), at, nil)
			must(t, err)
			for _, p := range []*sdk.CallToolParams{
				{Name: "respond", Arguments: map[string]any{"prompt": "hello"}},
				{Name: "send", Arguments: map[string]any{"agent": "greeter", "text": "hello", "wait": true}},
			} {
				go session.CallTool(context.Background(), p)
			}
			// Both have asked the model when both prompts are in the log.
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
				b, _ := os.ReadFile(filepath.Join(svc.Root(), "log", "audit.jsonl"))
				if bytes.Count(b, []byte("\n")) >= 2 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("the calls do not begin: %s", b)
				}
			}
			cancel()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("it waits for its calls")
			}
		})
	}
}
