package tools_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentgraph/tools"
)

// rawTools are what a server lists, byte for byte. Their members stand in an
// order of their own; b and c are no tools that a call can carry.
const rawTools = `[
 {"name":"a","description":"d","inputSchema":{"type":"object", "properties":{"zeta":{"type":"integer"},"alpha":{"type":"string"},"mid":{"const":1.50}},"required":["zeta"]}},
 {"name":"b c","inputSchema":{"type":"object"}},
 {"name":"c","inputSchema":{"type":"string"}},
 {"name":"none","inputSchema":{ }}]`

const rawOrder = `{"type":"object","properties":{"zeta":{"type":"integer"},"alpha":{"type":"string"},"mid":{"const":1.50}},"required":["zeta"]}`

// rawReply answers one message as a server that is written without a library;
// "" is no answer.
func rawReply(msg []byte) string {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ProtocolVersion string
			Name            string
		}
	}
	if json.Unmarshal(msg, &m) != nil || len(m.ID) == 0 {
		return ""
	}
	answer := func(result string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result) }
	switch m.Method {
	case "initialize":
		return answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
	case "tools/list":
		return answer(`{"tools":` + strings.ReplaceAll(rawTools, "\n", "") + `}`)
	case "tools/call":
		return answer(`{"content":[{"type":"text","text":"done"}]}`)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
}

// rawStdio is what this test binary is when it is started as such a server.
const rawStdio = "-mcp-raw-server"

func serveRawStdio() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if s := rawReply(in.Bytes()); s != "" {
			fmt.Println(s)
		}
	}
}

// rawHTTP answers as JSON or as a stream of events; huge calls get a reply that
// does not end.
func rawHTTP(t *testing.T, events bool, huge *atomic.Bool) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete && huge != nil {
			<-r.Context().Done() // a server that never says goodbye
			return
		}
		msg, _ := io.ReadAll(r.Body)
		reply := rawReply(msg)
		w.Header().Set("Mcp-Session-Id", "s1")
		if r.Method == http.MethodPost && reply == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		endless := r.Method == http.MethodGet || huge != nil && huge.Load() && strings.Contains(string(msg), "tools/call")
		if !events {
			w.Header().Set("Content-Type", "application/json")
			if endless {
				fmt.Fprint(w, `{"jsonrpc":"2.0","id":`)
				for err := error(nil); err == nil; {
					_, err = io.WriteString(w, strings.Repeat(" ", 1<<16))
				}
			}
			fmt.Fprint(w, reply)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if endless {
			for i, err := 0, error(nil); err == nil; i++ {
				_, err = fmt.Fprintf(w, "id: %d\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":%q}}\n\n", i, strings.Repeat("x", 1<<16))
			}
		}
		fmt.Fprintf(w, ": hello\n\nevent: message\ndata: %s\n\n", reply)
	}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

// Members of a server's schema keep their order, for models write arguments in
// it, and numbers their digits. A tool that no call can carry is told of, and
// takes no other with it.
func TestSchemasOfServersAreKept(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, server := range map[string]*tools.Server{
		"stdio": {Command: []string{exe, rawStdio}},
		"JSON":  {URL: rawHTTP(t, false, nil)},
		"SSE":   {URL: rawHTTP(t, true, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			box := &tools.Box{}
			defer box.Close()
			offers, err := box.Open(t.Context(), []tools.Config{{MCP: server}}, tools.Place{Dir: t.TempDir()})
			if err != nil || len(offers) != 4 {
				t.Fatalf("%v, %v", offers, err)
			}
			if got := string(offers[0].Spec().Parameters); got != rawOrder || offers[0].Unfit != nil {
				t.Errorf("parameters %s, want %s (%v)", got, rawOrder, offers[0].Unfit)
			}
			if got := string(offers[3].Spec().Parameters); got != `{"type":"object","properties":{},"additionalProperties":false}` {
				t.Errorf("no parameters: %s", got)
			}
			for i, want := range map[int]string{1: "the name has characters", 2: "arguments are an object"} {
				if o := offers[i]; o.Unfit == nil || !strings.Contains(o.Unfit.Error(), want) {
					t.Errorf("%s: %v, want %q", o.Name(), o.Unfit, want)
				}
			}
			if r := call(offers[0], `{"zeta":1}`); r.Text != "done" || r.Failed != "" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A reply that does not end is read up to a bound; the tool fails, and the next
// turn connects anew.
func TestEndlessReplies(t *testing.T) {
	for name, events := range map[string]bool{"JSON": false, "SSE": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var huge atomic.Bool
			huge.Store(true)
			c := tools.Config{MCP: &tools.Server{URL: rawHTTP(t, events, &huge)}, Only: []string{"a"}}
			box := &tools.Box{}
			open := func() *tools.Offer {
				offers, err := box.Open(t.Context(), []tools.Config{c}, tools.Place{})
				if err != nil {
					t.Fatal(err)
				}
				return offers[0]
			}
			if r := call(open(), `{"zeta":1}`); r.Failed != "the server's reply is larger than 16 MiB and was dropped" || r.Text != "error: "+r.Failed {
				t.Errorf("%+v", r)
			}
			huge.Store(false)
			if r := call(open(), `{"zeta":1}`); r.Text != "done" {
				t.Errorf("afterwards: %+v", r)
			}
			begin := time.Now()
			if err := box.Close(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !strings.Contains(err.Error(), "deadline") {
				t.Error(err)
			}
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("closing took %v", took)
			}
		})
	}
}

func TestParametersOfPrograms(t *testing.T) {
	dir := t.TempDir()
	for i, tt := range []struct{ parameters, want string }{
		{`{ }`, `{"type":"object","properties":{},"additionalProperties":false}`},
		{`null`, `{"type":"object","properties":{},"additionalProperties":false}`},
		{`{"properties": {"z": {}, "a": {}}}`, `{"type":"object","properties":{"z":{},"a":{}}}`},
		{`{ "type" : "object", "required": ["z"] }`, `{"type":"object","required":["z"]}`},
	} {
		path := fmt.Sprintf("%s/t%d", dir, i)
		src := "#!/bin/sh\n[ \"$1\" = --describe ] && echo '{\"name\":\"t\",\"parameters\":" + tt.parameters + "}'\n"
		if err := os.WriteFile(path, []byte(src), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := string(open(t, tools.Config{Command: []string{path}}, tools.Place{Dir: dir}).Spec().Parameters); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.parameters, got, tt.want)
		}
	}
}
