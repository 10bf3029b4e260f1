package frame

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is what a message is.
type Kind int

// A Complaint is the other side's answer to something of ours that it could not
// read: an error without an id. Nobody waits for it.
const (
	Request Kind = iota + 1
	Notification
	Response
	Complaint
)

// Message is one message, or with Fault set something that is none.
type Message struct {
	N      int    // of the line it stood in
	Line   []byte // without a line's end
	Kind   Kind
	ID     json.RawMessage
	Method string
	Fault  *Fault
}

// The codes of JSON-RPC that are used here.
const (
	ParseError     = -32700
	InvalidRequest = -32600
)

// Fault is what is wrong with a line. Its reason repeats nothing of the line.
type Fault struct {
	Code   int
	Reason string
	ID     json.RawMessage // of the request, where it can be told
}

func (f *Fault) Error() string { return f.Reason }

// Response is the answer to it, without a line's end.
func (f *Fault) Response() []byte {
	id := f.ID
	if id == nil {
		id = json.RawMessage("null")
	}
	message := "the message cannot be used: " + f.Reason
	if f.Code == ParseError {
		message = "the message cannot be read: " + f.Reason
	}
	b, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   any             `json:"error"`
	}{"2.0", id, struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{f.Code, message}})
	if err != nil {
		panic("frame: " + err.Error()) // strings, and an id that was JSON
	}
	return b
}

// Mistyped is the fault of a message that the protocol's own reader refuses.
func (m Message) Mistyped() *Fault {
	f := &Fault{Code: InvalidRequest, Reason: "a member has a type that the protocol does not know"}
	if m.Kind == Request {
		f.ID = m.ID
	}
	return f
}

// read makes a message of a line.
func read(line []byte) Message {
	if !utf8.Valid(line) {
		return Message{Fault: &Fault{Code: ParseError, Reason: "it is not UTF-8"}}
	}
	if !json.Valid(line) {
		return Message{Fault: &Fault{Code: ParseError, Reason: noJSON(line)}}
	}
	if line[0] != '{' {
		return Message{Fault: &Fault{Code: InvalidRequest, Reason: "it is no JSON object"}}
	}
	h := headOf(line)
	m := Message{Line: line, ID: h.id}
	wrong := checkID(h.id)
	fault := func(reason string) Message { return Message{Fault: h.fault(reason)} }
	switch {
	case h.other != "":
		// Readers that take one for the other see another message.
		return misread(h, h.other+": a member is written so but for its case")
	case h.response && (h.id == nil || string(h.id) == "null"):
		m.Kind = Complaint
	case wrong != "":
		return fault(wrong)
	case h.version != "2.0":
		return fault(`jsonrpc: it is not "2.0"`)
	case h.response:
		m.Kind = Response
	case h.method == nil:
		return fault("it has no method, and is no response either")
	case json.Unmarshal(h.method, &m.Method) != nil || h.method[0] != '"':
		return fault("method: it is no string")
	case h.id == nil:
		m.Kind = Notification
	default:
		m.Kind = Request
	}
	return m
}

// misread is what is known of a message that cannot be read whole. Whoever waits
// for an answer learns why there is none: the client of a request, and of a
// response this program.
func misread(h head, why string) Message {
	if h.response && h.id != nil {
		return Message{Kind: Response, ID: h.id, Line: h.fault("the response: " + why).Response()}
	}
	return Message{Fault: h.fault(why)}
}

// fault says what is wrong with the message, under its id where that is one.
func (h head) fault(reason string) *Fault {
	f := &Fault{Code: InvalidRequest, Reason: reason}
	if checkID(h.id) == "" {
		f.ID = h.id
	}
	return f
}

func noJSON(line []byte) string {
	var v json.RawMessage
	var syntax *json.SyntaxError
	if err := json.Unmarshal(line, &v); errors.As(err, &syntax) {
		return fmt.Sprintf("it is no JSON, at byte %d", syntax.Offset)
	}
	return "it is no JSON"
}

// maxID bounds an id, which is repeated in answers.
const maxID = 1 << 10

var wholeNumber = regexp.MustCompile(`^-?[0-9]{1,16}$`)

// checkID says what is wrong with an id; nil is none. A number has to be one
// that every language holds.
func checkID(id json.RawMessage) string {
	const want = "id: give a string, or a whole number below 2^53"
	switch {
	case id == nil:
		return ""
	case len(id) > maxID:
		return fmt.Sprintf("id: it has more than %d bytes", maxID)
	case id[0] == '"':
		return ""
	case !wholeNumber.Match(id):
		return want
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || n >= 1<<53 || n <= -1<<53 {
		return want
	}
	return ""
}

// Key is the same for ids that mean the same.
func Key(id json.RawMessage) string {
	var s string
	if json.Unmarshal(id, &s) == nil {
		return "s" + s
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return "n" + strconv.FormatInt(n, 10)
	}
	return "?" + string(id)
}

// head are the members of a message that say what it is.
type head struct {
	version    string
	id, method json.RawMessage
	response   bool
	other      string // a member's name that another member is written like
}

// members are the names that say what a message is.
var members = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// headOf reads them as far as the text goes, which may be cut.
func headOf(text []byte) head {
	var h head
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return h
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return h
		}
		name, _ := key.(string)
		for _, m := range members {
			if name != m && strings.EqualFold(name, m) {
				h.other = m
			}
		}
		if name == "result" || name == "error" {
			h.response = true
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			return h
		}
		switch name {
		case "jsonrpc":
			_ = json.Unmarshal(v, &h.version) // another type is another version
		case "id":
			h.id = v
		case "method":
			h.method = v
		}
	}
	// A request is one by its method, whatever else it has.
	h.response = h.response && h.method == nil
	return h
}

// ResponseID is the id of a response that goes out; nil of anything else.
func ResponseID(line []byte) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var id json.RawMessage
	for dec.More() {
		key, err := dec.Token()
		switch {
		case err != nil || key == "method":
			return nil
		case key == "result" || key == "error":
			return id
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			return nil
		}
		if key == "id" {
			id = v
		}
	}
	return nil
}
