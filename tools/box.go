package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"agentgraph/model"
)

// Box opens tools and keeps what is costly to open: descriptions of programs
// and connections to MCP servers. It is safe for use by many goroutines; its
// zero value is ready.
type Box struct {
	mu       sync.Mutex
	programs map[string]*described
	servers  map[string]*connection
	closed   bool
}

// OpenError says which tool cannot be had and what to do.
type OpenError struct {
	Tool string
	Err  error
	Hint string
	// Retry is true when the same may work later.
	Retry bool
}

func (e *OpenError) Error() string { return fmt.Sprintf("tool %s: %v", e.Tool, e.Err) }

func (e *OpenError) Unwrap() error { return e.Err }

// Offer is a tool with its policy and its bounds.
type Offer struct {
	Tool
	Policy      Policy
	Timeout     time.Duration
	OutputBytes int
	// Unfit says why no model can call the tool: a server's tool whose name or
	// parameters no call can carry. It is not to be offered.
	Unfit   error
	secrets []secret
}

// Called is the same offer under another name.
func (o *Offer) Called(name string) *Offer {
	if name == o.Name() {
		return o
	}
	other := *o
	other.Tool = called{o.Tool, name}
	return &other
}

type called struct {
	Tool
	name string
}

func (c called) Spec() model.Tool {
	s := c.Tool.Spec()
	s.Name = c.name
	return s
}

func (c called) Guidance() string {
	if g, ok := c.Tool.(Guide); ok {
		return g.Guidance()
	}
	return ""
}

// Name is the name that a model calls.
func (o *Offer) Name() string { return o.Spec().Name }

// Spec is what a model is told of the tool.
func (o *Offer) Spec() model.Tool {
	s := o.Tool.Spec()
	s.Description = redact(o.secrets, s.Description, false, false)
	if len(o.secrets) > 0 && len(s.Parameters) > 0 {
		s.Parameters = json.RawMessage(redact(o.secrets, string(s.Parameters), false, false))
	}
	return s
}

// Guidance is the tool's text for the system message, or "".
func (o *Offer) Guidance() string {
	if g, ok := o.Tool.(Guide); ok {
		text := g.Guidance()
		return redact(o.secrets, text, false, len(text) >= guidanceBytes-utf8.UTFMax)
	}
	return ""
}

// toolName is what all formats of calls can carry.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Open opens the entries in their order. The error is an *OpenError for the
// first that cannot be had.
func (b *Box) Open(ctx context.Context, entries []Config, at Place) ([]*Offer, error) {
	var offers []*Offer
	from := map[string]string{}
	for _, c := range entries {
		got, err := b.open(ctx, c, at)
		if err != nil {
			var oe *OpenError
			if !errors.As(err, &oe) {
				oe = &OpenError{Tool: c.label(), Err: err}
			}
			return nil, oe
		}
		for _, o := range got {
			name := o.Name()
			if o.Unfit == nil && !toolName.MatchString(name) {
				return nil, &OpenError{Tool: c.label(), Err: fmt.Errorf("%q is no name for a tool", name),
					Hint: "a name has 1 to 64 letters, digits, '_', '-' and '.'"}
			}
			if other, taken := from[name]; taken {
				return nil, &OpenError{Tool: c.label(), Err: fmt.Errorf("the name %q is already that of a tool of %s", name, other),
					Hint: "remove one of them, or give the MCP server a prefix"}
			}
			from[name] = c.label()
			offers = append(offers, o)
		}
	}
	return offers, nil
}

func (b *Box) open(ctx context.Context, c Config, at Place) (_ []*Offer, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	listed := c.Env
	if c.MCP != nil && c.MCP.URL != "" {
		listed = append(slices.Clone(listed), values(c.MCP.Headers)...)
	}
	env := environment(listed)
	env.give(c)
	defer func() {
		// What a program or server says while it is opened stands in records.
		var oe *OpenError
		switch {
		case err == nil:
		case errors.As(err, &oe):
			clean := *oe
			clean.Err = withoutSecrets(env.secrets, oe.Err)
			err = &clean
		default:
			err = withoutSecrets(env.secrets, err)
		}
	}()
	offer := func(t Tool, policy Policy) *Offer {
		o := &Offer{Tool: t, Policy: policy, Timeout: c.Timeout, OutputBytes: c.OutputBytes, secrets: env.secrets}
		if o.Timeout == 0 {
			o.Timeout = DefaultTimeout
		}
		if o.OutputBytes == 0 {
			o.OutputBytes = DefaultOutputBytes
		}
		return o
	}
	switch {
	case c.Builtin != "":
		t, err := builtin(c, at)
		if err != nil {
			return nil, err
		}
		return []*Offer{offer(t, c.policy(""))}, nil
	case c.MCP != nil:
		return b.openServer(ctx, c, at, env, offer)
	}
	t, err := b.openProgram(ctx, c, at, env)
	if err != nil {
		return nil, err
	}
	return []*Offer{offer(t, c.policy(""))}, nil
}

// withoutSecrets is err, or another error with the same text but for them.
func withoutSecrets(secrets []secret, err error) error {
	text := err.Error()
	if clean := redact(secrets, text, false, false); clean != text {
		return errors.New(clean)
	}
	return err
}

// Close ends the connections to MCP servers. It is idempotent.
func (b *Box) Close() error {
	b.mu.Lock()
	servers := b.servers
	b.servers, b.closed = nil, true
	b.mu.Unlock()
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// Specs lists the tools as a model is told of them.
func Specs(offers []*Offer) []model.Tool {
	list := make([]model.Tool, len(offers))
	for i, o := range offers {
		list[i] = o.Spec()
	}
	return list
}
