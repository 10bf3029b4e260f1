package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"agentgraph/internal/clienttest"
)

// fakeServer is the program "fakeserver PORT FILE": a server of the OpenAI API
// that answers with its own process id, which it also writes into FILE once it
// listens, and ends when it is told to die.
func fakeServer() {
	port, file := os.Args[1], os.Args[2]
	pid := fmt.Sprint(os.Getpid())
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, pid)
		err = f.Close()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Stream   bool              `json:"stream"`
			Messages []json.RawMessage `json:"messages"`
		}
		if json.NewDecoder(r.Body).Decode(&req) != nil || len(req.Messages) == 0 {
			http.Error(w, "no request", http.StatusBadRequest)
			return
		}
		if strings.Contains(string(req.Messages[len(req.Messages)-1]), "die") {
			fmt.Println("told to die")
			os.Exit(3)
		}
		const usage = `"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`
		if !req.Stream {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"served by %s"},"finish_reason":"stop"}],%s}`, pid, usage)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"served by %s\"},\"finish_reason\":null}]}\n\n", pid)
		fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],%s}\n\ndata: [DONE]\n\n", usage)
	})
	fmt.Println(http.Serve(l, mux))
	os.Exit(1)
}

// freePort NAME sets a variable to a port that nobody listens on.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport NAME")
	}
	port, err := clienttest.FreePort()
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(port))
}
