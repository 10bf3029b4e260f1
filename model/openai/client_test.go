package openai

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

func TestRetries(t *testing.T) {
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name     string
		status   int
		header   map[string]string
		body     string
		deadline time.Duration
		calls    int
		kind     model.ErrorKind
		delivery model.Delivery
		retry    bool
		// least and most bound the first wait.
		least, most time.Duration
		err         string
	}{
		{"busy", 429, nil, `{"error":{"message":"slow down"}}`, 0, 3, model.Unavailable, model.NotSent, true, 500 * time.Millisecond, 625 * time.Millisecond, "429 too many requests: slow down"},
		{"loading", 503, nil, `{"error":{"message":"Loading model"}}`, 0, 3, model.Unavailable, model.NotSent, true, 500 * time.Millisecond, 625 * time.Millisecond, "Loading model"},
		{"says when", 429, map[string]string{"Retry-After": "7"}, `{}`, 0, 3, model.Unavailable, model.NotSent, true, 7 * time.Second, 9 * time.Second, "429"},
		{"says when in milliseconds", 429, map[string]string{"Retry-After-Ms": "1500"}, `{}`, 0, 3, model.Unavailable, model.NotSent, true, 1500 * time.Millisecond, 1900 * time.Millisecond, "429"},
		{"says a date", 429, map[string]string{"Retry-After": now.Add(20 * time.Second).Format(http.TimeFormat)}, `{}`, 0, 3, model.Unavailable, model.NotSent, true, 20 * time.Second, 25 * time.Second, "429"},
		{"says too late", 429, map[string]string{"Retry-After": "3600"}, `{}`, 0, 1, model.Unavailable, model.NotSent, true, 0, 0, "429"},
		{"later than the turn", 429, map[string]string{"Retry-After": "30"}, `{}`, 10 * time.Second, 1, model.Unavailable, model.NotSent, true, 0, 0, "429"},
		{"out of quota", 429, nil, `{"error":{"message":"pay","code":"insufficient_quota"}}`, 0, 1, model.Unavailable, model.NotSent, false, 0, 0, "pay"},
		{"broken", 500, nil, `oops`, 0, 3, model.Failed, model.MayHaveBeenSent, true, 500 * time.Millisecond, 625 * time.Millisecond, "500 internal server error: oops"},
		{"behind a gateway", 502, nil, `<html>bad gateway</html>`, 0, 3, model.Unavailable, model.MayHaveBeenSent, true, 500 * time.Millisecond, 625 * time.Millisecond, "answered 502 bad gateway"},
		{"wrong", 400, nil, `{"error":{"message":"no such field; try another"}}`, 0, 1, model.Failed, model.ResponseReceived, false, 0, 0, "no such field, try another"},
		{"wrong in another shape", 422, nil, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, 0, 1, model.Failed, model.ResponseReceived, false, 0, 0, "field required"},
		{"no such model", 404, nil, `{"error":{"message":"no model x"}}`, 0, 1, model.Unavailable, model.ResponseReceived, false, 0, 0, "no model x; see that url: and model: are right"},
		{"too long", 400, nil, `{"error":{"message":"This model's maximum context length is 2048 tokens","code":"context_length_exceeded"}}`, 0, 1, model.ContextOverflow, model.NotSent, false, 0, 0, "2048"},
		{"too long for llama.cpp", 400, nil, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, 0, 1, model.ContextOverflow, model.NotSent, false, 0, 0, "available context size"},
		{"filtered", 400, nil, `{"error":{"message":"filtered","code":"content_filter"}}`, 0, 1, model.Refused, model.ResponseReceived, false, 0, 0, "filtered"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
				for k, v := range tc.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tc.status)
				io.WriteString(w, tc.body)
			})
			var waits noWait
			m := f.open(t, func(c *Config) { c.Sleep, c.Clock = waits.sleep, func() time.Time { return now } })
			ctx := context.Background()
			if tc.deadline > 0 {
				ctx = deadline{ctx, now.Add(tc.deadline)}
			}
			_, err := m.Generate(ctx, question(nil))
			e := modelError(t, err)
			if e.Kind != tc.kind || e.Delivery != tc.delivery || e.Retry != tc.retry || !strings.Contains(e.Error(), tc.err) {
				t.Errorf("got %s, %s, again %v: %v; want %s, %s, again %v: %s", e.Kind, e.Delivery, e.Retry, e, tc.kind, tc.delivery, tc.retry, tc.err)
			}
			if n := len(f.completions()); n != tc.calls {
				t.Errorf("asked %d times, want %d", n, tc.calls)
			}
			if tc.most == 0 {
				return
			}
			if w := waits.waits; len(w) != 2 || w[0] < tc.least || w[0] > tc.most {
				t.Errorf("waited %v, want %v to %v first", w, tc.least, tc.most)
			}
		})
	}
}

// deadline is a context whose end is told and never comes.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

func TestARetryGetsThrough(t *testing.T) {
	var n atomic.Int32
	f := newFake(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if n.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		says("Yes")(w, r, body)
	})
	resp, err := f.open(t).Generate(context.Background(), question(nil))
	if err != nil || resp.Text != "Yes" {
		t.Fatal(resp, err)
	}
	bodies := f.completions()
	if len(bodies) != 3 || string(bodies[0]) != string(bodies[2]) || len(bodies[2]) == 0 {
		t.Errorf("the third request is %q after %q", bodies[2], bodies[0])
	}
}

const key = "sk-test-0123456789abcdef"

// The key goes to the server as a bearer token and is nowhere else: not in
// what errors say, however the server quotes it, and not in what prints.
func TestKeyStaysSecret(t *testing.T) {
	withKey := func(c *Config) { c.Key = NewSecret(key) }
	answers := map[string]func(w http.ResponseWriter, r *http.Request, _ []byte){
		"wrong key":    func(w http.ResponseWriter, _ *http.Request, _ []byte) { quoteKey(w, 401) },
		"bad request":  func(w http.ResponseWriter, _ *http.Request, _ []byte) { quoteKey(w, 400) },
		"server error": func(w http.ResponseWriter, _ *http.Request, _ []byte) { quoteKey(w, 500) },
		"200":          func(w http.ResponseWriter, _ *http.Request, _ []byte) { quoteKey(w, 200) },
		"in a stream": func(w http.ResponseWriter, r *http.Request, _ []byte) {
			stream(w, fmt.Sprintf(`{"error":{"message":"not %s"}}`, r.Header.Get("Authorization")))
		},
		"as a reason": func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			stream(w, `{"choices":[{"delta":{},"finish_reason":"`+key+`"}]}`)
		},
		"as bad JSON": func(w http.ResponseWriter, _ *http.Request, _ []byte) { stream(w, `{"choices":`+key) },
		"redirect": func(w http.ResponseWriter, r *http.Request, _ []byte) {
			http.Redirect(w, r, "http://"+key+".example/", http.StatusTemporaryRedirect)
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, answer)
			m := f.open(t, withKey)
			_, err := m.Generate(context.Background(), question(nil))
			if err == nil {
				t.Fatal("no error")
			}
			record, _ := json.Marshal(map[string]any{"error": err.Error(), "identity": m.Identity(), "capabilities": m.Capabilities()})
			if text := string(record); strings.Contains(text, key) {
				t.Errorf("the key is in %s", text)
			}
			if got := f.asked[0].auth; got != "Bearer "+key {
				t.Errorf("the server got %q", got)
			}
		})
	}

	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("opened", "key", NewSecret(key), "config", Config{Key: NewSecret(key)})
	asJSON, err := json.Marshal(Config{Key: NewSecret(key), URL: "x"})
	printed := fmt.Sprint(err) + log.String() + string(asJSON)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		printed += fmt.Sprintf(verb, NewSecret(key)) + fmt.Sprintf(verb, Config{Key: NewSecret(key)}) + fmt.Sprintf(verb, &Config{Key: NewSecret(key)})
	}
	if strings.Contains(printed, key) || strings.Contains(printed, fmt.Sprintf("%x", key)) {
		t.Errorf("the key prints: %s", printed)
	}
	if !strings.Contains(printed, hidden) || NewSecret("").String() != "" {
		t.Error("whether there is a key cannot be told")
	}
}

func quoteKey(w http.ResponseWriter, status int) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","code":"%s"}}`, key, key)
}

// A redirect to another host gets neither the key nor the prompt; one on the
// same host is followed.
func TestRedirects(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, tc := range []struct {
		name, to string
		status   int
		err      string
	}{
		{"to another host", other.URL + "/v1/chat/completions", 307, "redirects to " + other.URL},
		{"to another host as a GET", other.URL + "/", 302, "redirects to " + other.URL},
		{"in a circle", "/v1/chat/completions", 307, "circle"},
		{"on the same host", "/elsewhere", 308, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
				if r.URL.Path == "/elsewhere" {
					says("Yes")(w, r, body)
					return
				}
				http.Redirect(w, r, tc.to, tc.status)
			})
			m := f.open(t, func(c *Config) { c.Key = NewSecret(key) })
			resp, err := m.Generate(context.Background(), question(nil))
			if tc.err == "" {
				if err != nil || resp.Text != "Yes" {
					t.Fatal(resp, err)
				}
				return
			}
			if e := modelError(t, err); !strings.Contains(e.Error(), tc.err) {
				t.Errorf("got %v, want %q", e, tc.err)
			}
		})
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("the other host was asked %d times", n)
	}
}

// The key of the environment belongs to OpenAI's own programs; no server of
// the settings gets it, and no address of the environment is asked.
func TestEnvironmentOfTheSDKIsNotUsed(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/")
	t.Setenv("OPENAI_ORG_ID", "org-of-mine")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Mine: yes")
	f := newFake(t, says("Yes"))
	if _, err := f.open(t).Generate(context.Background(), question(nil)); err != nil {
		t.Fatal(err)
	}
	got := f.asked[0]
	if got.auth != "" || got.header.Get("OpenAI-Organization") != "" || got.header.Get("X-Mine") != "" {
		t.Errorf("the server got %v", got.header)
	}
	for name := range got.header {
		if strings.HasPrefix(name, "X-Stainless") {
			t.Errorf("the server is told %s: %s", name, got.header.Get(name))
		}
	}
}

// What an address holds besides its host and path goes to the server and into
// no record.
func TestAddress(t *testing.T) {
	f := newFake(t, says("Yes"))
	addr := strings.Replace(f.URL, "http://", "http://me:hidden-word@", 1) + "/deep/v1?api-version=7&code=hidden-too"
	m := f.open(t, func(c *Config) { c.URL = addr })
	if got, want := m.Identity().Server, f.URL+"/deep/v1"; got != want {
		t.Errorf("the identity is %s, want %s", got, want)
	}
	if _, err := m.Generate(context.Background(), question(nil)); err != nil {
		t.Fatal(err)
	}
	if got := f.asked[0]; got.path != "/deep/v1/chat/completions" || !strings.HasPrefix(got.auth, "Basic ") {
		t.Errorf("asked %s with %q", got.path, got.auth)
	}
	f.Close()
	_, err := m.Generate(context.Background(), question(nil))
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("the error is %v", err)
	}
	for _, tc := range []struct{ dialect, url, api string }{
		{"vllm", "http://h:1", "http://h:1/v1/"}, {"vllm", "http://h:1/", "http://h:1/v1/"}, {"vllm", "http://h:1/x", "http://h:1/x/"},
		{"ollama", "http://h:1", "http://h:1/"}, {"ollama", "http://h:1/v1", "http://h:1/"}, {"ollama", "http://h:1/x/v1/", "http://h:1/x/"},
	} {
		u, err := CheckURL(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		if api, _ := bases(u, dialects[tc.dialect]); api.String() != tc.api {
			t.Errorf("%s at %s is asked at %s, want %s", tc.dialect, tc.url, api, tc.api)
		}
	}
	for _, bad := range []string{"", "h:1", "ftp://h", "http://", "http://h:%zz", "unix:///x"} {
		if _, err := CheckURL(bad); err == nil || strings.Contains(err.Error(), "%zz") {
			t.Errorf("CheckURL(%q) says %v", bad, err)
		}
	}
}

// A server that quotes what it was sent leaks no part of the address that is a
// secret: a password, or a name that stands alone.
func TestAddressQuoted(t *testing.T) {
	for user, words := range map[string]string{
		"tok-4711":          "token tok-4711 (Basic dG9rLTQ3MTE6) is unknown",
		"tok-4711:":         "token tok-4711 (Basic dG9rLTQ3MTE6) is unknown",
		"tok%2F4711":        "token tok/4711 is unknown, in the address tok%2F4711",
		"somebody:tok-4711": "somebody:tok-4711 (Basic c29tZWJvZHk6dG9rLTQ3MTE=) is unknown",
	} {
		f := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":%q}}`, words)
		})
		m := f.open(t, func(c *Config) { c.URL = strings.Replace(f.URL, "http://", "http://"+user+"@", 1) })
		_, err := m.Generate(context.Background(), question(nil))
		if err == nil || !strings.Contains(err.Error(), "is unknown") || strings.Contains(err.Error(), "4711") ||
			strings.Contains(err.Error(), "dG9rLTQ3MTE") || !strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: the error is %v", user, err)
		}
		if strings.Contains(user, "somebody") && !strings.Contains(err.Error(), "somebody") {
			t.Errorf("a name beside a password is none: %v", err)
		}
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { says("Yes")(w, r, nil) }))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if _, err := x509.ParseCertificate(s.Certificate().Raw); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(path string) (*model.Response, error) {
		m, err := Open(context.Background(), Config{Dialect: "vllm", URL: s.URL, Model: "m", TLSCA: path})
		if err != nil {
			return nil, err
		}
		defer m.Close()
		return m.Generate(context.Background(), question(nil))
	}
	if resp, err := ask(ca); err != nil || resp.Text != "Yes" {
		t.Errorf("with the certificate: %v, %v", resp, err)
	}
	_, err := ask("")
	if e := modelError(t, err); e.Kind != model.Unavailable || e.Delivery != model.NotSent || !strings.Contains(e.Error(), "tls_ca") {
		t.Errorf("without the certificate: %s: %v", e.Kind, e)
	}
	for _, bad := range []string{filepath.Join(t.TempDir(), "none.pem"), "client_test.go"} {
		if _, err := ask(bad); err == nil || !strings.Contains(err.Error(), "tls_ca") {
			t.Errorf("tls_ca: %s says %v", bad, err)
		}
	}
}

func TestProxy(t *testing.T) {
	var asked atomic.Value
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.String())
		says("Yes")(w, r, nil)
	}))
	defer p.Close()
	m, err := Open(context.Background(), Config{Dialect: "vllm", URL: "http://far.example:8000", Model: "m", Proxy: p.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if resp, err := m.Generate(context.Background(), question(nil)); err != nil || resp.Text != "Yes" {
		t.Fatal(resp, err)
	}
	if got := asked.Load(); got != "http://far.example:8000/v1/chat/completions" {
		t.Errorf("the proxy was asked for %v", got)
	}
	for text, ok := range map[string]bool{"": true, "none": true, "socks5://h:1": true, "h:1": false, "ftp://h": false, "http://": false} {
		if err := CheckProxy(text); (err == nil) != ok {
			t.Errorf("proxy %q says %v", text, err)
		}
	}
}

// No more requests are under way than the settings allow.
func TestParallel(t *testing.T) {
	var now, most atomic.Int32
	f := newFake(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		says("Yes")(w, r, body)
		now.Add(-1)
	})
	m := f.open(t, func(c *Config) { c.Parallel = 2 })
	errs := make(chan error)
	for range 12 {
		go func() {
			_, err := m.Generate(context.Background(), question(nil))
			errs <- err
		}()
	}
	for range 12 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := most.Load(); n > 2 {
		t.Errorf("%d requests at once", n)
	}
	if n := m.Capabilities().Parallel; n != 2 {
		t.Errorf("the capabilities say %d", n)
	}
}

// OpenAI's reasoning models take no temperature but their own; the default of
// the settings is then left out, another one is an error.
func TestServersOwnTemperature(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if strings.Contains(string(body), `"temperature"`) {
			w.WriteHeader(400)
			io.WriteString(w, `{"error":{"message":"Unsupported value","param":"temperature","code":"unsupported_value"}}`)
			return
		}
		says("Yes")(w, r, body)
	})
	m := f.open(t, dialectOf("openai"))
	for range 2 {
		if resp, err := m.Generate(context.Background(), question(nil)); err != nil || resp.Text != "Yes" {
			t.Fatal(resp, err)
		}
	}
	if n := len(f.completions()); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
	f2 := newFake(t, f.answer)
	req := question(nil)
	req.Sampling.Temperature = 0.5
	if _, err := f2.open(t, dialectOf("openai")).Generate(context.Background(), req); err == nil {
		t.Error("a temperature that was asked for was left out")
	}
}

// What a server has no field for is refused, not left out.
func TestSamplingThatCannotTravel(t *testing.T) {
	f := newFake(t, says("Yes"))
	on, big := true, uint64(1)<<63
	for _, tc := range []struct {
		dialect string
		change  func(*model.Request)
		err     string
	}{
		{"openai", func(r *model.Request) { r.Sampling.TopK = 5 }, "top_k"},
		{"generic", func(r *model.Request) { r.Sampling.MinP = 0.1 }, "min_p"},
		{"openai", func(r *model.Request) { r.Thinking = &on }, "thinking"},
		{"vllm", func(r *model.Request) { r.Sampling.Seed = &big }, "seed"},
		{"vllm", func(r *model.Request) {
			r.Tools, r.Constraint = []model.Tool{{Name: "f"}}, compile(t, constraint.JSON, openObject, "")
		}, "tools beside a constraint"},
		{"llamacpp", func(r *model.Request) { s := uint64(1<<32 - 1); r.Sampling.Seed = &s }, "seed"},
	} {
		req := question(nil)
		tc.change(req)
		_, err := f.open(t, dialectOf(tc.dialect)).Generate(context.Background(), req)
		if e := modelError(t, err); e.Delivery != model.NotSent || !strings.Contains(e.Error(), tc.err) {
			t.Errorf("%s: got %s: %v; want %s", tc.dialect, e.Delivery, e, tc.err)
		}
	}
	if n := len(f.completions()); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// A sampled answer can be had again: its seed is drawn here.
func TestSeed(t *testing.T) {
	f := newFake(t, says("Yes"))
	req := question(nil)
	req.Sampling.Temperature = 0.7
	resp, err := f.open(t).Generate(context.Background(), req)
	if err != nil || resp.Seed == nil {
		t.Fatal(resp, err)
	}
	if got := string(mustJSON(t, f.completions()[0])["seed"]); got != fmt.Sprint(*resp.Seed) {
		t.Errorf("the server got seed %s, the record %d", got, *resp.Seed)
	}
	resp, err = f.open(t).Generate(context.Background(), question(nil))
	if err != nil || resp.Seed != nil {
		t.Errorf("a greedy answer has the seed %v, %v", resp.Seed, err)
	}
}

var _ model.Admitter = (*Model)(nil)
