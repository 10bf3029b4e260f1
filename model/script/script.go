// Package script is a deterministic model read from a small YAML file: for
// tests, and for users who try a graph without a model. docs/script-model.md
// describes the file.
//
// Under a constraint it does what a real model does: it looks at the mask
// before each byte, takes the byte it prefers when that is allowed and a
// fixed other one when it is not.
package script

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// Defaults of the file's keys.
const (
	defaultTokenBytes = 4
	defaultParallel   = 64
	// endlessTokens ends an endless reply when neither max_tokens nor a
	// context does.
	endlessTokens = 1 << 16
)

// Config changes what a Model depends on; the zero value is right for use.
type Config struct {
	// Sleep waits for d or until ctx ends; a test may count instead.
	Sleep func(ctx context.Context, d time.Duration) error
	// Clock is time.Now unless a test says otherwise.
	Clock func() time.Time
}

// Open reads a script file. Its errors name file, line and column.
func Open(path string) (model.Model, error) { return OpenWith(path, Config{}) }

// OpenWith is Open with something injected.
func OpenWith(path string, cfg Config) (model.Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, unavailable(path, err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, unavailable(path, err)
	}
	return New(path, src, cfg)
}

func unavailable(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &model.Error{Kind: model.Unavailable, Delivery: model.NotSent, Model: filepath.Base(path),
		Err: fmt.Errorf("script %s cannot be read: %w", path, err)}
}

// New makes a model from the text of a script file; name stands for the file
// in errors.
func New(name string, src []byte, cfg Config) (*Model, error) {
	f, err := parse(name, src)
	if err != nil {
		return nil, err
	}
	m := &Model{file: f, path: name, cfg: cfg, used: make([]int, len(f.Replies))}
	if m.cfg.Sleep == nil {
		m.cfg.Sleep = sleep
	}
	if m.cfg.Clock == nil {
		m.cfg.Clock = time.Now
	}
	if f.TokenBytes == 0 {
		f.TokenBytes = defaultTokenBytes
	}
	if f.Parallel == 0 {
		f.Parallel = defaultParallel
	}
	m.recorded = slices.ContainsFunc(f.Replies, func(r reply) bool { return r.Request != "" })
	m.slots = make(chan struct{}, f.Parallel)
	m.engine = constraint.Engine{Name: "script", Kinds: allKinds, Masks: true,
		Declared: constraint.DeclaredScript, Where: name + ", constraints:"}
	if f.Constraints != nil {
		m.engine.Kinds = *f.Constraints
	}
	if f.Mask != nil {
		m.engine.Masks = *f.Mask
	}
	if len(m.engine.Kinds) == 0 {
		m.engine.Masks = false
	}
	sum := sha256.Sum256(src)
	m.identity = model.Identity{Engine: "script", Name: f.Name, WeightsSHA256: hex.EncodeToString(sum[:])}
	if m.identity.Name == "" {
		m.identity.Name = filepath.Base(name)
	}
	return m, nil
}

// Model answers from a script. It is safe for use by many goroutines; replies
// that are taken in order are given out in the order of the calls.
type Model struct {
	file     *file
	path     string
	cfg      Config
	engine   constraint.Engine
	identity model.Identity
	slots    chan struct{} // one per request served at once
	recorded bool          // some reply is to a whole conversation

	mu     sync.Mutex
	used   []int // how often each reply was taken
	closed bool
}

// Capabilities says what the script declares.
func (m *Model) Capabilities() model.Capabilities {
	c := model.Capabilities{Engine: m.engine, Tools: m.file.Tools, Streaming: true,
		Context: m.file.Context, Parallel: m.file.Parallel}
	if c.Tools && c.Masks {
		c.CallFormat = constraint.HermesCalls
	}
	return c
}

// Identity names the script; the hash is that of its file.
func (m *Model) Identity() model.Identity { return m.identity }

// Close makes later calls fail; it is idempotent.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Render lists the messages, each after a line with its role.
func (m *Model) Render(_ context.Context, req *model.Request) (model.Rendered, error) {
	return m.render(req), nil
}

func (m *Model) render(req *model.Request) model.Rendered {
	var b strings.Builder
	for _, msg := range req.Messages {
		fmt.Fprintf(&b, "<|%s|>\n%s\n", msg.Role, msg.Content)
	}
	fmt.Fprintf(&b, "<|%s|>\n", model.Assistant)
	return model.Rendered{Prompt: b.String(), Tokens: m.tokens(b.Len()), Context: m.file.Context}
}

func (m *Model) tokens(bytes int) int { return (bytes + m.file.TokenBytes - 1) / m.file.TokenBytes }

// choose takes the reply to a conversation: the first that asks for it, else
// the next of those in order, else the default.
func (m *Model) choose(req *model.Request) (*reply, error) {
	last, user := lastMessages(req.Messages)
	said := ""
	if m.recorded {
		said = model.ConversationSHA256(req.Messages)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errors.New("the model is closed")
	}
	afterTool := last.Role == model.ToolRole
	for pass := range 2 {
		for i := range m.file.Replies {
			r := &m.file.Replies[i]
			times := r.Times
			if r.inOrder() && times == 0 {
				times = 1
			}
			switch {
			case times > 0 && m.used[i] >= times:
			case r.inOrder() != (pass == 1):
			case r.Request != "" && r.Request != said:
			case pass == 0 && r.Request == "" && !r.asksFor(last, user, afterTool):
			default:
				m.used[i]++
				return r, nil
			}
		}
	}
	if m.file.Default != nil {
		return m.file.Default, nil
	}
	return nil, fmt.Errorf("%s has no reply left for this message; add one, or a default:", m.path)
}

// asksFor reports that r matches. A reply that calls tools does not answer
// their result, so that a conversation with tools comes to an end.
func (r *reply) asksFor(last, user model.Message, afterTool bool) bool {
	if r.ToolResult != "" {
		return afterTool && strings.Contains(last.Content, r.ToolResult)
	}
	if afterTool && len(r.ToolCalls) > 0 {
		return false
	}
	if r.Regex != nil {
		return r.Regex.MatchString(user.Content)
	}
	return strings.Contains(user.Content, r.Match)
}

func lastMessages(msgs []model.Message) (last, user model.Message) {
	for _, msg := range msgs {
		last = msg
		if msg.Role == model.User {
			user = msg
		}
	}
	return last, user
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
