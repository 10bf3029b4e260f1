package runner

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"agentgraph/agents"
	"agentgraph/tools"
)

// Command is what a client asks of a running runner.
type Command string

// The commands. Stop without an agent ends the runner at once, Finish lets
// running turns end first. Stop with an agent stops its turns and pauses it;
// they run again after Resume.
const (
	CmdStatus Command = "status"
	CmdStop   Command = "stop"
	CmdFinish Command = "finish"
	CmdPause  Command = "pause"
	CmdResume Command = "resume"
	CmdRetry  Command = "retry"
	CmdReload Command = "reload"
	// CmdApprove decides about the call that waits under ID; without one it
	// lists those that wait.
	CmdApprove Command = "approve"
)

// Request is one line of JSON to the socket.
type Request struct {
	Command Command `json:"command"`
	// Agent of stop, pause and resume; empty means all.
	Agent string       `json:"agent,omitempty"`
	Retry RetryOptions `json:"retry,omitzero"`
	// ID and Deny of approve.
	ID   string `json:"id,omitempty"`
	Deny bool   `json:"deny,omitempty"`
}

// Response is one line of JSON back.
type Response struct {
	OK      bool             `json:"ok"`
	Error   string           `json:"error,omitempty"`
	Status  *Status          `json:"status,omitempty"`
	Retry   *RetryResult     `json:"retry,omitempty"`
	Waiting []tools.Question `json:"waiting,omitempty"`
}

// maxLine bounds a request and a response.
const maxLine = 16 << 20

// controlServer answers on the socket in .agentgraph/.
type controlServer struct {
	r     *Runner
	ln    net.Listener
	dir   *os.File
	file  os.FileInfo // of the socket
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func socketPath(root string) string { return filepath.Join(root, agents.StateDir, "socket") }

// The longest path a Unix socket may have is short; a longer one is reached
// through the folder's descriptor.
const maxSocketPath = 100

// throughDir returns a short path to the socket; dir is to be closed after
// use, and may be nil.
func throughDir(path string) (short string, dir *os.File, err error) {
	if len(path) <= maxSocketPath {
		return path, nil, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fmt.Errorf("the path %s is too long for a socket", path)
	}
	if dir, err = os.Open(filepath.Dir(path)); err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), dir, nil
}

// listen opens the socket, for this user only. It is called with the graph
// locked, so a socket that is there is a dead one.
func (r *Runner) listen() (*controlServer, error) {
	path := socketPath(r.root)
	if err := os.Chmod(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	short, dir, err := throughDir(path)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("unix", short)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		if ln != nil {
			ln.Close()
		}
		if dir != nil {
			dir.Close()
		}
		return nil, err
	}
	// Its name may be another runner's when it is closed.
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	c := &controlServer{r: r, ln: ln, dir: dir, conns: map[net.Conn]bool{}}
	c.file, _ = os.Lstat(path)
	c.wg.Add(1)
	go c.accept()
	return c, nil
}

func (c *controlServer) accept() {
	defer c.wg.Done()
	for {
		conn, err := c.ln.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		if c.conns == nil {
			c.mu.Unlock()
			conn.Close()
			return
		}
		c.conns[conn] = true
		c.mu.Unlock()
		c.wg.Add(1)
		go c.serve(conn)
	}
}

func (c *controlServer) serve(conn net.Conn) {
	defer c.wg.Done()
	defer func() {
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
		conn.Close()
	}()
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var req Request
		var resp Response
		if err := json.Unmarshal(lines.Bytes(), &req); err != nil {
			resp.Error = "the request is no JSON object: " + err.Error()
		} else {
			resp = c.r.control(req)
		}
		line, err := json.Marshal(resp)
		if err != nil {
			return
		}
		_ = conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
		if _, err := conn.Write(append(line, '\n')); err != nil {
			return
		}
	}
}

func (c *controlServer) close() {
	c.ln.Close()
	c.mu.Lock()
	for conn := range c.conns {
		// What is being answered is answered; what waits for a request ends.
		_ = conn.SetReadDeadline(time.Now())
	}
	c.conns = nil
	c.mu.Unlock()
	c.wg.Wait()
	if now, err := os.Lstat(socketPath(c.r.root)); err == nil && c.file != nil && os.SameFile(now, c.file) {
		_ = os.Remove(socketPath(c.r.root))
	}
	if c.dir != nil {
		c.dir.Close()
	}
}

// control carries out one request.
func (r *Runner) control(req Request) Response {
	fail := func(err error) Response { return Response{Error: err.Error()} }
	switch req.Command {
	case CmdStatus:
		s := r.Status()
		return Response{OK: true, Status: &s}
	case CmdFinish:
		r.Finish()
	case CmdStop:
		if req.Agent == "" {
			r.stop(true)
			r.Finish()
			break
		}
		if err := r.pauseAgent(req.Agent, true, true); err != nil {
			return fail(err)
		}
	case CmdPause, CmdResume:
		if err := r.pauseAgent(req.Agent, req.Command == CmdPause, false); err != nil {
			return fail(err)
		}
	case CmdRetry:
		res, err := r.Retry(req.Retry)
		if err != nil {
			return fail(err)
		}
		return Response{OK: true, Retry: &res}
	case CmdApprove:
		if req.ID == "" {
			return Response{OK: true, Waiting: r.desk.Waiting()}
		}
		if err := r.desk.Decide(req.ID, !req.Deny); err != nil {
			return fail(err)
		}
	case CmdReload:
		r.reload()
		r.tick(true)
	default:
		return fail(fmt.Errorf("unknown command %q", req.Command))
	}
	return Response{OK: true}
}

// pauseAgent pauses or resumes an agent, or all; it holds over restarts. stop
// also ends the turns that run: they are claimed and run again.
func (r *Runner) pauseAgent(name string, on, stop bool) error {
	r.mu.Lock()
	var list []*agentState
	for _, st := range r.agents {
		if name == "" || st.name == name {
			list = append(list, st)
		}
	}
	r.mu.Unlock()
	if len(list) == 0 {
		return fmt.Errorf("no agent is called %q", name)
	}
	for _, st := range list {
		if err := r.ledger.Pause(st.name, on).Wait(r.ctx); err != nil {
			return err
		}
		r.mu.Lock()
		st.paused = on
		if on {
			st.giveUpPlaces()
		}
		if stop {
			st.stopTurns(r.ctx)
		}
		r.activate(st)
		r.pump()
		r.mu.Unlock()
	}
	return nil
}

// ErrNotRunning is the error of Dial when no runner works the graph.
var ErrNotRunning = errors.New("no runner works this graph")

// Client talks to the runner of a graph.
type Client struct {
	conn net.Conn
	in   *bufio.Scanner
}

// Dial connects to the runner of the graph at root.
func Dial(root string) (*Client, error) {
	short, dir, err := throughDir(socketPath(root))
	if err == nil {
		if dir != nil {
			defer dir.Close()
		}
		var conn net.Conn
		if conn, err = net.DialTimeout("unix", short, 5*time.Second); err == nil {
			c := &Client{conn: conn, in: bufio.NewScanner(conn)}
			c.in.Buffer(nil, maxLine)
			return c, nil
		}
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w, %s; start one with 'agentgraph run %s'", ErrNotRunning, root, root)
	}
	return nil, fmt.Errorf("%w: %v; start one with 'agentgraph run %s'", ErrNotRunning, err, root)
}

// Do sends a request and returns its response. A response that is not OK is
// an error.
func (c *Client) Do(req Request) (Response, error) {
	line, err := json.Marshal(req)
	if err != nil {
		return Response{}, err
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return Response{}, fmt.Errorf("talking to the runner: %w", err)
	}
	if !c.in.Scan() {
		err := c.in.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return Response{}, fmt.Errorf("talking to the runner: %w", err)
	}
	var resp Response
	if err := json.Unmarshal(c.in.Bytes(), &resp); err != nil {
		return Response{}, fmt.Errorf("talking to the runner: %w", err)
	}
	if !resp.OK {
		return resp, errors.New(resp.Error)
	}
	return resp, nil
}

// Status asks what the runner is doing.
func (c *Client) Status() (Status, error) {
	resp, err := c.Do(Request{Command: CmdStatus})
	if err != nil || resp.Status == nil {
		return Status{}, errors.Join(err)
	}
	return *resp.Status, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }
