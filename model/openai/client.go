package openai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	api "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"agentgraph/model"
)

// Bounds of what is read from a server, and of waiting for it.
const (
	maxReplyBytes = 64 << 20
	maxErrorBytes = 64 << 10
	maxCABytes    = 4 << 20
	dialTimeout   = 10 * time.Second
	maxRetries    = 2
	maxWait       = time.Minute
	maxRedirects  = 3
	// idleTimeout is below the five seconds after which llama.cpp's server,
	// uvicorn (vLLM, SGLang) and Node close a connection.
	idleTimeout = 4 * time.Second
	// resendTime is far above the way to a server and back.
	resendTime = 10 * time.Second
)

// client sends requests below one address.
type client struct {
	m    *Model
	http *http.Client
	sdk  api.Client
}

// newHTTPClient follows redirects on the same host only, so that neither the
// key nor a prompt goes anywhere else.
func newHTTPClient(cfg Config, u *url.URL) (*http.Client, error) {
	var c http.Client
	if cfg.Client != nil {
		c = *cfg.Client
	} else {
		t := &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: dialTimeout,
			MaxIdleConnsPerHost: cfg.Parallel,
			IdleConnTimeout:     idleTimeout,
			ForceAttemptHTTP2:   true,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},

			MaxResponseHeaderBytes: 1 << 20,
		}
		var err error
		if t.Proxy, err = proxy(cfg.Proxy); err != nil {
			return nil, err
		}
		if cfg.TLSCA != "" {
			if t.TLSClientConfig.RootCAs, err = certificates(cfg.TLSCA); err != nil {
				return nil, err
			}
		}
		c.Transport = t
	}
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if req.URL.Scheme != u.Scheme || req.URL.Host != u.Host {
			return &redirectError{"the server redirects to " + req.URL.Scheme + "://" + req.URL.Host + ", where nothing was sent"}
		}
		if len(via) > maxRedirects {
			return &redirectError{"the server redirects in a circle"}
		}
		return nil
	}
	return &c, nil
}

// redirectError says where a server wanted to send us.
type redirectError struct{ msg string }

func (e *redirectError) Error() string { return e.msg }

// CheckProxy reports what is wrong with the address of a proxy.
func CheckProxy(text string) error {
	_, err := proxy(text)
	return err
}

func proxy(text string) (func(*http.Request) (*url.URL, error), error) {
	switch text {
	case "":
		return http.ProxyFromEnvironment, nil
	case "none":
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
		return nil, errors.New("proxy: is no address of a proxy; write http://HOST:PORT, socks5://HOST:PORT or none")
	}
	return http.ProxyURL(u), nil
}

// certificates reads a PEM file.
func certificates(path string) (*x509.CertPool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tls_ca: %w; correct the path", err)
	}
	defer f.Close()
	pem, err := io.ReadAll(io.LimitReader(f, maxCABytes+1))
	if err != nil {
		return nil, fmt.Errorf("tls_ca: %w", err)
	}
	pool := x509.NewCertPool()
	if len(pem) > maxCABytes || !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls_ca: %s holds no certificates in PEM form", path)
	}
	return pool, nil
}

func newClient(m *Model, c *http.Client, base *url.URL) *client {
	// Not openai.NewClient: it would send the key of the environment to any
	// server.
	opts := []option.RequestOption{
		option.WithBaseURL(base.String()), option.WithHTTPClient(c), option.WithMaxRetries(0),
		option.WithHeader("User-Agent", "agentgraph"),
		option.WithMiddleware(withoutMachine, resend),
	}
	u, _ := CheckURL(m.cfg.URL)
	for key, values := range u.Query() {
		for _, v := range values {
			opts = append(opts, option.WithQueryAdd(key, v))
		}
	}
	switch {
	case !m.cfg.Key.IsZero():
		opts = append(opts, option.WithAPIKey(m.cfg.Key.value))
	case u.User != nil:
		pass, _ := u.User.Password()
		opts = append(opts, option.WithHeader("Authorization",
			"Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+pass))))
	}
	return &client{m: m, http: c, sdk: api.Client{Options: opts}}
}

// withoutMachine leaves out what the SDK tells servers about this machine.
func withoutMachine(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	for name := range req.Header {
		if strings.HasPrefix(name, "X-Stainless-") {
			req.Header.Del(name)
		}
	}
	return next(req)
}

// resend sends a request again, on another connection, where one that was kept
// open turns out to be closed by the server before a byte of an answer came.
// Servers close theirs after a few seconds or, as llama.cpp's does, after each
// stream, which no client can see in time. net/http repeats only some of these
// requests: none whose body was under way. A new connection is used once, and
// one that closes late has closed for another reason.
func resend(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	ctx := req.Context()
	for {
		var kept, answered atomic.Bool
		began := time.Now()
		resp, err := next(req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn:              func(c httptrace.GotConnInfo) { kept.Store(c.Reused && !manyAtOnce(c.Conn)) },
			GotFirstResponseByte: func() { answered.Store(true) },
		})))
		if err == nil || !kept.Load() || answered.Load() || time.Since(began) > resendTime || ctx.Err() != nil {
			return resp, err
		}
		if req.Body != nil && req.Body != http.NoBody {
			if req.GetBody == nil {
				return resp, err
			}
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// manyAtOnce reports a connection of HTTP/2, which outlives a request that
// fails.
func manyAtOnce(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}

// sent follows how far a request gets.
type sent struct{ begun atomic.Bool }

func (s *sent) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { s.begun.Store(true) },
	})
}

func (s *sent) delivery() model.Delivery {
	if s.begun.Load() {
		return model.MayHaveBeenSent
	}
	return model.NotSent
}

// do sends one request and returns a reply with a status below 300, whose body
// is bounded and to be closed. It tries again where the server says that it is
// busy, within the context's time.
func (c *client) do(ctx context.Context, method, path string, body []byte) (*http.Response, *model.Error) {
	for attempt := 0; ; attempt++ {
		resp, e, after := c.once(ctx, method, path, body)
		if e == nil {
			return resp, nil
		}
		wait, again := c.again(ctx, attempt, after)
		if !again {
			return nil, e
		}
		if err := c.m.cfg.Sleep(ctx, wait); err != nil {
			return nil, c.m.ended(ctx, model.NotSent, nil)
		}
	}
}

// retryAfter is what a reply says about trying again.
type retryAfter struct {
	again bool
	wait  time.Duration // 0: not said
}

func (c *client) again(ctx context.Context, attempt int, after retryAfter) (time.Duration, bool) {
	if !after.again || attempt >= maxRetries || ctx.Err() != nil {
		return 0, false
	}
	wait := after.wait
	if wait == 0 {
		wait = time.Second << attempt / 2
	}
	// Many turns are turned away at once; they shall not come back at once.
	wait += time.Duration(rand.Int64N(int64(wait)/4 + 1))
	if wait > maxWait {
		return 0, false
	}
	if end, ok := ctx.Deadline(); ok && c.m.cfg.Clock().Add(wait).After(end) {
		return 0, false
	}
	return wait, true
}

func (c *client) once(ctx context.Context, method, path string, body []byte) (*http.Response, *model.Error, retryAfter) {
	var s sent
	var resp *http.Response
	var redirect *redirectError
	opts := []option.RequestOption{option.WithMiddleware(bounded)}
	if body != nil {
		opts = append(opts, option.WithRequestBody("application/json", body))
	}
	err := c.sdk.Execute(s.trace(ctx), method, path, nil, &resp, opts...)
	switch {
	case ctx.Err() != nil:
		if resp != nil {
			resp.Body.Close()
		}
		return nil, c.m.ended(ctx, s.delivery(), nil), retryAfter{}
	case resp == nil, errors.As(err, &redirect):
		return nil, c.m.unreached(err, s.delivery()), retryAfter{}
	case resp.StatusCode < 300:
		return resp, nil, retryAfter{}
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes))
	e, again := c.m.refusedBy(resp.StatusCode, said)
	return nil, e, retryAfter{again, waitOf(resp.Header, c.m.cfg.Clock())}
}

// bounded bounds the body: the SDK reads that of an error whole.
func bounded(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(req)
	if err == nil && resp.Body != nil {
		limit := int64(maxReplyBytes)
		if resp.StatusCode >= 300 {
			limit = maxErrorBytes
		}
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: limit}
	}
	return resp, err
}

var errTooLong = fmt.Errorf("the reply is longer than %d MiB", maxReplyBytes>>20)

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// waitOf reads Retry-After, in seconds or as a date.
func waitOf(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return time.Duration(min(s, 1e6) * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}
