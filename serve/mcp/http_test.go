package mcp

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const token = "correct-horse-battery"

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`

// Whatever a browser can be made to send does not come through: a foreign
// Origin, a foreign Host that a name server made point here, no token.
func TestWhoMaySpeakHTTP(t *testing.T) {
	s, _ := newServer(t, false)
	local := HTTP{Token: token}
	named := HTTP{Token: token, Hosts: []string{"models.example"}}
	remote := HTTP{Token: token, Remote: true}
	bearer := "Bearer " + token
	for _, tt := range []struct {
		name               string
		h                  HTTP
		host, origin, auth string
		path               string
		want               int
	}{
		{"right", local, "127.0.0.1:8420", "", bearer, Path, 200},
		{"localhost", local, "localhost:1", "", bearer, Path, 200},
		{"localhost without port", local, "localhost", "", bearer, Path, 200},
		{"IPv6", local, "[::1]:8420", "", bearer, Path, 200},
		{"scheme in small letters", local, "localhost", "", "bearer " + token, Path, 200},
		{"page of this machine", local, "localhost:1", "http://localhost:3000", bearer, Path, 200},
		{"no token", local, "localhost", "", "", Path, 401},
		{"wrong token", local, "localhost", "", bearer + "x", Path, 401},
		{"beginning of the token", local, "localhost", "", bearer[:len(bearer)-1], Path, 401},
		{"basic", local, "localhost", "", "Basic " + token, Path, 401},
		{"token without a scheme", local, "localhost", "", token, Path, 401},
		{"rebound name", local, "evil.example:8420", "", bearer, Path, 403},
		{"rebound name that looks right", local, "localhost.evil.example", "", bearer, Path, 403},
		{"address as a name", local, "127.0.0.1.evil.example", "", bearer, Path, 403},
		{"address of another machine", local, "192.0.2.7:8420", "", bearer, Path, 403},
		{"all addresses", local, "0.0.0.0:8420", "", bearer, Path, 403},
		{"foreign page", local, "localhost", "https://evil.example", bearer, Path, 403},
		{"foreign page without token", local, "localhost", "https://evil.example", "", Path, 403},
		{"page without an origin", local, "localhost", "null", bearer, Path, 403},
		{"file as a page", local, "localhost", "file://localhost", bearer, Path, 403},
		{"another path", local, "localhost", "", bearer, "/", 404},
		{"allowed name", named, "Models.Example:80", "", bearer, Path, 200},
		{"page of an allowed name", named, "models.example", "https://models.example", bearer, Path, 200},
		{"other name", named, "other.example", "", bearer, Path, 403},
		{"address, remote", remote, "192.0.2.7:8420", "", bearer, Path, 200},
		{"name, remote", remote, "evil.example", "", bearer, Path, 403},
		{"foreign page, remote", remote, "192.0.2.7", "https://evil.example", bearer, Path, 403},
		{"no token, remote", remote, "192.0.2.7", "", "", Path, 401},
		{"no token set", HTTP{}, "localhost", "", "Bearer ", Path, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := httptest.NewRequest("POST", tt.path, strings.NewReader(initialize))
			req.Host = tt.host
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			if tt.origin != "" {
				req.Header.Set("Origin", tt.origin)
			}
			if tt.auth != "" {
				req.Header.Set("Authorization", tt.auth)
			}
			rec := httptest.NewRecorder()
			s.Handler(tt.h).ServeHTTP(rec, req)
			if rec.Code != tt.want {
				t.Errorf("status %d, want %d; %s", rec.Code, tt.want, rec.Body)
			}
			if rec.Code == 401 && rec.Header().Get("WWW-Authenticate") == "" {
				t.Error("no WWW-Authenticate")
			}
			if rec.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Error("pages of other origins may read answers")
			}
		})
	}
	// A second header does not help.
	req := httptest.NewRequest("POST", Path, strings.NewReader(initialize))
	req.Host = "localhost"
	req.Header["Authorization"] = []string{"Bearer x", bearer}
	rec := httptest.NewRecorder()
	s.Handler(local).ServeHTTP(rec, req)
	if rec.Code != 401 {
		t.Errorf("two tokens: status %d", rec.Code)
	}
}

func TestWhereItListens(t *testing.T) {
	for _, tt := range []struct {
		name, address string
		h             HTTP
		says          string
	}{
		{"all addresses", "0.0.0.0:0", HTTP{Token: token}, "this machine alone"},
		{"all addresses, short", ":0", HTTP{Token: token}, "this machine alone"},
		{"another name", "example.com:0", HTTP{Token: token}, "this machine alone"},
		{"no port", "127.0.0.1", HTTP{Token: token}, "no address"},
		{"short token", "127.0.0.1:0", HTTP{Token: "short"}, "the token"},
		{"no token, remote", "0.0.0.0:0", HTTP{Remote: true}, "the token"},
		{"loopback", "127.0.0.1:0", HTTP{Token: token}, ""},
		{"localhost", "localhost:0", HTTP{Token: token}, ""},
		{"remote", "0.0.0.0:0", HTTP{Token: token, Remote: true}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ln, err := tt.h.Listen(tt.address)
			if ln != nil {
				ln.Close()
			}
			if tt.says == "" {
				must(t, err)
			} else if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want one that says %q", err, tt.says)
			}
		})
	}
}

// A whole session over a real connection, and the end of the server.
func TestOverHTTP(t *testing.T) {
	s, _ := newServer(t, true)
	h := HTTP{Token: NewToken()}
	ln, err := h.Listen("127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(within(t))
	done := make(chan error, 1)
	go func() { done <- s.ServeHTTP(ctx, ln, h) }()

	at := "http://" + ln.Addr().String() + Path
	c := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "0"}, nil)
	session, err := c.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: at, HTTPClient: &http.Client{Transport: withToken{h.Token}}}, nil)
	must(t, err)
	res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "respond", Arguments: map[string]any{"prompt": "hello"}})
	must(t, err)
	if r := takeApart(t, res); r.failed || r.text != "good morning" {
		t.Errorf("%+v", r)
	}
	if _, err := c.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: at, HTTPClient: &http.Client{Transport: withToken{"another token of length"}}}, nil); err == nil {
		t.Error("a client with a wrong token came in")
	}
	resp, err := http.Post(at, "application/json", strings.NewReader(initialize))
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != 401 {
		t.Errorf("without a token: %s", resp.Status)
	}

	// A body without end is not read to its end.
	req, err := http.NewRequest("POST", at, io.LimitReader(spaces{}, 2*maxMessage))
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+h.Token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("a body of %d bytes: %s", 2*maxMessage, resp.Status)
		}
	}

	cancel()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the server does not end while a client is connected")
	}
	if conn, err := net.DialTimeout("tcp", ln.Addr().String(), time.Second); err == nil {
		conn.Close()
		t.Error("the address is still open")
	}
}

type withToken struct{ token string }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return http.DefaultTransport.RoundTrip(r)
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
