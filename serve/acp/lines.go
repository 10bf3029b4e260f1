package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	acp "github.com/coder/acp-go-sdk"

	"agentgraph/serve/internal/frame"
)

// maxLine bounds one message. The connection takes lines of 10 MiB with their
// end.
const maxLine = 10<<20 - 1

// cancelRequest is carried out by the connection.
const cancelRequest = "$/cancel_request"

// lines hands the client's messages on, one at a time, and answers what is none.
//
// The connection gives each request a goroutine and the notifications another,
// so a cancel could overtake the prompt before it, or the prompt after it, and a
// session/new the initialize before it. The line that follows one of these is
// held back until that is known.
type lines struct {
	in   *frame.Reader
	out  *output
	warn func(error)
	rest []byte
	open frame.Open

	ready   chan struct{}
	stopped chan struct{}
	once    sync.Once

	mu     sync.Mutex
	await  chan struct{} // of the last line, where it is one to wait for
	begun  bool          // initialize was carried out
	failed error
}

func newLines(in io.Reader, out *output, warn func(error)) *lines {
	l := &lines{in: frame.NewReader(in, maxLine), out: out, warn: warn, ready: make(chan struct{}), stopped: make(chan struct{})}
	out.open = &l.open
	return l
}

// begin lets reading start.
func (l *lines) begin() { close(l.ready) }

// stop ends reading after the line that is being waited for.
func (l *lines) stop() { l.once.Do(func() { close(l.stopped) }) }

// known says that the last prompt can be cancelled now, or that the last
// cancel or initialize was carried out.
func (l *lines) known() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.await != nil {
		close(l.await)
		l.await = nil
	}
}

// initialized lets requests other than initialize through.
func (l *lines) initialized() {
	l.mu.Lock()
	l.begun = true
	l.mu.Unlock()
}

// failure is why reading ended, nil at the end of the input.
func (l *lines) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Read returns bytes of one line. Only the connection's reader calls it.
func (l *lines) Read(p []byte) (int, error) {
	<-l.ready
	for len(l.rest) == 0 {
		l.mu.Lock()
		await := l.await
		l.mu.Unlock()
		if await != nil {
			select {
			case <-await:
			case <-l.stopped:
			}
		}
		select {
		case <-l.stopped:
			return 0, io.EOF
		default:
		}
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next reads one line; what is no message is answered here.
func (l *lines) next() error {
	m, err := l.in.Next()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			l.mu.Lock()
			l.failed = err
			l.mu.Unlock()
		}
		return err
	}
	f := m.Fault
	if f == nil {
		f = l.check(m)
	}
	if f != nil {
		l.warn(fmt.Errorf("message %d of the client cannot be used: %w", m.N, f))
		return l.out.line(f.Response())
	}
	switch {
	case m.Kind == frame.Complaint:
		l.warn(fmt.Errorf("message %d of the client says that it could not read one of this program", m.N))
		return nil
	case m.Kind == frame.Notification && !l.isBegun():
		l.warn(fmt.Errorf("message %d of the client is not used: there was no initialize before it", m.N))
		return nil
	case m.Kind == frame.Notification && m.Method == acp.AgentMethodSessionPrompt:
		l.warn(fmt.Errorf("message %d of the client is a prompt without an id, which nobody could answer", m.N))
		return nil
	case m.Kind == frame.Notification && m.Method != acp.AgentMethodSessionCancel && m.Method != cancelRequest:
		return nil // it means nothing here, and the connection breaks off at 1024 that wait
	case m.Method == acp.AgentMethodSessionPrompt, m.Method == acp.AgentMethodInitialize, m.Method == acp.AgentMethodSessionCancel && m.Kind == frame.Notification:
		l.mu.Lock()
		l.await = make(chan struct{})
		l.mu.Unlock()
	}
	l.rest = append(m.Line[:len(m.Line):len(m.Line)], '\n')
	return nil
}

func (l *lines) isBegun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun
}

// check says why a message is not handed on: the connection cannot read it, it
// comes too early, or its id is in use.
func (l *lines) check(m frame.Message) *frame.Fault {
	var whole struct {
		JSONRPC string
		ID      json.RawMessage
		Method  string
		Error   *acp.RequestError
	}
	if err := json.Unmarshal(m.Line, &whole); err != nil {
		return m.Mistyped()
	}
	if m.Kind != frame.Request {
		return nil
	}
	if m.Method != acp.AgentMethodInitialize && !l.isBegun() {
		return &frame.Fault{Code: frame.InvalidRequest, ID: m.ID, Reason: "there was no initialize before it"}
	}
	return l.open.Begin(m.ID)
}

// output is what goes to the client: whole lines, of the connection and of
// lines.
type output struct {
	mu   sync.Mutex
	w    io.Writer
	open *frame.Open
}

// Write writes one line, as the connection does.
func (o *output) Write(p []byte) (n int, err error) {
	write := func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		n, err = o.w.Write(p)
		return err
	}
	if id := frame.ResponseID(p); id != nil {
		err = o.open.Answer(id, write)
		return n, err
	}
	err = write()
	return n, err
}

func (o *output) line(b []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := o.w.Write(append(b, '\n'))
	return err
}
