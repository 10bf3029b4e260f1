// Package openai asks servers that speak the OpenAI API: vLLM, SGLang,
// mistral.rs, llama.cpp's server, Ollama, OpenAI itself and others like them.
//
// # Dialects
//
// Servers differ in how a constraint travels. Each has a small file here, a
// table of kinds and fields, with what it can not take refused by construct
// and position. A JSON Schema travels as the bytes of its file, the order of
// its members untouched. Where a server takes grammars only, regular
// expressions and Lark grammars are translated (constraint/lark).
//
// # What a server is believed
//
// A server that takes a constraint may still ignore it. So a kind counts as
// held when the settings declare it, or when the server has answered a canary:
// a constrained question that no unconstrained model answers that way. Canaries
// are sent the first time they are needed and kept for each server and
// version (Config.ProbeCache). Whatever a server is believed, its answers are
// validated here.
//
// # Secrets
//
// A key is a Secret, which prints as nothing. It goes to the configured host
// and nowhere else: a redirect to another one is refused. What a server says is
// cut, and cleaned of the key, before it is quoted.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// Config describes one server and one of its models.
type Config struct {
	// Dialect is a name of Dialects.
	Dialect string
	// URL is the API's address, as in http://127.0.0.1:8000/v1. Without a path,
	// /v1 is meant.
	URL string
	// Model is the server's name for the model.
	Model string
	// Alias is the settings' name for it.
	Alias string
	// Where says to people where the model is configured.
	Where string
	Key   Secret
	// TLSCA is a PEM file of certificates to trust instead of the system's.
	TLSCA string
	// Proxy is the address of a proxy; empty takes the environment's, "none" none.
	Proxy string
	// Context is the most tokens of prompt and answer; 0: not known.
	Context int
	// Parallel is the requests sent at once; 0 is DefaultParallel.
	Parallel int
	// Timeout is the longest silence of the server; 0 is DefaultTimeout.
	Timeout time.Duration
	// Declared are the kinds that the settings vouch for; a kind that is missing
	// is denied. Nil declares nothing, and each kind is probed.
	Declared []constraint.Kind
	// LLGuidance says that the server constrains with llguidance, so that Lark
	// grammars travel as they are.
	LLGuidance bool
	// ProbeCache is the folder that remembers probes; empty remembers them in
	// memory only.
	ProbeCache string
	// Client stands in for the HTTP client, in tests.
	Client *http.Client
	// Clock and Sleep stand in for the machine's, in tests.
	Clock func() time.Time
	Sleep func(context.Context, time.Duration) error
}

// Defaults of Config.
const (
	DefaultParallel = 8
	DefaultTimeout  = 5 * time.Minute
)

// Model is one model of a server. It is safe for use by many goroutines.
type Model struct {
	cfg     Config
	dialect *dialect
	api     *client // below URL
	root    *client // below URL without its /v1
	id      model.Identity
	slots   chan struct{}
	closed  chan struct{}
	once    sync.Once
	probes  *probes
	noSeed  bool // draws none; for Body

	mu sync.Mutex
	// noTemperature is set when the server takes its own alone.
	noTemperature bool
	context       int
}

// Open returns a model of a server without a word to the server: it may be
// down, and each call then fails as unavailable.
func Open(_ context.Context, cfg Config) (model.Model, error) { return New(cfg) }

// New is Open with the type that probes.
func New(cfg Config) (*Model, error) {
	d := dialects[cfg.Dialect]
	if d == nil {
		return nil, fmt.Errorf("%q is no kind of server; write one of %s", cfg.Dialect, strings.Join(Dialects(), ", "))
	}
	u, err := CheckURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Model == "" && !d.modelOptional {
		return nil, errors.New("no model is named; write the server's name for it under model:")
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = DefaultParallel
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Sleep == nil {
		cfg.Sleep = sleep
	}
	api, root := bases(u, d)
	m := &Model{cfg: cfg, dialect: d, slots: make(chan struct{}, cfg.Parallel), closed: make(chan struct{}), context: cfg.Context}
	m.id = model.Identity{Engine: d.name, Name: cfg.Model, Alias: cfg.Alias, Server: ServerIdentity(cfg.URL)}
	if m.id.Name == "" {
		m.id.Name = "default"
	}
	httpClient, err := newHTTPClient(cfg, u)
	if err != nil {
		return nil, err
	}
	m.api, m.root = newClient(m, httpClient, api), newClient(m, httpClient, root)
	m.probes = newProbes(m)
	return m, nil
}

// CheckURL reads the address of a server.
func CheckURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case text == "":
		return nil, errors.New("no address is given; write url: http://HOST:PORT/v1")
	case err != nil: // the error would quote it, with whatever it holds
		return nil, errors.New("the address under url: does not parse; write it as http://HOST:PORT/v1")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the address under url: is neither http nor https; write it as http://HOST:PORT/v1")
	case u.Hostname() == "":
		return nil, errors.New("the address under url: names no host; write it as http://HOST:PORT/v1")
	}
	return u, nil
}

// bases are the addresses of the API and of what lies beside it.
func bases(u *url.URL, d *dialect) (api, root *url.URL) {
	a, r := *u, *u
	a.User, r.User = nil, nil
	a.RawQuery, r.RawQuery, a.Fragment, r.Fragment = "", "", "", ""
	a.RawPath, r.RawPath = "", ""
	path := strings.TrimRight(u.Path, "/")
	if path == "" && !d.native {
		a.Path = "/v1/"
	} else {
		a.Path = path + "/"
	}
	r.Path = strings.TrimSuffix(path, "/v1") + "/"
	if d.native {
		a.Path = r.Path
	}
	return &a, &r
}

// ServerIdentity is an address as a record may keep it: without user info,
// query and fragment.
func ServerIdentity(text string) string {
	u, err := CheckURL(text)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/")
}

// Identity names the model and its server.
func (m *Model) Identity() model.Identity { return m.id }

// Capabilities says what the server is believed. A kind that is neither
// declared nor probed yet is among them: the first call that needs it probes.
func (m *Model) Capabilities() model.Capabilities {
	m.mu.Lock()
	ctx := m.context
	m.mu.Unlock()
	return model.Capabilities{
		Engine: m.engine(), Tools: true, Streaming: true, Context: ctx, Parallel: m.cfg.Parallel,
	}
}

func (m *Model) engine() constraint.Engine {
	e := constraint.Engine{Name: m.dialect.title, Declared: constraint.DeclaredServer, Where: m.cfg.Where}
	for _, k := range Kinds {
		if m.way(k) == nil {
			continue
		}
		if held, known := m.probes.held(k); held || !known {
			e.Kinds = append(e.Kinds, k)
		}
	}
	return e
}

// Kinds are all kinds of constraint, in the order of tables.
var Kinds = []constraint.Kind{constraint.JSON, constraint.Regex, constraint.Lark, constraint.LLG}

// Close ends what is under way; later calls fail.
func (m *Model) Close() error {
	m.once.Do(func() {
		close(m.closed)
		m.api.http.CloseIdleConnections()
	})
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
