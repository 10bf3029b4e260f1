package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/model/script"
)

func open(t *testing.T, src string) *script.Model {
	t.Helper()
	m, err := script.New("s.yaml", []byte(src), script.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(text string) *model.Request {
	return &model.Request{Messages: []model.Message{{Role: model.User, Content: text}}}
}

// say returns the answer, or the error's text after "!".
func say(m model.Model, req *model.Request) string {
	resp, err := m.Generate(context.Background(), req)
	if err != nil {
		return "!" + err.Error()
	}
	return resp.Text
}

// The example of the documentation does what its comments say.
func TestDocumentedExample(t *testing.T) {
	doc, err := os.ReadFile("../../docs/script-model.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(doc)
	if found == nil {
		t.Fatal("no example")
	}
	path := filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(path, found[1], 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := script.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, tt := range []struct{ ask, want string }{
		{"it was terrible", "cold soup"},
		{"Great place", "all good"},
		{"flaky", "!model reviewer: the line is busy"},
		{"flaky", "!model reviewer: the line is busy"},
		{"flaky", "at last"},
		{"so so", "first of the others"},
		{"it was terrible again", "cold soup"},
		{"so so", "second of the others"},
		{"so so", "no opinion"},
		{"so so", "no opinion"},
	} {
		if got := say(m, ask(tt.ask)); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q in it", tt.ask, got, tt.want)
		}
	}
	// Every key of the documentation's tables is one the reader knows.
	for _, key := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllSubmatch(doc, -1) {
		for _, form := range []string{"%s: {}\n", "default: {%s: {}}\n"} {
			_, err := script.New("s.yaml", fmt.Appendf(nil, form, key[1]), script.Config{})
			if err == nil || !strings.Contains(err.Error(), "unknown key") {
				goto known
			}
		}
		t.Errorf("%s is documented and not read", key[1])
	known:
	}
}

func TestFileErrors(t *testing.T) {
	tests := []struct{ src, want string }{
		{"", "s.yaml: is empty"},
		{"replies: [\n", "s.yaml:2:1: "},
		{"name: a\nreplys: []\n", "s.yaml:2:1: unknown key replys"},
		{"replies:\n  - txt: a\n", "s.yaml:2:5: unknown key txt"},
		{"replies:\n  - text: a\n    delay: 5\n", "s.yaml:3:12: \"5\" is not a duration"},
		{"replies:\n  - text: a\n    delay: -5s\n", "s.yaml:3:12: \"-5s\" is not a duration"},
		{"replies:\n  - regex: '('\n", "s.yaml:2:12: error parsing regexp"},
		{"constraints: some\nreplies: [{text: a}]\n", "s.yaml:1:14: constraints takes all"},
		{"constraints: [json, yaml]\nreplies: [{text: a}]\n", "s.yaml:1:14: constraints takes all"},
		{"replies:\n  - error: {kind: bad}\n", "s.yaml:2:19: \"bad\" is no kind of failure"},
		{"replies:\n  - error: {message: bad}\n", "s.yaml:2:5: error needs a kind"},
		{"replies:\n  - match: a\n    regex: b\n", "s.yaml:2:5: a reply takes one of match"},
		{"replies:\n  - text: a\n    prefer: b\n", "s.yaml:2:5: a reply takes one of text"},
		{"replies:\n  - tool_calls: [{name: a, arguments: [1]}]\n", "s.yaml:2:5: the arguments of a tool call are a mapping"},
		{"replies:\n  - tool_calls: [{name: a, arguments: {x: .inf}}]\n", "has no JSON form"},
		{"replies:\n  - tool_calls: [{name: a, arguments: {x: 1, x: 2}}]\n", "used once"},
		{"replies:\n  - tool_calls: [{name: a, arguments: {[x]: 1}}]\n", "a member's name is one text"},
		{"replies:\n  - tool_calls: [{arguments: {}}]\n", "s.yaml:2:5: a tool call needs a name"},
		{"replies: []\n", "s.yaml:1:1: no replies"},
		{"default:\n  match: a\n", "s.yaml:2:3: default is for everything else"},
		{"context: -1\nreplies: [{text: a}]\n", "s.yaml:1:10: context is -1; it takes 0 to 1073741824"},
		{"token_bytes: 2000\nreplies: [{text: a}]\n", "s.yaml:1:14: token_bytes is 2000"},
		{"context: 1.5\nreplies: [{text: a}]\n", "s.yaml:1:10: "},
		{"replies: [{text: a}]\n---\nreplies: [{text: b}]\n", "expected single document"},
		{"replies: [{text: a}]\nreplies: [{text: b}]\n", "s.yaml:2:1: "},
	}
	for _, tt := range tests {
		_, err := script.New("s.yaml", []byte(tt.src), script.Config{})
		var e *script.FileError
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, &e) {
			t.Errorf("%q: got %v, want %q", tt.src, err, tt.want)
		}
	}
	_, err := script.New("s.yaml", []byte("a: 1\nb: 2\nreplies: [{text: [1]}]\n"), script.Config{})
	if n := strings.Count(fmt.Sprint(err), "\n") + 1; n != 3 {
		t.Errorf("%d faults at once, want 3: %v", n, err)
	}
}

func TestOpenMissing(t *testing.T) {
	_, err := script.Open(filepath.Join(t.TempDir(), "none.yaml"))
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.Unavailable || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestNoReplyLeft(t *testing.T) {
	m := open(t, "replies: [{text: a}, {match: zzz, text: b}]")
	say(m, ask("x"))
	if got := say(m, ask("x")); !strings.Contains(got, "s.yaml has no reply left") {
		t.Errorf("got %q", got)
	}
	m.Close()
	m.Close()
	if got := say(m, ask("zzz")); !strings.Contains(got, "closed") {
		t.Errorf("after Close: %q", got)
	}
}

func TestResponse(t *testing.T) {
	m := open(t, `name: fake
replies:
  - text: "héllo wörld"
    reasoning: thinking
    tool_calls:
      - {name: add, arguments: {b: 2, a: 1.50, s: "x<y", n: null, l: [true, 1]}}
      - {name: now}
`)
	var text, reasoning strings.Builder
	req := ask("hi")
	req.Progress = func(p model.Progress) {
		text.WriteString(p.Text)
		reasoning.WriteString(p.Reasoning)
	}
	resp, err := m.Generate(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Text != "héllo wörld" || text.String() != resp.Text || reasoning.String() != "thinking" || resp.Reasoning != "thinking" {
		t.Errorf("got %q, shown %q and %q", resp.Text, text.String(), reasoning.String())
	}
	if resp.Finish != model.FinishToolUse || len(resp.ToolCalls) != 2 {
		t.Fatalf("got %+v", resp)
	}
	if got := string(resp.ToolCalls[0].Arguments); got != `{"b":2,"a":1.50,"s":"x\u003cy","n":null,"l":[true,1]}` {
		t.Errorf("arguments %s", got)
	}
	if c := resp.ToolCalls[1]; c.ID != "call_2" || string(c.Arguments) != "{}" {
		t.Errorf("second call %+v", c)
	}
	if *resp.Usage.OutputTokens != 2+4 || *resp.Usage.InputTokens != int64(resp.Rendered.Tokens) || resp.Rendered.Tokens == 0 {
		t.Errorf("usage %+v, prompt of %d", resp.Usage, resp.Rendered.Tokens)
	}
	if resp.Rendered.Prompt != "<|user|>\nhi\n<|assistant|>\n" {
		t.Errorf("prompt %q", resp.Rendered.Prompt)
	}
	id := m.Identity()
	if id.Engine != "script" || id.Name != "fake" || len(id.WeightsSHA256) != 64 {
		t.Errorf("identity %+v", id)
	}
}

func TestThinkingOff(t *testing.T) {
	m := open(t, "default: {text: a, reasoning: hmm}")
	req := ask("x")
	off := false
	req.Thinking = &off
	resp, err := m.Generate(context.Background(), req)
	if err != nil || resp.Reasoning != "" {
		t.Errorf("got %+v, %v", resp, err)
	}
}

func TestToolResult(t *testing.T) {
	m := open(t, `
replies:
  - {match: add, tool_calls: [{name: add}]}
  - {tool_result: "3", text: it is three}
default: {text: nothing}
`)
	req := ask("add 1 and 2")
	if resp, err := m.Generate(context.Background(), req); err != nil || len(resp.ToolCalls) != 1 {
		t.Fatalf("got %+v, %v", resp, err)
	}
	for _, tt := range []struct{ result, want string }{{"3", "it is three"}, {"4", "nothing"}} {
		req := ask("add 1 and 2")
		req.Messages = append(req.Messages, model.Message{Role: model.ToolRole, Content: tt.result})
		if got := say(m, req); got != tt.want {
			t.Errorf("result %s: got %q", tt.result, got)
		}
	}
}

func TestLimits(t *testing.T) {
	tests := []struct {
		name, src string
		max       int
		want      string
		finish    model.FinishReason
	}{
		{"whole", "default: {text: abcdefgh}", 2, "abcdefgh", model.Stop},
		{"cut", "default: {text: abcdefghi}", 2, "abcdefgh", model.Length},
		{"one byte a token", "token_bytes: 1\ndefault: {text: abcdefghi}", 2, "ab", model.Length},
		{"not within a character", "token_bytes: 1\ndefault: {text: aé}", 2, "a", model.Length},
		{"context", "token_bytes: 1\ncontext: 26\ndefault: {text: abcdefghi}", 0, "a", model.Length},
		{"spaces", "default: {spaces_forever: true}", 2, "        ", model.Length},
		{"prefer", "default: {prefer: ab}", 2, "abababab", model.Length},
		{"end first", "default: {end_first: true}", 2, "", model.Stop},
	}
	for _, tt := range tests {
		req := ask("x")
		req.Sampling.MaxTokens = tt.max
		resp, err := open(t, tt.src).Generate(context.Background(), req)
		if err != nil || resp.Text != tt.want || resp.Finish != tt.finish {
			t.Errorf("%s: got %+v, %v", tt.name, resp, err)
		}
	}
	req := ask("x")
	resp, err := open(t, "default: {prefer: ab}").Generate(context.Background(), req)
	if err != nil || resp.Finish != model.Length || len(resp.Text) != 4<<16 {
		t.Errorf("endless: %v, %v", resp.Finish, err)
	}
	_, err = open(t, "token_bytes: 1\ncontext: 10\ndefault: {text: a}").Generate(context.Background(), req)
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.ContextOverflow || e.Delivery != model.NotSent || !strings.Contains(err.Error(), "25 tokens") {
		t.Errorf("overflow: %v", err)
	}
}

// Delays, deadlines and the bound on parallel requests, in fake time.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, "parallel: 2\ndefault: {text: abcdefgh, delay: 1s, token_delay: 500ms}")
		start := time.Now()
		if got := say(m, ask("x")); got != "abcdefgh" || time.Since(start) != 2*time.Second {
			t.Errorf("%q after %v", got, time.Since(start))
		}
		start = time.Now()
		var wg sync.WaitGroup
		queued := make([]time.Duration, 4)
		for i := range queued {
			wg.Go(func() {
				resp, err := m.Generate(context.Background(), ask("x"))
				if err != nil {
					t.Error(err)
					return
				}
				queued[i] = resp.Stats.Queued
			})
		}
		wg.Wait()
		if time.Since(start) != 4*time.Second {
			t.Errorf("four requests, two at once, took %v", time.Since(start))
		}
		if total := queued[0] + queued[1] + queued[2] + queued[3]; total != 4*time.Second {
			t.Errorf("queued %v", queued)
		}
		for _, tt := range []struct {
			after   time.Duration
			partial string
		}{{500 * time.Millisecond, ""}, {1700 * time.Millisecond, "abcd"}} {
			ctx, cancel := context.WithTimeout(context.Background(), tt.after)
			_, err := m.Generate(ctx, ask("x"))
			cancel()
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != model.TimedOut || e.Partial == nil || e.Partial.Text != tt.partial {
				t.Errorf("after %v: %v %+v", tt.after, err, e)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := m.Generate(ctx, ask("x"))
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.Cancelled || e.Delivery != model.NotSent {
			t.Errorf("cancelled: %v", err)
		}
	})
}

func TestErrors(t *testing.T) {
	m := open(t, `
replies:
  - {match: a, error: {kind: unavailable, retry: true}}
  - {match: b, text: abcdefgh, error: {kind: failed, message: broke, after: 1}}
  - {match: c, error: {kind: refused}}
`)
	type got struct {
		Kind     model.ErrorKind
		Delivery model.Delivery
		Retry    bool
		Partial  string
		Text     string
	}
	for in, want := range map[string]got{
		"a": {model.Unavailable, model.NotSent, true, "", "model s.yaml: the script says unavailable"},
		"b": {model.Failed, model.MayHaveBeenSent, false, "abcd", "model s.yaml: broke"},
		"c": {model.Refused, model.ResponseReceived, false, "", "model s.yaml: the script says refused"},
	} {
		_, err := m.Generate(context.Background(), ask(in))
		var e *model.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		g := got{e.Kind, e.Delivery, e.Retry, "", e.Error()}
		if e.Partial != nil {
			g.Partial = e.Partial.Text
		}
		if diff := cmp.Diff(want, g); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

func TestCapabilities(t *testing.T) {
	tests := []struct {
		src   string
		kinds int
		masks bool
	}{
		{"", 4, true},
		{"constraints: all\n", 4, true},
		{"constraints: none\n", 0, false},
		{"constraints: []\n", 0, false},
		{"constraints: [json, regex]\n", 2, true},
		{"mask: false\n", 4, false},
	}
	for _, tt := range tests {
		c := open(t, tt.src+"context: 7\nparallel: 3\ntools: true\ndefault: {text: a}").Capabilities()
		if len(c.Kinds) != tt.kinds || c.Masks != tt.masks || c.Declared != constraint.DeclaredScript ||
			c.Where != "s.yaml, constraints:" || c.Context != 7 || c.Parallel != 3 || !c.Tools {
			t.Errorf("%q: %+v", tt.src, c)
		}
	}
}

// Whatever stands in a file, reading it ends without a panic, and a model
// that comes of it answers within its bounds.
func FuzzFile(f *testing.F) {
	f.Add([]byte("replies: [{text: a, delay: 1ms}]"))
	f.Add([]byte("constraints: [json]\ndefault: {tool_calls: [{name: a, arguments: {x: [1, null]}}]}"))
	f.Add([]byte("a: &a [*a]\nreplies: [{tool_calls: [{name: x, arguments: {<<: *a}}]}]"))
	f.Add([]byte("default: {prefer: é, error: {kind: failed, after: 3}}"))
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := script.New("s.yaml", src, script.Config{
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
		if err != nil {
			return
		}
		req := ask("x")
		req.Sampling.MaxTokens = 5
		resp, err := m.Generate(context.Background(), req)
		if err == nil && len(resp.ToolCalls) > 0 {
			for _, c := range resp.ToolCalls {
				if !json.Valid(c.Arguments) {
					t.Errorf("arguments %s", c.Arguments)
				}
			}
		}
	})
}

// The tokens of log probabilities are the answer, byte for byte, also where a
// token ends within a character.
func TestLogprobs(t *testing.T) {
	m, err := script.New("s.yaml", []byte("token_bytes: 2\ndefault: {text: aé日}"), script.Config{})
	if err != nil {
		t.Fatal(err)
	}
	req := &model.Request{Messages: []model.Message{{Role: model.User, Content: "x"}}}
	resp, err := m.Generate(context.Background(), req)
	if err != nil || resp.Logprobs != nil {
		t.Fatalf("%v, %v without being asked", resp.Logprobs, err)
	}
	req.Sampling.Logprobs = 3
	if resp, err = m.Generate(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, p := range resp.Logprobs {
		if p.Bytes != nil {
			text = append(text, p.Bytes...)
		} else {
			text = append(text, p.Token...)
		}
		if len(p.Top) != 1 || p.Top[0].Token != p.Token || p.Logprob != 0 {
			t.Errorf("token %+v", p)
		}
	}
	if string(text) != "aé日" || int64(len(resp.Logprobs)) != *resp.Usage.OutputTokens {
		t.Errorf("%d tokens make %q", len(resp.Logprobs), text)
	}
}

// A reply to a whole conversation answers that one alone, in the order of
// times.
func TestRequest(t *testing.T) {
	req := ask("hello")
	key := model.ConversationSHA256(req.Messages)
	m := open(t, "replies:\n- {request: "+key+", times: 1, text: first}\n- {request: "+key+", text: second}\ndefault: {text: other}")
	for _, want := range []string{"first", "second", "second"} {
		if got := say(m, ask("hello")); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := say(m, ask("hello there")); got != "other" {
		t.Errorf("another conversation gets %q", got)
	}
	for _, bad := range []string{"abc", strings.Repeat("G", 64)} {
		if _, err := script.New("s.yaml", []byte("replies: [{request: '"+bad+"', text: a}]"), script.Config{}); err == nil || !strings.Contains(err.Error(), "sha256 of a conversation") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
