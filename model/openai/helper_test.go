package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// fake is a server that answers as it is told and keeps what it was asked.
type fake struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []asked
	answer func(w http.ResponseWriter, r *http.Request, body []byte)
}

type asked struct {
	path, auth string
	header     http.Header
	body       []byte
}

// newFake answers requests for completions with answer; what else is asked is
// not found.
func newFake(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body []byte)) *fake {
	t.Helper()
	f := &fake{answer: answer}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.asked = append(f.asked, asked{r.URL.Path, r.Header.Get("Authorization"), r.Header.Clone(), body})
	f.mu.Unlock()
	if r.Method == http.MethodGet {
		http.NotFound(w, r)
		return
	}
	f.answer(w, r, body)
}

// completions are the bodies of the requests for completions.
func (f *fake) completions() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out [][]byte
	for _, a := range f.asked {
		if strings.HasSuffix(a.path, "/chat/completions") || strings.HasSuffix(a.path, "/api/chat") {
			out = append(out, a.body)
		}
	}
	return out
}

// says is an answer of a server that streams.
func says(text string) func(http.ResponseWriter, *http.Request, []byte) {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) { stream(w, chunk(text), stop, "[DONE]") }
}

const stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`

func chunk(text string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`, quote(text))
}

func stream(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		fmt.Fprintf(w, "data: %s\n\n", e)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
}

// noWait never sleeps and keeps what it was asked to wait.
type noWait struct {
	mu    sync.Mutex
	waits []time.Duration
}

func (n *noWait) sleep(ctx context.Context, d time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waits = append(n.waits, d)
	return ctx.Err()
}

// open is a model of the fake, by default one that declares JSON and regex.
func (f *fake) open(t *testing.T, change ...func(*Config)) *Model {
	t.Helper()
	cfg := Config{
		Dialect: "vllm", URL: f.URL + "/v1", Model: "some/model", Declared: []constraint.Kind{constraint.JSON, constraint.Regex, constraint.Lark, constraint.LLG},
		Sleep: (&noWait{}).sleep, Timeout: time.Minute,
	}
	for _, c := range change {
		c(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func dialectOf(name string) func(*Config) { return func(c *Config) { c.Dialect = name } }

// undeclared leaves everything to probes.
func undeclared(c *Config) { c.Declared = nil }

// compile skips the test where a kind needs the native library and it is not
// there.
func compile(t *testing.T, kind constraint.Kind, source string, enforce constraint.Enforce) *constraint.Constraint {
	t.Helper()
	c, err := constraint.Compile(constraint.Spec{Kind: kind, Source: []byte(source), File: "s"}, constraint.Options{Enforce: enforce})
	if errors.Is(err, constraint.ErrNotBuilt) {
		t.Skip("this kind needs the native library")
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func question(con *constraint.Constraint) *model.Request {
	return &model.Request{
		Messages:   []model.Message{{Role: model.User, Content: "Is water wet?"}},
		Constraint: con, Sampling: model.Sampling{MaxTokens: 64},
	}
}

func modelError(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is %v (%T), not a *model.Error", err, err)
	}
	return e
}

func mustJSON(t *testing.T, b []byte) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return m
}
