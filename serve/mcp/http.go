package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/internal/loopback"
)

// Path is where the HTTP server answers.
const Path = "/mcp"

// HTTP says who may speak to the server over HTTP. A web page that a browser
// shows must never be among them, so three things are checked of each request:
// the token, the Host (a name that an attacker made point here is none of
// ours), and the Origin, where a browser sends one.
type HTTP struct {
	// Token is what clients send as "Authorization: Bearer TOKEN"; at least
	// MinToken characters.
	Token string
	// Hosts are names, besides those of loopback, that the Host of a request
	// may have and the Origin.
	Hosts []string
	// Remote allows addresses that are not loopback.
	Remote bool
}

// MinToken is the least length of a token.
const MinToken = 16

// NewToken makes a token that nobody guesses.
func NewToken() string {
	b := make([]byte, 24)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// Bounds of HTTP. A client that lost its connection finds its session again
// for sessionIdle.
const (
	maxHeader    = 64 << 10
	headerTime   = 10 * time.Second
	idleTime     = 2 * time.Minute
	sessionIdle  = time.Hour
	shutdownTime = time.Second
)

// Listen opens an address that this server may use: of loopback, unless
// Remote is set.
func (h HTTP) Listen(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s is no address to listen on: %w; write 127.0.0.1:8420", address, err)
	}
	if !h.Remote && !loopback.Host(host) {
		return nil, fmt.Errorf("%s is not an address of this machine alone; listen on 127.0.0.1, or allow other machines explicitly", address)
	}
	if len(h.Token) < MinToken {
		return nil, fmt.Errorf("the token has %d characters; take at least %d", len(h.Token), MinToken)
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	// What a name such as localhost stands for is the system's to say.
	if at, ok := ln.Addr().(*net.TCPAddr); ok && !h.Remote && !at.IP.IsLoopback() {
		ln.Close()
		return nil, fmt.Errorf("%s stands for %s, which is not an address of this machine alone; listen on 127.0.0.1", address, at.IP)
	}
	return ln, nil
}

// ServeHTTP speaks to clients on the listener until ctx ends, and closes it.
func (s *Server) ServeHTTP(ctx context.Context, ln net.Listener, h HTTP) error {
	stop := s.watch(ctx)
	defer stop()
	s.sdk.AddReceivingMiddleware(endWith(ctx))
	server := &http.Server{
		Handler: s.Handler(h), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	// Streams stay open as long as their clients; they are cut.
	for session := range s.sdk.Sessions() {
		_ = session.Close()
	}
	limited, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := server.Shutdown(limited); err != nil {
		_ = server.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// endWith ends calls with ctx: a session waits for its calls before it closes.
func endWith(life context.Context) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(life, cancel)()
			return next(ctx, method, req)
		}
	}
}

// Handler answers requests at Path that pass the checks of h.
func (s *Server) Handler(h HTTP) http.Handler {
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk }, &sdk.StreamableHTTPOptions{
		Logger: s.cfg.Log, SessionTimeout: sessionIdle, MaxRequestBodyBytes: maxMessage,
		PropagateRequestCancellation: true,
		DisableLocalhostProtection:   true, // checked here, with the allowed names
	})
	want := sha256.Sum256([]byte(h.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !h.allowed(r.Host):
			http.Error(w, "this host name is not served here", http.StatusForbidden)
		case !h.originAllowed(r):
			http.Error(w, "requests of this origin are not answered", http.StatusForbidden)
		case !authorized(r, want):
			w.Header().Set("WWW-Authenticate", `Bearer realm="agentgraph"`)
			http.Error(w, "send the token as Authorization: Bearer TOKEN", http.StatusUnauthorized)
		case r.URL.Path != Path:
			http.NotFound(w, r)
		default:
			inner.ServeHTTP(w, r)
		}
	})
}

// allowed reports that a Host, or the host of an Origin, is one that leads
// here by itself. An IP address is no name that somebody else can point
// elsewhere, but only where other machines are allowed it may be any.
func (h HTTP) allowed(hostport string) bool {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if loopback.Host(host) || slices.ContainsFunc(h.Hosts, func(n string) bool { return strings.EqualFold(n, host) }) {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil && h.Remote
}

func (h HTTP) originAllowed(r *http.Request) bool {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return true
	}
	u, err := url.Parse(values[0])
	return len(values) == 1 && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && h.allowed(u.Host)
}

// authorized compares in constant time.
func authorized(r *http.Request, want [sha256.Size]byte) bool {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return len(token) >= MinToken && strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
