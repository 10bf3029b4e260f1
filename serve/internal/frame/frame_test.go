package frame

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"
)

func TestReader(t *testing.T) {
	const max = 200
	long := strings.Repeat("x", 3*max)
	for _, tt := range []struct{ name, line, want string }{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`, "request 1 m"},
		{"id that is a string", `{"jsonrpc":"2.0","id":"a b","method":"m"}`, `request "a b" m`},
		{"other order", ` {"params":{"id":7,"method":"x"},"method":"m","id":0,"jsonrpc":"2.0"}` + "\r", "request 0 m"},
		{"notification", `{"jsonrpc":"2.0","method":"m"}`, "notification  m"},
		{"result", `{"jsonrpc":"2.0","id":1,"result":null}`, "response 1"},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`, "response 1"},
		{"complaint", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`, "complaint"},
		{"complaint without an id", `{"jsonrpc":"2.0","error":{"code":1,"message":""}}`, "complaint"},
		{"request with a result", `{"jsonrpc":"2.0","id":1,"method":"m","result":1}`, "request 1 m"},
		{"two ids", `{"jsonrpc":"2.0","id":1,"ID":2,"method":"m"}`, "-32600 1 id: a member"},
		{"another method", `{"Method":"n","jsonrpc":"2.0","id":1,"method":"m"}`, "-32600 1 method: a member"},
		{"such a response", `{"jsonrpc":"2.0","id":3,"result":{},"Error":null}`, "response 3"},
		{"such names inside", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"ID":1,"Method":2}}`, "request 1 m"},
		{"no JSON", `hello`, "-32700 null no JSON, at byte 1"},
		{"half of one", `{"jsonrpc":"2.0","id":1,"method":"m"`, "-32700 null no JSON, at byte 36"},
		{"two in a line", `{"jsonrpc":"2.0","id":1,"method":"m"}{}`, "-32700 null no JSON"},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "-32700 null not UTF-8"},
		{"array not UTF-8", "[\"\xff\"]", "-32700 null not UTF-8"},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"m"}]`, "-32600 null one message a line"},
		{"half a batch", `[{"jsonrpc"`, "-32700 null no JSON"},
		{"number", `17`, "-32600 null no JSON object"},
		{"null", `null`, "-32600 null no JSON object"},
		{"nothing in it", `{}`, `-32600 null jsonrpc`},
		{"version", `{"jsonrpc":"1.0","id":1,"method":"m"}`, "-32600 1 jsonrpc"},
		{"version of another type", `{"jsonrpc":2,"id":1,"method":"m"}`, "-32600 1 jsonrpc"},
		{"no method", `{"jsonrpc":"2.0","id":1}`, "-32600 1 no method"},
		{"method of another type", `{"jsonrpc":"2.0","id":1,"method":["m"]}`, "-32600 1 method"},
		{"method that is null", `{"jsonrpc":"2.0","id":1,"method":null}`, "-32600 1 method"},
		{"id that is null", `{"jsonrpc":"2.0","id":null,"method":"m"}`, "-32600 null id"},
		{"id that is an object", `{"jsonrpc":"2.0","id":{},"method":"m"}`, "-32600 null id"},
		{"id with a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"m"}`, "-32600 null id"},
		{"id that is too large", `{"jsonrpc":"2.0","id":9007199254740993,"method":"m"}`, "-32600 null id"},
		{"response with such an id", `{"jsonrpc":"2.0","id":1.5,"result":1}`, "-32600 null id"},
		{"too long", `{"jsonrpc":"2.0","id":5,"method":"m","params":"` + long + `"}`, "-32600 5 more than 200 bytes"},
		{"too long, the id behind", `{"jsonrpc":"2.0","method":"m","params":"` + long + `","id":5}`, "-32600 null more than 200 bytes"},
		{"too long and nothing", long, "-32600 null more than 200 bytes"},
		{"response that is too long", `{"jsonrpc":"2.0","id":5,"result":"` + long + `"}`, "response 5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// What follows is read all the same, however it arrives.
			r := NewReader(iotest.OneByteReader(strings.NewReader("\n"+tt.line+"\n \n"+`{"jsonrpc":"2.0","method":"next"}`)), max)
			m, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if got := show(t, m); !strings.HasPrefix(got, tt.want) && (m.Fault == nil || !within(got, tt.want)) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if m.Fault == nil && !json.Valid(m.Line) {
				t.Errorf("handed on: %q", m.Line)
			}
			if m, err := r.Next(); err != nil || m.Method != "next" || m.N != 2 {
				t.Errorf("then %+v, %v", m, err)
			}
			if _, err := r.Next(); err != io.EOF {
				t.Errorf("at the end: %v", err)
			}
		})
	}
}

// within reports that the words of want stand in got in their order.
func within(got, want string) bool {
	code, rest, _ := strings.Cut(want, " ")
	id, words, _ := strings.Cut(rest, " ")
	return strings.HasPrefix(got, code+" "+id+" ") && strings.Contains(got, words)
}

// show is a message as the tests write it; an answer is looked at as it goes
// over the wire.
func show(t *testing.T, m Message) string {
	t.Helper()
	if m.Fault == nil {
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", map[Kind]string{Request: "request", Notification: "notification", Response: "response", Complaint: "complaint"}[m.Kind],
			strings.TrimPrefix(string(m.ID), "null"), m.Method))
	}
	var answer struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(m.Fault.Response(), &answer); err != nil || answer.JSONRPC != "2.0" {
		t.Errorf("%v: %s", err, m.Fault.Response())
	}
	return fmt.Sprintf("%d %s %s", answer.Error.Code, answer.ID, answer.Error.Message)
}

func TestBatches(t *testing.T) {
	r := NewReader(strings.NewReader(`[{"jsonrpc":"2.0","id":1,"method":"a"},17,{"jsonrpc":"2.0","method":"b"}]`+"\n[]\n["+strings.Repeat("1,", 1000)+"1]\n"), 1<<20)
	r.Batches = true
	var got []string
	for {
		m, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, show(t, m))
	}
	want := []string{"request 1 a", "-32600 null", "notification  b", "-32600 null", "-32600 null"}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%d: %s, want %s", i, got[i], want[i])
		}
	}
}

func TestInputThatFails(t *testing.T) {
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(strings.NewReader(`{"jsonrpc"`), iotest.ErrReader(broken)), 100)
	if _, err := r.Next(); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestOpen(t *testing.T) {
	var o Open
	for _, id := range []string{"1", `"1"`, "-1", `"é"`} {
		if f := o.Begin(json.RawMessage(id)); f != nil {
			t.Errorf("%s: %v", id, f)
		}
	}
	for _, id := range []string{"1", "01", `"\u0031"`, `"\u00e9"`} {
		if f := o.Begin(json.RawMessage(id)); f == nil {
			t.Errorf("%s is taken twice", id)
		}
	}
	written := func() error { return nil }
	must := func(id string) {
		t.Helper()
		if err := o.Answer(json.RawMessage(id), func() error {
			// The client may be quicker than this program.
			if f := o.Begin(json.RawMessage(id)); f != nil {
				t.Error(f)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	must("1")
	if err := o.Answer(json.RawMessage("99"), written); err != nil { // of nobody's
		t.Error(err)
	}
	if o.Settle(time.Millisecond) {
		t.Error("settled with four requests open")
	}
	go func() {
		for _, id := range []string{"1", `"1"`, "-1", `"é"`} {
			_ = o.Answer(json.RawMessage(id), written)
		}
	}()
	if !o.Settle(time.Minute) || !o.Settle(0) {
		t.Error("not settled")
	}
}

func TestResponseID(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":{"id":8}}`: "7",
		`{"jsonrpc":"2.0","id":"x","error":{}}`:      `"x"`,
		`{"jsonrpc":"2.0","id":7,"method":"m"}`:      "",
		`{"jsonrpc":"2.0","method":"m"}`:             "",
		`[`:                                          "",
	} {
		if got := string(ResponseID([]byte(line))); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// Whatever comes, it ends, and what is handed on is one whole message.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"", "{}", `{"jsonrpc":"2.0","id":1,"method":"m"}`, "[[]]\n[", "\xff\n", `{"jsonrpc":"2.0","id":"\ud800","method":"\u0000"}`, strings.Repeat("[", 2000)} {
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, in []byte, batches bool) {
		r := NewReader(bytes.NewReader(in), 300)
		r.Batches = batches
		for range len(in) + 2 {
			m, err := r.Next()
			if err != nil {
				return
			}
			if m.Fault != nil {
				if b := m.Fault.Response(); !json.Valid(b) || bytes.ContainsRune(b, '\n') {
					t.Fatalf("answer %q", b)
				}
				continue
			}
			if m.Kind == 0 || !json.Valid(m.Line) || !utf8.Valid(m.Line) || bytes.ContainsRune(m.Line, '\n') {
				t.Fatalf("%d %q", m.Kind, m.Line)
			}
		}
		t.Fatal("it does not end")
	})
}
