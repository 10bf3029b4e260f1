package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentgraph/model"
)

// Bounds of --describe and --help.
const (
	describeTimeout = 15 * time.Second
	describeBytes   = 256 << 10
	guidanceBytes   = 16 << 10
)

// programPrefix is what AgentGraph's tools are called: the tool X is the
// program ag-tool-X.
const programPrefix = "ag-tool-"

// program is a tool that is a program: --describe prints what it is, --help a
// text for the system message; otherwise it reads its arguments as JSON from
// stdin and prints its result.
type program struct {
	path string
	args []string
	dir  string
	env  programEnv
	*described
}

// described is what a program says about itself.
type described struct {
	print    string // of the file that said it
	spec     model.Tool
	guidance string
}

func (b *Box) openProgram(ctx context.Context, c Config, at Place, env programEnv) (Tool, error) {
	path, err := findProgram(c.Command[0])
	if err != nil {
		return nil, &OpenError{Tool: c.Command[0], Err: err, Hint: "install it, put it on PATH, or write a path with a '/'"}
	}
	p := &program{path: path, args: c.Command[1:], dir: c.Dir, env: env}
	if p.dir == "" {
		p.dir = at.Dir
	}
	key := strings.Join(slices.Concat([]string{path, p.dir}, p.args, env.vars), "\x00")
	print := p.filePrint()
	b.mu.Lock()
	d := b.programs[key]
	b.mu.Unlock()
	if d == nil || d.print != print {
		if d, err = p.describe(ctx); err != nil {
			return nil, &OpenError{Tool: c.Command[0], Err: err,
				Hint: "--describe must print {\"name\", \"description\", \"parameters\"} as JSON"}
		}
		d.print = print
		b.mu.Lock()
		if b.programs == nil {
			b.programs = map[string]*described{}
		}
		b.programs[key] = d
		b.mu.Unlock()
	}
	p.described = d
	return p, nil
}

// findProgram looks for a program by path, or by name on PATH, also under the
// name of AgentGraph's tools.
func findProgram(name string) (string, error) {
	if strings.ContainsAny(name, `/\`) {
		return exec.LookPath(name)
	}
	if path, err := exec.LookPath(programPrefix + name); err == nil {
		return filepath.Abs(path)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no program %s%s and no program %s", programPrefix, name, name)
	}
	return filepath.Abs(path)
}

// filePrint changes when the program or a script among its arguments does.
func (p *program) filePrint() string {
	var b strings.Builder
	for _, f := range append([]string{p.path}, p.args...) {
		if !filepath.IsAbs(f) && p.dir != "" {
			f = filepath.Join(p.dir, f)
		}
		if info, err := os.Stat(f); err == nil {
			fmt.Fprintf(&b, "%d %d\n", info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

func (p *program) describe(ctx context.Context) (*described, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	out, err := p.exec(ctx, nil, describeBytes, "--describe")
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it said nothing for %v", describeTimeout)
		}
		return nil, fmt.Errorf("--describe: %w", err)
	}
	var spec model.Tool
	dec := json.NewDecoder(strings.NewReader(out.Text))
	if err := dec.Decode(&spec); err != nil {
		return nil, fmt.Errorf("--describe: not the JSON of a tool: %v", err)
	}
	if spec.Name == "" {
		return nil, errors.New("--describe: it gives no name")
	}
	if spec.Parameters, err = parameters(spec.Parameters); err != nil {
		return nil, fmt.Errorf("--describe: %w", err)
	}
	d := &described{spec: spec}
	if help, err := p.exec(ctx, nil, guidanceBytes, "--help"); err == nil {
		d.guidance = strings.TrimRight(strings.ToValidUTF8(help.Text, "\uFFFD"), "\r\n \t")
	}
	return d, nil
}

// noParameters is the schema of a tool that takes none.
const noParameters = `{"type":"object","properties":{},"additionalProperties":false}`

// parameters makes a tool's schema one of an object.
func parameters(p json.RawMessage) (json.RawMessage, error) {
	var compact bytes.Buffer
	if json.Compact(&compact, p) == nil { // what is no JSON is told of below
		p = compact.Bytes()
	}
	switch {
	case len(p) == 0, string(p) == "null", string(p) == "{}":
		return json.RawMessage(noParameters), nil
	case p[0] != '{':
		return nil, errors.New("the parameters are no JSON object")
	}
	var head struct {
		Type json.RawMessage `json:"type"`
	}
	if err := json.Unmarshal(p, &head); err != nil {
		return nil, fmt.Errorf("the parameters: %w", err)
	}
	if len(head.Type) > 0 && string(head.Type) != `"object"` {
		return nil, fmt.Errorf("the parameters are of type %s, and arguments are an object", head.Type)
	}
	if len(head.Type) == 0 {
		// Arguments are an object whether the schema says so or not.
		rest := bytes.TrimSpace(p[1:])
		p = append([]byte(`{"type":"object",`), rest...)
	}
	return json.RawMessage(p), nil
}

func (p *program) Spec() model.Tool { return p.spec }

func (p *program) Guidance() string { return p.guidance }

func (p *program) Call(ctx context.Context, c Call) (Output, error) {
	args := c.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	return p.exec(ctx, args, c.Keep)
}

// exec runs the program to its end and the end of everything it started.
func (p *program) exec(ctx context.Context, stdin []byte, keep int, more ...string) (Output, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	args := append(append([]string(nil), p.args...), more...)
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir, cmd.Env = p.dir, p.env.vars
	cmd.Stdin = bytes.NewReader(stdin)
	stdout := newCollector(keep, maxOutput, func() { cancel(errTooMuch) })
	stderr := &tail{keep: detailBytes}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	ownGroup(cmd)
	cmd.Cancel = func() error {
		killGroup(cmd)
		return nil
	}
	// A process it left behind may hold the pipes.
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Start()
	if err != nil {
		return Output{}, fmt.Errorf("it cannot be started: %w", unpath(err))
	}
	err = cmd.Wait()
	killGroup(cmd)

	out := Output{Text: string(stdout.kept), Bytes: stdout.size, SHA256: stdout.hash()}
	if errors.Is(context.Cause(ctx), errTooMuch) {
		return out, errTooMuch // its end was ours, however it took it
	}
	if state := cmd.ProcessState; state != nil && state.Exited() {
		status := state.ExitCode()
		out.ExitStatus = &status
	}
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success():
		return out, nil
	case errors.As(err, &exit) && out.ExitStatus != nil:
		return out, fmt.Errorf("it failed with exit status %d%s", *out.ExitStatus, because(stderr.without(p.env.secrets), redact(p.env.secrets, out.Text, false, out.Bytes > int64(len(out.Text)))))
	case errors.As(err, &exit):
		return out, fmt.Errorf("it was ended: %s%s", exit.ProcessState, because(stderr.without(p.env.secrets), redact(p.env.secrets, out.Text, false, out.Bytes > int64(len(out.Text)))))
	}
	return out, err
}

// because is what a program said when it failed: on stderr, else on stdout.
func because(texts ...string) string {
	for _, t := range texts {
		if t = strings.TrimSpace(cutText(t, detailBytes)); t != "" {
			return ": " + t
		}
	}
	return ""
}

// tail keeps the end of what is written.
type tail struct {
	keep int
	buf  []byte
	cut  bool // something before it is lost
}

// without is the end without secrets; the values may be cut at its beginning.
func (t *tail) without(secrets []secret) string {
	text := redact(secrets, strings.ToValidUTF8(string(t.buf), "\uFFFD"), t.cut, false)
	if n := len(text) - t.keep; n > 0 {
		text = strings.ToValidUTF8(text[n:], "")
	}
	return text
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if n := len(t.buf); n > 2*t.keep {
		t.buf, t.cut = append(t.buf[:0], t.buf[n-t.keep:]...), true
	}
	return len(p), nil
}

func unpath(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
