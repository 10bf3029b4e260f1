package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"agentgraph/internal/proc"
)

// supervisor is the other end of Supervise.
type supervisor struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	reports chan report // closed at its end
	stderr  *proc.Tail
	grace   time.Duration
	server  int  // process id
	ended   bool // it said so; read after waited
	once    sync.Once
	waited  chan struct{}
}

func (s *Server) startSupervisor() (*supervisor, *Error) {
	wrong := func(err error) *Error {
		return &Error{Msg: fmt.Sprintf("the server's supervisor cannot be started: %v", err), Retry: true}
	}
	words, err := s.supervisorCommand()
	if err != nil {
		return nil, wrong(err)
	}
	cmd := exec.Command(words[0], words[1:]...)
	// The name under which this program finds its commands, whatever its file
	// is called.
	cmd.Args[0] = "agentgraph"
	cmd.Env = proc.Environment(s.cfg.Env, "").Vars
	sup := &supervisor{cmd: cmd, reports: make(chan report, 4), stderr: &proc.Tail{Keep: 1 << 10}, grace: s.cfg.grace, waited: make(chan struct{})}
	cmd.Stderr = sup.stderr
	ownSession(cmd)
	if sup.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, wrong(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, wrong(err)
	}
	line, err := json.Marshal(s.job())
	if err != nil {
		return nil, wrong(err)
	}
	if err := cmd.Start(); err != nil {
		return nil, wrong(err)
	}
	if _, err := sup.stdin.Write(append(line, '\n')); err != nil {
		sup.end()
		return nil, wrong(err)
	}
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 64<<10)
		for lines.Scan() {
			var r report
			if json.Unmarshal(lines.Bytes(), &r) == nil {
				sup.ended = sup.ended || r.Ended != ""
				sup.reports <- r
			}
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // what it came to is in the reports
		close(sup.waited)
		close(sup.reports)
	}()
	return sup, nil
}

// end lets the supervisor stop its server and waits for both. One that does
// not end in time is killed, and its server with it.
func (s *supervisor) end() {
	s.once.Do(func() {
		s.stdin.Close()
		select {
		case <-s.waited:
		case <-time.After(s.grace + 5*time.Second):
			proc.Kill(s.cmd)
		}
		for range s.reports { // to its end
		}
		if !s.ended {
			killGroup(s.server)
		}
	})
}

// said is the end of the supervisor's stderr; it has ended.
func (s *supervisor) said() string {
	<-s.waited
	if text := strings.TrimSpace(s.stderr.String()); text != "" {
		return ": " + text
	}
	return ""
}
