package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// pipe is a client that writes lines.
type pipe struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan reply
	ended chan error
}

type reply struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
	raw string
}

func overStdio(t *testing.T, s *Server) *pipe {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipe{t: t, in: inW, lines: make(chan reply, 1000), ended: make(chan error, 1)}
	ctx := within(t)
	go func() {
		p.ended <- s.ServeStdio(ctx, inR, outW)
		outW.Close()
	}()
	go func() {
		defer close(p.lines)
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			re := reply{raw: strings.TrimSpace(line)}
			if err := json.Unmarshal([]byte(line), &re); err != nil {
				t.Errorf("not JSON: %q", line)
			}
			p.lines <- re
		}
	}()
	t.Cleanup(func() { inW.Close() })
	return p
}

func (p *pipe) write(lines ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n"); err != nil {
		p.t.Error(err)
	}
}

// next is the next line that is no notification.
func (p *pipe) next() reply {
	p.t.Helper()
	for {
		select {
		case r, ok := <-p.lines:
			if !ok {
				p.t.Fatal("the conversation ended")
			}
			if r.Method == "" || r.ID != nil {
				return r
			}
		case <-time.After(time.Minute):
			p.t.Fatal("no answer")
		}
	}
}

func (p *pipe) begin(version string) {
	p.t.Helper()
	p.write(`{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	if r := p.next(); r.Error != nil {
		p.t.Fatal(r.raw)
	}
	p.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// end closes the input and returns how the server ended.
func (p *pipe) end() error {
	p.t.Helper()
	p.in.Close()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(time.Minute):
		p.t.Error("the server does not end")
		return errors.New("it goes on")
	}
}

// Each line that is no message has one answer, and the conversation goes on.
func TestWrongMessages(t *testing.T) {
	s, _ := newServer(t, false)
	p := overStdio(t, s)
	p.write("garbage", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if r := p.next(); string(r.ID) != "null" && r.ID != nil || r.Error.Code != -32700 || !strings.Contains(r.raw, `"id":null`) {
		t.Errorf("%s", r.raw)
	}
	if r := p.next(); string(r.ID) != "1" || r.Error == nil || r.Error.Code != -32600 {
		t.Errorf("before initialize: %s", r.raw)
	}
	p.begin("2025-11-25")
	huge := strings.Repeat("x", maxMessage)
	for _, tt := range []struct {
		name, line, id string
		code           int
		says           string
	}{
		{"no JSON", `{"jsonrpc":"2.0","id":5,"method":`, "", -32700, "no JSON"},
		{"two in a line", `{"jsonrpc":"2.0","id":5,"method":"ping"}{}`, "", -32700, "no JSON"},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"params\":{\"x\":\"\xff\"}}", "", -32700, "UTF-8"},
		{"null", `null`, "", -32600, "object"},
		{"batch", `[{"jsonrpc":"2.0","id":5,"method":"ping"}]`, "", -32600, "array"},
		{"version", `{"id":5,"method":"ping"}`, "5", -32600, "jsonrpc"},
		{"id with a fraction", `{"jsonrpc":"2.0","id":5.5,"method":"ping"}`, "", -32600, "id"},
		{"id that is null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "", -32600, "id"},
		{"no method", `{"jsonrpc":"2.0","id":5}`, "5", -32600, "no method"},
		{"member of another type", `{"jsonrpc":"2.0","id":5,"method":"ping","error":17}`, "5", -32600, "type"},
		{"too long", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"x":"` + huge + `"}}`, "5", -32600, "more than 16777216 bytes"},
		{"unknown method", `{"jsonrpc":"2.0","id":5,"method":"dance"}`, "5", -32601, "dance"},
		{"parameters of another type", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[]}`, "5", -32602, ""},
		{"second initialize", `{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`, "5", -32603, "duplicate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.write(tt.line)
			r := p.next()
			if r.Error == nil || strings.TrimPrefix(string(r.ID), "null") != tt.id || r.Error.Code != tt.code || !strings.Contains(r.Error.Message, tt.says) {
				t.Errorf("%s", r.raw)
			}
		})
	}
	// Nobody waits for an answer to these.
	p.write("", `{"jsonrpc":"2.0","id":77,"result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`, `{"jsonrpc":"2.0","method":"dance"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":17}`, `{"jsonrpc":"2.0","id":"last","method":"ping"}`)
	if r := p.next(); string(r.ID) != `"last"` || r.Error != nil {
		t.Errorf("%s", r.raw)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// An id that is in use is not used twice; once it is answered it is free.
func TestDuplicateIDs(t *testing.T) {
	s, _ := newServer(t, false)
	p := overStdio(t, s)
	p.begin("2025-11-25")
	p.write(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"respond","arguments":{"prompt":"forever"}}}`, `{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	if r := p.next(); r.Error == nil || r.Error.Code != -32600 || !strings.Contains(r.raw, `"id":null`) {
		t.Errorf("%s", r.raw)
	}
	p.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if r := p.next(); string(r.ID) != "7" {
		t.Errorf("%s", r.raw)
	}
	p.write(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	if r := p.next(); string(r.ID) != "7" || r.Error != nil {
		t.Errorf("%s", r.raw)
	}
}

// In the one version that has them, each message of an array is answered.
func TestBatch(t *testing.T) {
	s, _ := newServer(t, false)
	p := overStdio(t, s)
	p.begin(batchVersion)
	p.write(`[{"jsonrpc":"2.0","id":1,"method":"ping"},17,{"jsonrpc":"2.0","method":"dance"},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"dance"}]`)
	got := map[string]bool{}
	for range 4 {
		r := p.next()
		code := 0
		if r.Error != nil {
			code = r.Error.Code
		}
		got[fmt.Sprintf("%s %d", r.ID, code)] = true
	}
	if !got["1 0"] || !got["null -32600"] || !got["2 0"] {
		t.Errorf("%v", got)
	}
}

// The end of the input ends what runs, wherever it comes.
func TestInputEnds(t *testing.T) {
	for name, last := range map[string]string{"in a call": "", "in a message": `{"jsonrpc":"2.0","id":8,"meth`, "behind a message without its end": `{"jsonrpc":"2.0","id":8,"method":"ping"}`} {
		t.Run(name, func(t *testing.T) {
			s, svc := newServer(t, false)
			p := overStdio(t, s)
			p.begin("2025-11-25")
			p.write(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"respond","arguments":{"prompt":"forever","thread":"t"},"_meta":{"progressToken":1}}}`)
			for r := range p.lines { // it runs
				if r.Method == "notifications/progress" {
					break
				}
			}
			go func() {
				for range p.lines { // a client that reads to the end
				}
			}()
			if _, err := io.WriteString(p.in, last); err != nil {
				t.Fatal(err)
			}
			if err := p.end(); err != nil {
				t.Errorf("ended with %v", err)
			}
			// The model is free and the thread as it was.
			ctx, cancel := context.WithTimeout(within(t), 30*time.Second)
			defer cancel()
			c := connect(t, s)
			if r := c.call(ctx, "respond", `{"prompt":"hello","thread":"t"}`); r.failed {
				t.Error(r.text)
			}
			if list, err := svc.Exchanges("t", 0); err != nil || len(list) != 1 {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

// What was asked before the end of the input is answered.
func TestLastAnswers(t *testing.T) {
	s, _ := newServer(t, false)
	for range 20 {
		p := overStdio(t, s)
		p.begin("2025-11-25")
		p.write(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"respond","arguments":{"prompt":"hello"}}}`)
		if err := p.end(); err != nil {
			t.Error(err)
		}
		got := map[string]bool{}
		for r := range p.lines {
			got[string(r.ID)] = r.Error == nil
		}
		if !got["1"] || !got["2"] || !got["3"] {
			t.Fatalf("answered: %v", got)
		}
	}
}
