package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"agentgraph/constraint"
	"agentgraph/internal/proc"
	"agentgraph/model"
)

// Prefix is what AgentGraph's providers are called: the provider X is the
// program ag-provider-X.
const Prefix = "ag-provider-"

// Bounds.
const (
	describeTimeout = 15 * time.Second
	describeBytes   = 256 << 10
	requestBytes    = 64 << 20
	lineBytes       = 4 << 20
	replyBytes      = 64 << 20
	stderrBytes     = 4 << 10
	saidBytes       = 512 // of stderr or X: in a message
)

// exitGrace is how long a process may take to end after it has answered.
const exitGrace = 2 * time.Second

// Config says which program, and what is known of it.
type Config struct {
	// Name is a plug-in's name or a path with a '/'; with Command it is only
	// what people call it.
	Name string
	// Command is a program with its first arguments, instead of Name.
	Command []string
	// Dir is the working folder; empty means the caller's.
	Dir string
	// Env lists the environment variables it gets besides the plain ones.
	Env []string
	// Model is sent as the request's model; empty leaves it to the plug-in.
	Model string
	// Context is the most tokens it holds; 0 is what it says, if it does.
	Context int
	// Parallel is how many processes run at once; 0 means one.
	Parallel int
	// Constraints are the kinds it is declared to hold; nil means those of its
	// own description.
	Constraints []constraint.Kind
	// Where says to people where Constraints is declared.
	Where string
}

// description is what a plug-in prints for --describe.
type description struct {
	Name        string            `json:"name"`
	Model       string            `json:"model"`
	MaxSeqLen   int               `json:"max_seq_len"`
	Tools       bool              `json:"supports_tools"`
	Constrains  bool              `json:"supports_constraints"`
	Constraints []constraint.Kind `json:"constraints"` // ours: which kinds
}

// Model is a plug-in. It is safe for use by many goroutines.
type Model struct {
	cfg    Config
	path   string
	args   []string
	env    proc.Env
	about  description
	engine constraint.Engine
	slots  chan struct{}
	closed atomic.Bool
}

// Open finds the program and asks it what it is. One that does not say is
// taken to hold no constraint and to call no tools.
func Open(ctx context.Context, cfg Config) (*Model, error) {
	m := &Model{cfg: cfg, slots: make(chan struct{}, max(cfg.Parallel, 1))}
	prefix := ""
	if len(cfg.Command) > 0 {
		path, err := exec.LookPath(cfg.Command[0])
		if err != nil {
			return nil, m.absent(cfg.Command[0], "correct plugin: command, or install it")
		}
		m.path, m.args = path, cfg.Command[1:]
	} else {
		path, err := find(cfg.Name)
		if err != nil {
			return nil, m.absent(missing(cfg.Name), "install it, or put it on PATH")
		}
		m.path = path
		short := strings.TrimPrefix(filepath.Base(cfg.Name), Prefix)
		prefix = "AG_PROVIDER_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(short)) + "_"
	}
	if abs, err := filepath.Abs(m.path); err == nil {
		m.path = abs
	}
	m.env = proc.Environment(cfg.Env, prefix)
	if err := m.describe(ctx); err != nil {
		return nil, err
	}
	m.engine = constraint.Engine{Name: m.name(), Kinds: m.kinds(), Declared: constraint.DeclaredPlugin, Where: cfg.Where}
	return m, nil
}

func find(name string) (string, error) {
	if strings.ContainsAny(name, `/\`) {
		return exec.LookPath(name)
	}
	return exec.LookPath(Prefix + strings.TrimPrefix(name, Prefix))
}

func missing(name string) string {
	if strings.ContainsAny(name, `/\`) {
		return name
	}
	return Prefix + strings.TrimPrefix(name, Prefix) + " on PATH"
}

func (m *Model) absent(what, hint string) error {
	return m.fault(model.Unavailable, model.NotSent, fmt.Errorf("there is no program %s; %s", what, hint))
}

// name is what people call the plug-in.
func (m *Model) name() string {
	switch {
	case m.cfg.Name != "":
		return strings.TrimPrefix(filepath.Base(m.cfg.Name), Prefix)
	case len(m.cfg.Command) > 0:
		return filepath.Base(m.cfg.Command[0])
	}
	return "plug-in"
}

// kinds are the constraints it is declared to hold. The protocol has a place
// for the first three; llg is ours, and only for those that say so.
func (m *Model) kinds() []constraint.Kind {
	known := []constraint.Kind{constraint.JSON, constraint.Regex, constraint.Lark, constraint.LLG}
	declared := m.cfg.Constraints
	switch {
	case declared != nil:
	case m.about.Constraints != nil:
		declared = m.about.Constraints
	case m.about.Constrains:
		return known[:3]
	}
	var kinds []constraint.Kind
	for _, k := range known {
		for _, d := range declared {
			if k == d {
				kinds = append(kinds, k)
				break
			}
		}
	}
	return kinds
}

// describe runs the program with --describe. Only a cancelled ctx is an error.
func (m *Model) describe(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	p, err := m.start(limited, nil, "--describe")
	if err != nil {
		return err
	}
	out, _ := p.readAll(describeBytes)
	p.end(0)
	if ctx.Err() != nil {
		return m.stopped(ctx.Err(), model.NotSent, nil)
	}
	var about description
	if json.Unmarshal(out, &about) == nil {
		m.about = about
	}
	return nil
}

// Capabilities are what the settings and the description declare.
func (m *Model) Capabilities() model.Capabilities {
	c := model.Capabilities{Engine: m.engine, Tools: m.about.Tools, Streaming: true,
		Context: m.cfg.Context, Parallel: cap(m.slots)}
	if c.Context == 0 {
		c.Context = max(m.about.MaxSeqLen, 0)
	}
	return c
}

// Identity names the plug-in and the model it is asked for.
func (m *Model) Identity() model.Identity {
	id := model.Identity{Engine: "plugin " + m.name(), Name: m.cfg.Model}
	if id.Name == "" {
		id.Name = strings.ToValidUTF8(m.about.Model, "\uFFFD")
	}
	if id.Name == "" {
		id.Name = m.name()
	}
	return id
}

// Render cannot know the prompt that the plug-in makes of the messages.
func (m *Model) Render(context.Context, *model.Request) (model.Rendered, error) {
	return model.Rendered{}, model.ErrNotRendered
}

// Close makes later calls fail; it is idempotent.
func (m *Model) Close() error {
	m.closed.Store(true)
	return nil
}

func (m *Model) fault(kind model.ErrorKind, d model.Delivery, err error) *model.Error {
	return &model.Error{Kind: kind, Delivery: d, Model: m.name(), Err: err}
}

func (m *Model) stopped(err error, d model.Delivery, partial *model.Response) *model.Error {
	kind := model.Cancelled
	if errors.Is(err, context.DeadlineExceeded) {
		kind = model.TimedOut
	}
	e := m.fault(kind, d, err)
	e.Partial = partial
	return e
}

// said is a text of the plug-in as a message may quote it: one line, short,
// without secrets.
func (m *Model) said(text string) string {
	text = m.env.Redact(strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > saidBytes {
		cut := len(text) - saidBytes
		text = "…" + strings.ToValidUTF8(text[cut:], "")
	}
	return text
}

// begin is the beginning of a line as a message may quote it.
func (m *Model) begin(line []byte) string {
	text := m.env.Redact(strings.ToValidUTF8(string(line), "\uFFFD")) // before it is cut
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}
