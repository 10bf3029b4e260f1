package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/serve/internal/frame"
)

// batchVersion is the one version of the protocol in which clients may send
// arrays of messages.
const batchVersion = "2025-03-26"

// lastAnswers is how long calls have that run when the input ends.
const lastAnswers = time.Second

// stdio is a transport over stdin and stdout. The SDK's own ends the
// conversation at the first line that it cannot read; this one answers it.
type stdio struct {
	in   io.Reader
	out  io.Writer
	warn func(error)
}

func (t *stdio) Connect(context.Context) (sdk.Connection, error) {
	c := &stdioConn{
		reader: frame.NewReader(t.in, maxMessage), out: t.out, warn: t.warn,
		incoming: make(chan incoming), closed: make(chan struct{}),
	}
	go c.readAll()
	return c, nil
}

// stdioConn hands messages on that the SDK can read.
type stdioConn struct {
	reader   *frame.Reader
	warn     func(error)
	incoming chan incoming
	closed   chan struct{}
	once     sync.Once
	open     frame.Open

	mu    sync.Mutex // of what goes out
	out   io.Writer
	begun bool // the client has begun as the protocol wants it
}

type incoming struct {
	msg jsonrpc.Message
	err error
}

// readAll reads until the end of the input; a read from stdin cannot be broken
// off.
func (c *stdioConn) readAll() {
	for {
		msg, err := c.next()
		if err != nil {
			// What was asked before the end is answered, where that is soon: the
			// SDK answers nothing more when it knows of the end.
			c.open.Settle(lastAnswers)
		}
		select {
		case c.incoming <- incoming{msg, err}:
		case <-c.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// next is the next message for the SDK; what is none is answered here.
func (c *stdioConn) next() (jsonrpc.Message, error) {
	for {
		m, err := c.reader.Next()
		if err != nil {
			return nil, err
		}
		f := m.Fault
		var msg jsonrpc.Message
		if f == nil && m.Kind != frame.Complaint {
			msg, f = c.decode(m)
		}
		switch {
		case f != nil:
			c.tell(fmt.Errorf("message %d of the client cannot be used: %w", m.N, f))
			if err := c.line(f.Response()); err != nil {
				return nil, err
			}
		case msg == nil:
			c.tell(fmt.Errorf("message %d of the client says that it could not read one of this program", m.N))
		default:
			return msg, nil
		}
	}
}

func (c *stdioConn) decode(m frame.Message) (jsonrpc.Message, *frame.Fault) {
	msg, err := jsonrpc.DecodeMessage(m.Line)
	if err != nil {
		return nil, m.Mistyped()
	}
	if m.Kind != frame.Request {
		return msg, nil
	}
	if f := c.open.Begin(m.ID); f != nil {
		return nil, f
	}
	if m.Method == "initialize" || m.Method == "server/discover" {
		var p struct {
			Params struct{ ProtocolVersion string }
		}
		_ = json.Unmarshal(m.Line, &p) // the SDK says what is wrong with it
		c.reader.Batches = p.Params.ProtocolVersion == batchVersion
		c.mu.Lock()
		c.begun = true
		c.mu.Unlock()
	}
	return msg, nil
}

func (c *stdioConn) tell(err error) {
	if c.warn != nil {
		c.warn(err)
	}
}

func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.closed:
		return nil, io.EOF
	case in := <-c.incoming:
		return in.msg, in.err
	}
}

func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	resp, _ := msg.(*jsonrpc.Response)
	if resp != nil {
		msg = c.withCode(resp)
	}
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	write := func() error { return c.line(b) }
	if resp != nil {
		if id, err := json.Marshal(resp.ID.Raw()); err == nil {
			return c.open.Answer(id, write)
		}
	}
	return write()
}

// withCode gives an error without a code one: 0 is none.
func (c *stdioConn) withCode(resp *jsonrpc.Response) *jsonrpc.Response {
	var coded *jsonrpc.Error
	if resp.Error == nil || errors.As(resp.Error, &coded) && coded.Code != 0 {
		return resp
	}
	c.mu.Lock()
	begun := c.begun
	c.mu.Unlock()
	code := int64(jsonrpc.CodeInternalError)
	if !begun {
		code = jsonrpc.CodeInvalidRequest // it came before initialize
	}
	return &jsonrpc.Response{ID: resp.ID, Error: &jsonrpc.Error{Code: code, Message: resp.Error.Error()}}
}

func (c *stdioConn) line(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(append(b, '\n'))
	return err
}

func (c *stdioConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (c *stdioConn) SessionID() string { return "" }
