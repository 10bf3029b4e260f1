package acp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	acp "github.com/coder/acp-go-sdk"
)

// maxLine bounds one message.
const maxLine = 10 << 20

// lines hands the client's messages on, one at a time. The connection gives
// each request a goroutine and the notifications another, so a cancel could
// overtake the prompt before it, or the prompt after it. The line that follows
// a prompt or a cancel is held back until that is known.
type lines struct {
	scan *bufio.Scanner
	warn func(error)
	rest []byte
	n    int

	ready   chan struct{}
	stopped chan struct{}
	once    sync.Once

	mu    sync.Mutex
	await chan struct{} // of the last line, a prompt or a cancel
	err   error
}

func newLines(in io.Reader, warn func(error)) *lines {
	l := &lines{scan: bufio.NewScanner(in), warn: warn, ready: make(chan struct{}), stopped: make(chan struct{})}
	l.scan.Buffer(make([]byte, 0, 64<<10), maxLine)
	return l
}

// begin lets reading start.
func (l *lines) begin() { close(l.ready) }

// stop ends reading after the line that is being waited for.
func (l *lines) stop() { l.once.Do(func() { close(l.stopped) }) }

// known says that the last prompt can be cancelled now, or that the last
// cancel was carried out.
func (l *lines) known() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.await != nil {
		close(l.await)
		l.await = nil
	}
}

// failure is why reading ended, nil at the end of the input.
func (l *lines) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
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

// next reads one line; what is no message is left out.
func (l *lines) next() error {
	if !l.scan.Scan() {
		err := l.scan.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("message %d of the client has more than %d bytes", l.n+1, maxLine)
		}
		l.mu.Lock()
		l.err = err
		l.mu.Unlock()
		if err == nil {
			err = io.EOF
		}
		return err
	}
	l.n++
	var m struct {
		ID     *json.RawMessage `json:"id"`
		Method string           `json:"method"`
	}
	line := l.scan.Bytes()
	switch err := json.Unmarshal(line, &m); {
	case len(line) == 0:
		return nil
	case err != nil:
		l.warn(fmt.Errorf("message %d of the client is no JSON-RPC: %w", l.n, err))
		return nil
	case m.Method == acp.AgentMethodSessionPrompt && m.ID == nil:
		l.warn(fmt.Errorf("message %d of the client is a prompt without an id, which nobody could answer", l.n))
		return nil
	case m.Method == acp.AgentMethodSessionPrompt, m.Method == acp.AgentMethodSessionCancel:
		l.mu.Lock()
		l.await = make(chan struct{})
		l.mu.Unlock()
	}
	l.rest = append(line[:len(line):len(line)], '\n')
	return nil
}
