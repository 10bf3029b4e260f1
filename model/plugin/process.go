package plugin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"agentgraph/internal/proc"
	"agentgraph/model"
)

// process is one run of the program. It belongs to the goroutine that started
// it, until end.
type process struct {
	cmd    *exec.Cmd
	stdout io.ReadCloser
	lines  *bufio.Reader
	stderr *proc.Tail
	read   int // bytes of stdout so far
	stop   func() bool
	waited chan struct{}
	once   sync.Once
}

// start runs the program with stdin; it is killed when ctx ends.
func (m *Model) start(ctx context.Context, stdin []byte, more ...string) (*process, error) {
	cmd := exec.Command(m.path, append(append([]string(nil), m.args...), more...)...)
	cmd.Dir, cmd.Env = m.cfg.Dir, m.env.Vars
	cmd.Stdin = bytes.NewReader(stdin)
	p := &process{cmd: cmd, stderr: &proc.Tail{Keep: stderrBytes}, waited: make(chan struct{})}
	cmd.Stderr = p.stderr
	// What it left behind may hold the pipes.
	cmd.WaitDelay = exitGrace
	proc.OwnGroup(cmd)
	// The kernel kills it when this thread ends, so that none outlives us.
	runtime.LockOSThread()
	var err error
	if p.stdout, err = cmd.StdoutPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		runtime.UnlockOSThread()
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, m.fault(model.Unavailable, model.NotSent, fmt.Errorf("%s cannot be started: %w", m.path, err))
	}
	p.lines = bufio.NewReaderSize(p.stdout, 64<<10)
	p.stop = context.AfterFunc(ctx, func() {
		proc.Kill(cmd)
		p.stdout.Close() // a process outside the group may hold the other end
	})
	return p, nil
}

// errLong is the error of line for one that is over its bound.
var errLong = errors.New("too long")

// line returns the next line without its end; last is true for the one at the
// end of the stream that has none.
func (p *process) line() (text []byte, last bool, err error) {
	for {
		part, err := p.lines.ReadSlice('\n')
		if p.read += len(part); p.read > replyBytes || len(text)+len(part) > lineBytes {
			return nil, false, errLong
		}
		text = append(text, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(text[:len(text)-1], []byte("\r")), false, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(text) > 0:
			return text, true, nil
		default:
			return nil, true, io.EOF // or the pipe was closed, which is the same
		}
	}
}

func (p *process) readAll(limit int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(p.lines, int64(limit)))
}

// end gives the process some time to end by itself, then kills it and its
// group. It returns how it ended, as people say it.
func (p *process) end(grace time.Duration) string {
	p.once.Do(func() {
		defer runtime.UnlockOSThread()
		if grace > 0 {
			// Whoever still writes must not wait for a reader.
			go io.Copy(io.Discard, p.lines)
		}
		kill := time.AfterFunc(grace, func() { proc.Kill(p.cmd) })
		_ = p.cmd.Wait() // the state says it
		kill.Stop()
		p.stop()
		proc.Kill(p.cmd) // what it started
		close(p.waited)
	})
	if s := p.cmd.ProcessState; s != nil {
		return s.String()
	}
	return "unknown"
}
