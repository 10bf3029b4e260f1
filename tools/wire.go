package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxReply bounds one reply of an MCP server over HTTP, as the SDK bounds a
// message on stdin and stdout.
const maxReply = 16 << 20

var errLargeReply = fmt.Errorf("the server's reply is larger than %d MiB and was dropped", maxReply>>20)

// wire looks at what a server sends. It bounds replies over HTTP, and keeps the
// schemas of the tools as they were sent: the SDK reads them into maps, and the
// order of members is meaning, for a model writes arguments in that order.
type wire struct {
	// whole ends when a reply is larger than maxReply.
	whole context.Context
	end   context.CancelFunc

	mu     sync.Mutex
	off    bool // the tools are listed
	byName map[string]json.RawMessage
	bodies []*replyBody
}

func newWire() *wire {
	w := &wire{}
	w.whole, w.end = context.WithCancel(context.Background())
	return w
}

// tooLarge reports that a reply was dropped.
func (w *wire) tooLarge() bool { return w.whole.Err() != nil }

// learn takes the schemas out of the result of tools/list; any other result is
// none.
func (w *wire) learn(result json.RawMessage) {
	var list struct {
		Tools []struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		} `json:"tools"`
	}
	if json.Unmarshal(result, &list) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byName == nil {
		w.byName = map[string]json.RawMessage{}
	}
	for _, t := range list.Tools {
		if len(w.byName) < maxServerTools {
			w.byName[t.Name] = t.InputSchema
		}
	}
}

// schema is that of a tool, as sent where it is the one that the SDK read.
func (w *wire) schema(t *mcp.Tool) (json.RawMessage, error) {
	w.mu.Lock()
	raw := w.byName[t.Name]
	w.mu.Unlock()
	var sent any
	if len(raw) > 0 && json.Unmarshal(raw, &sent) == nil && reflect.DeepEqual(sent, t.InputSchema) {
		return raw, nil
	}
	return json.Marshal(t.InputSchema)
}

// listed ends the collecting: replies to calls are none of its business.
func (w *wire) listed() {
	w.mu.Lock()
	bodies := w.bodies
	w.off, w.bodies = true, nil
	w.mu.Unlock()
	for _, b := range bodies {
		for _, msg := range b.messages() {
			var m struct {
				Result json.RawMessage `json:"result"`
			}
			if json.Unmarshal(msg, &m) == nil && len(m.Result) > 0 {
				w.learn(m.Result)
			}
		}
	}
}

// listening is a transport over stdin and stdout that shows what arrives.
type listening struct {
	mcp.Transport
	wire *wire
}

func (l *listening) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := l.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &listeningConn{c, l.wire}, nil
}

type listeningConn struct {
	mcp.Connection
	wire *wire
}

func (c *listeningConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if resp, ok := msg.(*jsonrpc.Response); ok && err == nil {
		c.wire.mu.Lock()
		off := c.wire.off
		c.wire.mu.Unlock()
		if !off {
			c.wire.learn(resp.Result)
		}
	}
	return msg, err
}

// watch bounds a reply over HTTP and keeps it while tools are listed. (The SDK
// does not know its own HTTP connection when that is wrapped.)
func (w *wire) watch(resp *http.Response) {
	b := &replyBody{ReadCloser: resp.Body, over: w.end, events: strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")}
	w.mu.Lock()
	if !w.off && len(w.bodies) < maxServerTools {
		b.keep = true
		w.bodies = append(w.bodies, b)
	}
	w.mu.Unlock()
	resp.Body = b
}

// replyBody is the body of a reply, read up to a bound.
type replyBody struct {
	io.ReadCloser
	over   func()
	events bool
	size   int

	mu   sync.Mutex
	keep bool
	kept bytes.Buffer
}

func (b *replyBody) Read(p []byte) (int, error) {
	if b.size >= maxReply {
		b.over()
		return 0, errLargeReply
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), maxReply-b.size)])
	b.size += n
	b.mu.Lock()
	if b.keep {
		b.kept.Write(p[:n])
	}
	b.mu.Unlock()
	return n, err
}

// messages are the JSON texts of what was read, which is not kept any longer.
func (b *replyBody) messages() [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := bytes.Clone(b.kept.Bytes())
	b.keep, b.kept = false, bytes.Buffer{}
	if !b.events {
		return [][]byte{text}
	}
	var list [][]byte
	var data []byte
	for line := range bytes.Lines(append(text, '\n')) {
		line = bytes.TrimRight(line, "\r\n")
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimSpace(rest)...), '\n')
		} else if len(line) == 0 && len(data) > 0 {
			list, data = append(list, data), nil
		}
	}
	if len(data) > 0 {
		list = append(list, data)
	}
	return list
}
