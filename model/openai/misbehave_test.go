package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// A server may do anything. What comes back is a whole answer or an error that
// says what was wrong, never half an answer that looks whole.
func TestMisbehavingServers(t *testing.T) {
	long := strings.Repeat("x", 10<<20)
	type handler = func(w http.ResponseWriter, r *http.Request, body []byte)
	send := func(text string) handler {
		return func(w http.ResponseWriter, _ *http.Request, _ []byte) { fmt.Fprint(w, text) }
	}
	sse := func(events ...string) handler {
		return func(w http.ResponseWriter, _ *http.Request, _ []byte) { stream(w, events...) }
	}
	for _, tc := range []struct {
		name    string
		answer  handler
		text    string // of a whole answer
		finish  model.FinishReason
		err     string
		kind    model.ErrorKind
		partial string
	}{
		{"streams", sse(chunk("Ye"), chunk("s"), stop, "[DONE]"), "Yes", model.Stop, "", "", ""},
		{"does not stream", send(`{"choices":[{"index":0,"message":{"content":"Yes"},"finish_reason":"stop"}]}`), "Yes", model.Stop, "", "", ""},
		{"streams without [DONE]", sse(chunk("Yes"), stop), "Yes", model.Stop, "", "", ""},
		{"ends without the last blank line", send("data: " + chunk("Yes") + "\n\ndata: " + stop), "Yes", model.Stop, "", "", ""},
		{"begins with blank lines", send("\n\n  " + `{"choices":[{"message":{"content":"Yes"},"finish_reason":"stop"}]}`), "Yes", model.Stop, "", "", ""},
		{"truncates", sse(chunk("Ye"), `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`, "[DONE]"), "Ye", model.Length, "", "", ""},
		{"closes early", sse(chunk("Ye")), "", "", "closed the connection before the answer was whole", model.Failed, "Ye"},
		{"says [DONE] early", sse(chunk("Ye"), "[DONE]"), "", "", "before the answer was whole", model.Failed, "Ye"},
		{"closes at once", send(""), "", "", "before the answer was whole", model.Failed, ""},
		{"breaks the connection", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Content-Length", "10000")
			stream(w, chunk("Ye"))
			panic(http.ErrAbortHandler)
		}, "", "", "before the answer was whole", model.Failed, "Ye"},
		{"200 with an error body", send(`{"error":{"message":"CUDA out of memory","type":"internal"}}`), "", "", "reported an error: CUDA out of memory", model.Failed, ""},
		{"200 with an error without an envelope", send(`{"object":"error","message":"no such engine","code":500}`), "", "", "no such engine", model.Failed, ""},
		{"200 with an error as text", send(`{"error":"model is loading"}`), "", "", "model is loading", model.Failed, ""},
		{"an error in the stream", sse(chunk("Ye"), `{"error":{"message":"worker died"}}`), "", "", "worker died", model.Failed, "Ye"},
		{"200 with a web page", send("<html><body>Welcome</body></html>"), "", "", "is no completion", model.Failed, ""},
		{"a stream of no JSON", sse("hello"), "", "", "is no completion", model.Failed, ""},
		{"content that is no text", send(`{"choices":[{"message":{"content":7},"finish_reason":"stop"}]}`), "", "", "neither text nor a list", model.Failed, ""},
		{"content in parts", send(`{"choices":[{"message":{"content":[{"type":"text","text":"Yes"}]},"finish_reason":"stop"}]}`), "Yes", model.Stop, "", "", ""},
		{"half a character, then the rest", sse("{\"choices\":[{\"delta\":{\"content\":\"\xf0\x9f\"}}]}", "{\"choices\":[{\"delta\":{\"content\":\"\x98\x80\"}}]}", stop), "😀", model.Stop, "", "", ""},
		{"half a character", sse("{\"choices\":[{\"delta\":{\"content\":\"ab\xf0\x9f\"}}]}", stop), "", "", "no UTF-8", model.Failed, "ab\xf0\x9f"},
		{"half a surrogate pair", sse(`{"choices":[{"delta":{"content":"ab\ud83d"}}]}`, stop), "", "", "no UTF-8", model.Failed, "ab\xed\xa0\xbd"},
		{"a line of ten megabytes", sse(chunk(long), stop), long, model.Stop, "", "", ""},
		{"a reply without end", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			stream(w, chunk("x"))
			for line := ": " + strings.Repeat("x", 1<<20) + "\n"; ; {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		}, "", "", "longer than 64 MiB", model.Failed, "x"},
		{"a line without end", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			fmt.Fprint(w, "data: ")
			for range 40 {
				fmt.Fprint(w, strings.Repeat("x", 1<<20))
			}
		}, "", "", "one line of the reply is longer", model.Failed, ""},
		{"two choices", send(`{"choices":[{"index":1,"message":{"content":"No"},"finish_reason":"stop"},{"index":0,"message":{"content":"Yes"},"finish_reason":"stop"}]}`), "Yes", model.Stop, "", "", ""},
		{"two choices in turns", sse(chunk("Ye"), `{"choices":[{"index":1,"delta":{"content":"No"},"finish_reason":"stop"}]}`, chunk("s"), stop), "Yes", model.Stop, "", "", ""},
		{"two choices of one number", send(`{"choices":[{"index":0,"message":{"content":"No"},"finish_reason":"stop"},{"index":0,"message":{"content":"Yes"},"finish_reason":"stop"}]}`), "", "", "answered twice", model.Failed, "No"},
		{"no choice", send(`{"choices":[]}`), "", "", "before the answer was whole", model.Failed, ""},
		{"goes on after the end", sse(chunk("Yes"), stop, chunk(" and no")), "", "", "went on after it had ended", model.Failed, "Yes"},
		{"ends for a reason of its own", sse(chunk("Ye"), `{"choices":[{"delta":{},"finish_reason":"abort"}]}`), "", "", `ended the answer as "abort"`, model.Failed, "Ye"},
		{"refuses", sse(`{"choices":[{"delta":{"refusal":"I can't"}}]}`, stop), "I can't", model.Refusal, "", "", ""},
		{"filters", sse(chunk("Ye"), `{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`), "Ye", model.Refusal, "", "", ""},
		{"calls tools and sends none", sse(`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`), "", "", "sent none", model.Failed, ""},
		{"calls a thousand tools", sse(`{"choices":[{"delta":{"tool_calls":[{"index":1000,"function":{"name":"f"}}]}}]}`, stop), "", "", "more than 256 tools", model.Failed, ""},
		{"overflow in the stream", sse(`{"error":{"message":"This model's maximum context length is 10 tokens"}}`), "", "", "maximum context length", model.ContextOverflow, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, tc.answer)
			m := f.open(t)
			resp, err := m.Generate(context.Background(), question(compile(t, constraint.Regex, "(?s).*", "")))
			if tc.err == "" {
				if err != nil {
					t.Fatal(err)
				}
				if resp.Text != tc.text || resp.Finish != tc.finish || resp.EnforcedBy != constraint.ByServerValidation {
					t.Errorf("got %.60q, %s, %s; want %.60q, %s", resp.Text, resp.Finish, resp.EnforcedBy, tc.text, tc.finish)
				}
				return
			}
			e := modelError(t, err)
			if e.Kind != tc.kind || !strings.Contains(e.Error(), tc.err) {
				t.Errorf("got %s: %v; want %s: %s", e.Kind, e, tc.kind, tc.err)
			}
			partial := ""
			if e.Partial != nil {
				partial = e.Partial.Text
			}
			if partial != tc.partial {
				t.Errorf("the partial answer is %q, want %q", partial, tc.partial)
			}
		})
	}
}

// Progress shows whole characters, and together exactly the answer.
func TestProgressIsWholeCharacters(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		stream(w, `{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, "{\"choices\":[{\"delta\":{\"content\":\"a\xf0\x9f\"}}]}", "{\"choices\":[{\"delta\":{\"content\":\"\x98\x80b\"}}]}", stop)
	})
	var text, thought []string
	req := question(nil)
	req.Progress = func(p model.Progress) {
		text, thought = append(text, p.Text), append(thought, p.Reasoning)
	}
	resp, err := f.open(t).Generate(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(text, "|"); got != "|a|😀b" || strings.Join(thought, "") != "hm" || resp.Text != "a😀b" || resp.Reasoning != "hm" {
		t.Errorf("shown %q and %q; the answer is %q, the reasoning %q", got, thought, resp.Text, resp.Reasoning)
	}
}

// hanging is a server that says nothing after some first words.
func hanging(t *testing.T, first ...string) *fake {
	over := make(chan struct{})
	f := newFake(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		if len(first) > 0 {
			stream(w, first...)
		}
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(over) })
	return f
}

// expiring is a context whose time is over when the test says so.
type expiring struct {
	context.Context
	over chan struct{}
}

func (e *expiring) Done() <-chan struct{} { return e.over }

func (e *expiring) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestHangingServers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first []string
	}{{"before the reply", nil}, {"within the reply", []string{chunk("Ye")}}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			// Time enough for the first words to arrive on a busy machine.
			m := hanging(t, tc.first...).open(t, func(c *Config) { c.Timeout = 3 * time.Second })
			_, err := m.Generate(context.Background(), question(nil))
			e := modelError(t, err)
			if e.Kind != model.TimedOut || e.Delivery != model.MayHaveBeenSent || !strings.Contains(e.Error(), "said nothing for 3s") {
				t.Errorf("got %s, %s: %v", e.Kind, e.Delivery, e)
			}
			if got := e.Partial != nil; got != (tc.first != nil) {
				t.Errorf("a partial answer: %v", got)
			}
		})
	}
	t.Run("before it is asked anything", func(t *testing.T) {
		t.Parallel()
		over := make(chan struct{})
		f := newFake(t, says("Yes"))
		f.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-over:
			case <-r.Context().Done():
			}
		})
		t.Cleanup(func() { close(over) })
		m := f.open(t, undeclared, func(c *Config) { c.Timeout = 50 * time.Millisecond })
		_, err := m.Generate(context.Background(), question(compile(t, constraint.JSON, openObject, "")))
		if e := modelError(t, err); e.Kind != model.Unavailable || !strings.Contains(e.Error(), "did not answer version within 50ms") {
			t.Errorf("got %s, %s: %v", e.Kind, e.Delivery, e)
		}
	})
	t.Run("the caller's time is over", func(t *testing.T) {
		ctx := &expiring{Context: context.Background(), over: make(chan struct{})}
		req := question(nil)
		req.Progress = func(model.Progress) { close(ctx.over) }
		_, err := hanging(t, chunk("Ye")).open(t).Generate(ctx, req)
		if e := modelError(t, err); e.Kind != model.TimedOut || e.Partial == nil || e.Partial.Text != "Ye" {
			t.Errorf("got %s: %v, %+v", e.Kind, e, e.Partial)
		}
	})
	t.Run("the caller cancels", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		req := question(nil)
		req.Progress = func(model.Progress) { cancel() }
		_, err := hanging(t, chunk("Ye")).open(t).Generate(ctx, req)
		if e := modelError(t, err); e.Kind != model.Cancelled || e.Partial == nil {
			t.Errorf("got %s: %v, %+v", e.Kind, e, e.Partial)
		}
	})
	t.Run("the model is closed", func(t *testing.T) {
		m := hanging(t, chunk("Ye")).open(t)
		req := question(nil)
		req.Progress = func(model.Progress) { m.Close() }
		_, err := m.Generate(context.Background(), req)
		if e := modelError(t, err); e.Kind != model.Cancelled || !errors.Is(e, errClosed) {
			t.Errorf("got %s: %v", e.Kind, e)
		}
		if _, err := m.Generate(context.Background(), question(nil)); !errors.Is(err, errClosed) {
			t.Errorf("a closed model says %v", err)
		}
	})
}

// A server that is down fails each call as unavailable with nothing sent, at
// once, whatever is asked.
func TestServerIsDown(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	addr := s.URL
	s.Close()
	for _, con := range []*constraint.Constraint{nil, compile(t, constraint.JSON, `{"type":"object"}`, "")} {
		m, err := Open(context.Background(), Config{Dialect: "vllm", URL: addr, Model: "m", Alias: "big", Sleep: func(context.Context, time.Duration) error {
			t.Error("a server that is down is not waited for")
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if !m.Capabilities().Holds(constraint.JSON) {
			t.Error("what is not known yet is refused before the server could be asked")
		}
		_, err = m.Generate(context.Background(), question(con))
		e := modelError(t, err)
		if e.Kind != model.Unavailable || e.Delivery != model.NotSent || !e.Retry {
			t.Errorf("got %s, %s, again %v: %v", e.Kind, e.Delivery, e.Retry, e)
		}
		if con == nil {
			continue
		}
		if e := modelError(t, m.(model.Admitter).Admit(context.Background(), con)); e.Kind != model.Unavailable {
			t.Errorf("Admit says %s: %v", e.Kind, e)
		}
	}
}

// A server closes a connection that it kept open as the next request arrives.
// That is no fault of the request: it is sent again on a new connection, once.
// A server that closes a new connection too has failed.
func TestKeptConnectionIsClosed(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{} // requests per connection
	closing := false
	f := newFake(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		if _, ok := r.Header["Idempotency-Key"]; ok {
			t.Error("the server is told of a key")
		}
		mu.Lock()
		defer mu.Unlock()
		if seen[r.RemoteAddr]++; seen[r.RemoteAddr] > 1 || closing {
			panic(http.ErrAbortHandler)
		}
		// With a length, so that the connection is free with the last byte.
		io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"Yes"},"finish_reason":"stop"}]}`)
	})
	m := f.open(t)
	for i := range 3 {
		resp, err := m.Generate(context.Background(), question(nil))
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		if resp.Text != "Yes" {
			t.Errorf("call %d: %q", i, resp.Text)
		}
	}
	mu.Lock()
	closing = true
	mu.Unlock()
	_, err := m.Generate(context.Background(), question(nil))
	e := modelError(t, err)
	if e.Kind != model.Unavailable || e.Delivery != model.MayHaveBeenSent || !e.Retry || !strings.Contains(e.Error(), "closed the connection without an answer") || strings.Contains(e.Error(), "cannot be reached") {
		t.Errorf("%s, %s, again %v: %v", e.Kind, e.Delivery, e.Retry, e)
	}
	if got := len(f.completions()); got != 3+2+2 {
		t.Errorf("%d requests were made", got)
	}
}

// The same where the body is under way as the connection closes.
func TestKeptConnectionIsClosedUnderTheBody(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	closed := 0
	f := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		// With a length, so that the connection is free with the last byte.
		io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"Yes"},"finish_reason":"stop"}]}`)
	})
	serve := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.RemoteAddr]++
		late := seen[r.RemoteAddr] > 1
		mu.Unlock()
		if !late {
			serve.ServeHTTP(w, r)
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		closed++
		mu.Unlock()
		// Whoever still writes gets an error.
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	})
	m := f.open(t)
	q := question(nil)
	// More than the buffers of a connection hold.
	q.Messages[len(q.Messages)-1].Content = strings.Repeat("Is it so? ", 1<<20)
	for i := range 3 {
		if resp, err := m.Generate(context.Background(), q); err != nil || resp.Text != "Yes" {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if closed == 0 {
		t.Error("no connection was kept")
	}
}

// Over HTTP/2 a connection outlives a request that fails: nothing is sent twice.
func TestStreamIsReset(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("it is asked over %s", r.Proto)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if asked.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"Yes"},"finish_reason":"stop"}]}`)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	m := (&fake{Server: srv}).open(t, func(c *Config) { c.Client = srv.Client() })
	if _, err := m.Generate(context.Background(), question(nil)); err != nil {
		t.Fatal(err)
	}
	_, err := m.Generate(context.Background(), question(nil))
	if e := modelError(t, err); e.Kind != model.Unavailable {
		t.Errorf("%s: %v", e.Kind, e)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d requests were made", n)
	}
}
