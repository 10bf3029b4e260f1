package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentgraph/internal/loopback"
)

// probeTimeout bounds one question to the server.
const probeTimeout = 5 * time.Second

// listening reports whether somebody takes connections there.
func listening(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// health asks a server whether it is ready.
type health struct {
	address string   // host:port
	urls    []string // tried in order; one that is not there leaves it to the next
	client  *http.Client
}

func newHealth(raw string) (*health, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("url: %q is no address of a server; write http://127.0.0.1:PORT/v1", raw)
	}
	host, port := u.Hostname(), u.Port()
	if !loopback.Host(host) {
		return nil, fmt.Errorf("url: server_command starts a server on this machine, and %s is not known to be it; write http://127.0.0.1:PORT/v1", host)
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	origin := u.Scheme + "://" + u.Host
	h := &health{address: net.JoinHostPort(host, port)}
	h.urls = []string{origin + "/health", origin + strings.TrimRight(u.EscapedPath(), "/") + "/models"}
	if v1 := origin + "/v1/models"; v1 != h.urls[1] {
		h.urls = append(h.urls, v1)
	}
	h.client = &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			Proxy:             nil, // it is this machine
			DisableKeepAlives: true,
			// Nothing is told to it and nothing believed; that it answers is all.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return h, nil
}

// check returns nil when the server is ready, else what it said.
func (h *health) check(ctx context.Context) error {
	var last error
	for _, u := range h.urls {
		status, err := h.get(ctx, u)
		switch {
		case err != nil:
			return err
		case status < 300, status == http.StatusUnauthorized, status == http.StatusForbidden:
			return nil // it wants a key, which only a server does that is there
		case status >= 500 && status != http.StatusNotImplemented:
			return fmt.Errorf("%s answers %d", u, status)
		}
		last = fmt.Errorf("%s answers %d", u, status)
	}
	return last
}

func (h *health) get(ctx context.Context, u string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return 0, err
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	return resp.StatusCode, nil
}
