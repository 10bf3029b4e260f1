package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/model"
)

func open(t *testing.T, cfg Config, mode string, more ...string) *Model {
	t.Helper()
	if cfg.Command == nil && mode != "" {
		cfg.Command = append([]string{os.Args[0], "provider", mode}, more...)
	}
	if cfg.Name == "" {
		cfg.Name = "test"
	}
	cfg.Env = append(cfg.Env, "GORACE")
	m, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func hello() *model.Request {
	return &model.Request{Messages: []model.Message{{Role: model.User, Content: "Hello"}}}
}

func TestReplies(t *testing.T) {
	t.Setenv("PLUGIN_TEST_KEY", "sk-very-secret")
	type want struct {
		text, reasoning string
		finish          model.FinishReason
		calls           string
		kind            model.ErrorKind
		delivery        model.Delivery
		retry           bool
		partial         string
		err             string
	}
	for mode, w := range map[string]want{
		"stream":             {text: "Hello  world", reasoning: "think", finish: model.Stop},
		"line ends":          {text: "one\ntwo\nthree\n:D.", reasoning: "a\nb", finish: model.Stop},
		"half rune":          {text: "café 😀", finish: model.Stop},
		"torn at the limit":  {text: "caf\xc3", finish: model.Length},
		"its own U+FFFD":     {text: "a\uFFFDb", finish: model.Stop},
		"calls":              {calls: `1 add {"a":1}; 2 now {}; 3 nil {}`, finish: model.FinishToolUse},
		"call in pieces":     {calls: `1 add {"a":1}; 2 add {"a":2}`, finish: model.FinishToolUse},
		"length":             {text: "cut", finish: model.Length},
		"other events":       {text: "a", finish: model.Stop},
		"D without line end": {text: "there", finish: model.Stop},
		"exit after D":       {text: "fine", finish: model.Stop},
		"much stderr":        {text: "fine", finish: model.Stop},
		"deaf":               {text: "fine", finish: model.Stop},
		"torn rune":          {kind: model.Failed, delivery: model.ResponseReceived, partial: "caf\xc3", err: `the plug-in printed bytes that are no UTF-8 in its answer: "caf\xc3"; let it print UTF-8`},
		"torn thought":       {kind: model.Failed, delivery: model.ResponseReceived, partial: "fine", err: `no UTF-8 in its reasoning: "\xc3"`},
		"torn in the middle": {kind: model.Failed, delivery: model.ResponseReceived, partial: "caf\xc3e", err: `no UTF-8 in its answer: "\xc3e"`},
		"not UTF-8":          {kind: model.Failed, delivery: model.ResponseReceived, partial: "a\xffb", err: `no UTF-8 in its answer: "a\xffb"`},
		"Latin-1":            {kind: model.Failed, delivery: model.ResponseReceived, partial: strings.Repeat("é", 20) + "\xe9" + strings.Repeat("é", 20), err: `no UTF-8 in its answer: "` + strings.Repeat("é", 10) + `\xe9` + strings.Repeat("é", 10) + `";`},
		"a later line":       {kind: model.Failed, delivery: model.ResponseReceived, partial: "a\n\xff", err: `no UTF-8 in its answer: "\n\xff"`},
		"call not UTF-8":     {kind: model.Failed, delivery: model.ResponseReceived, err: `no UTF-8 in a tool call: "rguments\":`},
		"bad call":           {kind: model.Failed, delivery: model.ResponseReceived, err: "line 1 of the plug-in's reply is no tool call"},
		"nameless call":      {kind: model.Failed, delivery: model.ResponseReceived, err: "it has no name"},
		"garbage":            {kind: model.Failed, delivery: model.ResponseReceived, err: `line 1 of the plug-in's reply is no event: "Loading the model …"`},
		"failure":            {kind: model.Failed, delivery: model.ResponseReceived, retry: true, partial: "par", err: "the plug-in failed: the key [PLUGIN_TEST_KEY] is wrong"},
		"no D":               {kind: model.Failed, delivery: model.MayHaveBeenSent, retry: true, partial: "almost", err: "the plug-in ended before its answer did (exit status 7): out of memory, [PLUGIN_TEST_KEY]"},
		"no line end":        {kind: model.Failed, delivery: model.MayHaveBeenSent, retry: true, partial: "almost", err: "(exit status 0)"},
		"nothing":            {kind: model.Failed, delivery: model.MayHaveBeenSent, retry: true, err: "ended before its answer did (exit status 0)"},
		"long line":          {kind: model.Failed, delivery: model.ResponseReceived, err: "line 1 of the plug-in's reply is too long: a line may have 4194304 bytes"},
		"line without end":   {kind: model.Failed, delivery: model.ResponseReceived, err: "too long"},
		"endless":            {kind: model.Failed, delivery: model.ResponseReceived, err: "all of them 67108864"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			m := open(t, Config{Env: []string{"PLUGIN_TEST_KEY"}}, mode)
			req := hello()
			var text, reasoning strings.Builder
			req.Progress = func(p model.Progress) {
				text.WriteString(p.Text)
				reasoning.WriteString(p.Reasoning)
			}
			resp, err := m.Generate(t.Context(), req)
			if w.kind != "" {
				var e *model.Error
				if !errors.As(err, &e) {
					t.Fatalf("the error is %v", err)
				}
				if e.Kind != w.kind || e.Delivery != w.delivery || e.Retry != w.retry || !strings.Contains(e.Error(), w.err) {
					t.Errorf("the error is %s, %s, retry %v: %s; want %+v", e.Kind, e.Delivery, e.Retry, e, w)
				}
				if strings.Contains(e.Error(), "sk-very") || len(e.Error()) > 1000 {
					t.Errorf("the message has %d bytes or holds the key: %.200s", len(e.Error()), e)
				}
				if mode != "endless" && e.Partial.Text != w.partial {
					t.Errorf("the partial text is %q, want %q", e.Partial.Text, w.partial)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var calls []string
			for _, c := range resp.ToolCalls {
				calls = append(calls, c.ID+" "+c.Name+" "+string(c.Arguments))
			}
			got := want{text: resp.Text, reasoning: resp.Reasoning, finish: resp.Finish, calls: strings.Join(calls, "; ")}
			if got != w {
				t.Errorf("got %+v, want %+v", got, w)
			}
			if mode != "torn at the limit" && (text.String() != resp.Text || reasoning.String() != resp.Reasoning) {
				t.Errorf("shown were %q and %q, the answer is %q and %q", text.String(), reasoning.String(), resp.Text, resp.Reasoning)
			}
			if resp.Usage != (model.Usage{}) {
				t.Errorf("the usage is %+v; the protocol does not tell it", resp.Usage)
			}
		})
	}
}

func schema(t *testing.T, kind constraint.Kind, source string) *constraint.Constraint {
	t.Helper()
	c, err := constraint.Compile(constraint.Spec{Kind: kind, Source: []byte(source)}, constraint.Options{Enforce: constraint.EnforceValidate})
	if errors.Is(err, constraint.ErrNotBuilt) {
		t.Skip("needs the native library")
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The bytes are AgentGraph's: keys, their order and the nulls.
func TestRequestBytes(t *testing.T) {
	on, seed := true, uint64(7)
	for _, tc := range []struct {
		name string
		cfg  Config
		req  func(t *testing.T) *model.Request
		want string
	}{
		{"plain", Config{}, func(*testing.T) *model.Request { return hello() },
			`{"type":"chat","messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}],"tools":null,"tool_choice":null,"constraint":null,"enable_thinking":false,"model":null,"max_tokens":null,"temperature":0,"top_p":null,"request_id":0}`},
		{"everything", Config{Model: "big"}, func(t *testing.T) *model.Request {
			return &model.Request{
				Messages: []model.Message{
					{Role: model.System, Content: "<&>"}, {Role: model.User, Content: "2+2?\n\"é\""},
					{Role: model.Assistant, ToolCalls: []model.ToolCall{{ID: "call00001", Name: "add", Arguments: json.RawMessage(`{"a": 2, "b": 2}`)}}},
					{Role: model.ToolRole, Content: "4", ToolCallID: "call00001", Name: "add"},
				},
				Tools:   []model.Tool{{Name: "add", Description: "Adds.", Parameters: json.RawMessage(`{"type": "object", "properties": {"b": {}, "a": {}}}`)}, {Name: "now"}},
				NoCalls: true, Thinking: &on,
				Constraint: schema(t, constraint.JSON, "{\n  \"type\": \"object\", \"properties\": {\"z\": {\"const\": 1.50}, \"a\": true}\n}"),
				Sampling:   model.Sampling{Temperature: 0.7, TopP: 0.9, TopK: 40, MinP: 0.05, Seed: &seed, MaxTokens: 256},
			}
		}, `{"type":"chat","messages":[{"role":"system","content":[{"type":"text","text":"<&>"}]},{"role":"user","content":[{"type":"text","text":"2+2?\n\"é\""}]},{"role":"assistant","content":[{"type":"text","text":""}],"tool_calls":[{"id":"call00001","name":"add","arguments":"{\"a\":2,\"b\":2}"}]},{"role":"tool","content":[{"type":"text","text":"4"}],"tool_call_id":"call00001"}],` +
			`"tools":[{"name":"add","description":"Adds.","parameters":{"type":"object","properties":{"b":{},"a":{}}}},{"name":"now","description":"","parameters":{}}],"tool_choice":"none","constraint":{"schema":{"type":"object","properties":{"z":{"const":1.50},"a":true}},"regex":null,"grammar":null},"enable_thinking":true,"model":"big","max_tokens":256,"temperature":0.7,"top_p":0.9,"request_id":0,"top_k":40,"min_p":0.05,"seed":7}`},
		{"regex", Config{}, func(t *testing.T) *model.Request {
			return &model.Request{Constraint: schema(t, constraint.Regex, `[a-z]+\d`)}
		}, `{"type":"chat","messages":[],"tools":null,"tool_choice":null,"constraint":{"schema":null,"regex":"[a-z]+\\d","grammar":null},"enable_thinking":false,"model":null,"max_tokens":null,"temperature":0,"top_p":null,"request_id":0}`},
		{"lark", Config{}, func(t *testing.T) *model.Request {
			return &model.Request{Constraint: schema(t, constraint.Lark, "start: \"yes\" | \"no\"\n")}
		}, `{"type":"chat","messages":[],"tools":null,"tool_choice":null,"constraint":{"schema":null,"regex":null,"grammar":"start: \"yes\" | \"no\"\n"},"enable_thinking":false,"model":null,"max_tokens":null,"temperature":0,"top_p":null,"request_id":0}`},
		{"llg", Config{Constraints: []constraint.Kind{constraint.LLG}}, func(t *testing.T) *model.Request {
			return &model.Request{Constraint: schema(t, constraint.LLG, `{"grammars":[{"lark_grammar":"start: \"a\""}]}`)}
		}, `{"type":"chat","messages":[],"tools":null,"tool_choice":null,"constraint":{"schema":null,"regex":null,"grammar":null,"llg":{"grammars":[{"lark_grammar":"start: \"a\""}]}},"enable_thinking":false,"model":null,"max_tokens":null,"temperature":0,"top_p":null,"request_id":0}`},
		{"a kind that is not declared", Config{Constraints: []constraint.Kind{}}, func(t *testing.T) *model.Request {
			return &model.Request{Constraint: schema(t, constraint.Regex, `[a-z]+\d`)}
		}, `{"type":"chat","messages":[],"tools":null,"tool_choice":null,"constraint":null,"enable_thinking":false,"model":null,"max_tokens":null,"temperature":0,"top_p":null,"request_id":0}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := open(t, tc.cfg, "echo")
			req := tc.req(t)
			resp, err := m.Generate(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, resp.Text); diff != "" {
				t.Errorf("the request (-want +got):\n%s", diff)
			}
			want := constraint.EnforcedBy("")
			if m.holds(req) {
				want = constraint.ByServerValidation
			}
			if resp.EnforcedBy != want {
				t.Errorf("enforced by %q, want %q", resp.EnforcedBy, want)
			}
		})
	}
}

func TestCapabilities(t *testing.T) {
	for _, tc := range []struct {
		name, mode string
		cfg        Config
		kinds      string
		tools      bool
		context    int
	}{
		{"described", "echo", Config{}, "json regex lark", true, 2048},
		{"described in part", "only-json", Config{}, "json", false, 0},
		{"not described", "silent", Config{}, "", false, 0},
		{"declared", "silent", Config{Constraints: []constraint.Kind{"llg", "json"}, Context: 99}, "json llg", false, 99},
		{"declared none", "echo", Config{Constraints: []constraint.Kind{}}, "", true, 2048},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := open(t, tc.cfg, tc.mode)
			c := m.Capabilities()
			var kinds []string
			for _, k := range c.Kinds {
				kinds = append(kinds, string(k))
			}
			if got := strings.Join(kinds, " "); got != tc.kinds || c.Tools != tc.tools || c.Context != tc.context || c.Masks || c.CallFormat != "" || c.Parallel != 1 {
				t.Errorf("kinds %q, %+v; want %+v", got, c, tc)
			}
		})
	}
}

func TestRefusalSaysWhereToDeclare(t *testing.T) {
	m := open(t, Config{Where: "agentgraph.yaml, models: far"}, "silent")
	c, err := constraint.Compile(constraint.Spec{Kind: constraint.JSON, Source: []byte(`{"type":"object"}`)}, constraint.Options{})
	if err != nil {
		t.Skip(err)
	}
	_, err = c.Admit(m.Capabilities().Engine)
	const want = `plug-in test declares no json constraint; if it holds one, declare it with constraints: [json] (agentgraph.yaml, models: far), or allow validation alone with enforce: validate`
	if err == nil || err.Error() != want {
		t.Errorf("the refusal is %v, want %s", err, want)
	}
}

func TestEnvironmentIsAList(t *testing.T) {
	t.Setenv("SOMEBODYS_KEY", "sk-123456")
	t.Setenv("LISTED", "yes")
	t.Setenv("AG_PROVIDER_ENV_MODEL", "m.gguf")
	t.Setenv("AG_PROVIDER_OTHER_MODEL", "n.gguf")
	dir := t.TempDir()
	script := "#!/bin/sh\ncase \"$1\" in --describe) exit 0;; esac\ncat >/dev/null\nprintf 'T:'; env | tr '\\n' '|'; printf '\\nD\\n'\n"
	if err := os.WriteFile(filepath.Join(dir, "ag-provider-env"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	m := open(t, Config{Name: "env", Env: []string{"LISTED"}}, "")
	resp, err := m.Generate(t.Context(), hello())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"LISTED=yes": true, "AG_PROVIDER_ENV_MODEL=m.gguf": true, "PATH=": true, "AG_PROVIDER_OTHER": false, "SOMEBODYS": false} {
		if strings.Contains(resp.Text, name) != want {
			t.Errorf("%s among the variables: %v", name, !want)
		}
	}
}

func TestMissingProgram(t *testing.T) {
	for _, tc := range []struct {
		cfg  Config
		want string
	}{
		{Config{Name: "no-such"}, "there is no program ag-provider-no-such on PATH; install it, or put it on PATH"},
		{Config{Name: "/no/such"}, "there is no program /no/such; install it"},
		{Config{Name: "x", Command: []string{"no-such-program"}}, "there is no program no-such-program; correct plugin: command"},
	} {
		_, err := Open(t.Context(), tc.cfg)
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.Unavailable || e.Delivery != model.NotSent || e.Retry || !strings.Contains(e.Error(), tc.want) {
			t.Errorf("the error is %v, want %s", err, tc.want)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "broken")
	if err := os.WriteFile(path, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Name: path}); err == nil || !strings.Contains(err.Error(), "cannot be started") {
		t.Errorf("the error is %v", err)
	}
}

func TestCutOff(t *testing.T) {
	for _, tc := range []struct {
		mode string
		max  int
		kind constraint.Kind
		want model.FinishReason
	}{
		{"count", 3, "", model.Length},
		{"count", 4, "", model.Stop},
		{"count", 0, "", model.Stop},
		{"json", 3, constraint.JSON, model.Stop},
		{"count", 3, constraint.JSON, model.Length},
		{"count", 3, constraint.Regex, model.Length},
	} {
		m := open(t, Config{}, tc.mode)
		req := hello()
		req.Sampling.MaxTokens = tc.max
		switch tc.kind {
		case constraint.JSON:
			req.Constraint = schema(t, constraint.JSON, `{"type":"object"}`)
		case constraint.Regex:
			req.Constraint = schema(t, constraint.Regex, "[a-z]+")
		}
		resp, err := m.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Finish != tc.want {
			t.Errorf("%s with %d tokens of %q: %s, want %s", tc.mode, tc.max, tc.kind, resp.Finish, tc.want)
		}
	}
}

// gone waits until the process is none any more.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if runtime.GOOS == "linux" {
			stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			if err != nil || strings.Contains(string(stat), ") Z ") {
				return
			}
		} else if syscall.Kill(pid, 0) != nil {
			return
		}
	}
	t.Errorf("process %d is still there", pid)
}

// ending is a context that ends with err when the test closes over.
type ending struct {
	context.Context
	over chan struct{}
	err  error
}

func (e *ending) Done() <-chan struct{} { return e.over }

func (e *ending) Err() error {
	select {
	case <-e.over:
		return e.err
	default:
		return nil
	}
}

func TestCancelKillsTheGroup(t *testing.T) {
	for _, tc := range []struct {
		name string
		kind model.ErrorKind
		err  error
	}{
		{"cancelled", model.Cancelled, context.Canceled},
		{"timed out", model.TimedOut, context.DeadlineExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pidFile := filepath.Join(t.TempDir(), "pid")
			m := open(t, Config{}, "child", pidFile)
			ctx := &ending{t.Context(), make(chan struct{}), tc.err}
			req := hello()
			var once sync.Once
			req.Progress = func(model.Progress) { once.Do(func() { close(ctx.over) }) }
			began := time.Now()
			_, err := m.Generate(ctx, req)
			var e *model.Error
			if !errors.As(err, &e) || e.Kind != tc.kind || e.Delivery != model.MayHaveBeenSent {
				t.Fatalf("the error is %v", err)
			}
			if d := time.Since(began); d > 30*time.Second {
				t.Errorf("it took %v", d)
			}
			data, err := os.ReadFile(pidFile)
			if err != nil {
				t.Fatal(err)
			}
			pid, _ := strconv.Atoi(string(data))
			gone(t, pid)
		})
	}
}

func TestWhatStaysBehindIsKilled(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	m := open(t, Config{}, "child after D", pidFile)
	resp, err := m.Generate(t.Context(), hello())
	if err != nil || resp.Text != "fine" {
		t.Fatal(resp, err)
	}
	data, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(string(data))
	gone(t, pid)
	m = open(t, Config{}, "hang after D")
	if resp, err := m.Generate(t.Context(), hello()); err != nil || resp.Text != "fine" {
		t.Fatal(resp, err)
	}
}

// One process at a time, unless parallel says more; one that waits can be
// cancelled.
func TestParallel(t *testing.T) {
	m := open(t, Config{}, "hang")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	req := hello()
	shown := make(chan struct{})
	req.Progress = func(model.Progress) { close(shown) }
	go func() {
		_, err := m.Generate(ctx, req)
		done <- err
	}()
	<-shown
	waiting, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	_, err := m.Generate(waiting, hello())
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.TimedOut || e.Delivery != model.NotSent {
		t.Errorf("the second call ended with %v", err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("the first call was not cancelled")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), hello()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("after Close: %v", err)
	}
}

func FuzzEvents(f *testing.F) {
	for _, s := range []string{"T:a\nD\n", "T:\n\nR:x\ny\nC:{\"name\":\"a\"}\nD:length\n", "X:\n", "T:\xc3\nT:\xa9\nD"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		m := &Model{cfg: Config{Name: "fuzz"}}
		r := &reply{m: m, req: hello()}
		var shown strings.Builder
		r.req.Progress = func(p model.Progress) { shown.WriteString(p.Text) }
		p := &process{lines: reader(stream)}
		_, fault := r.read(p)
		resp := r.settle()
		if !strings.HasPrefix(resp.Text, shown.String()) {
			t.Errorf("shown was %q of %q", shown.String(), resp.Text)
		}
		if fault != nil && len(fault.Error()) > 2000 {
			t.Errorf("a message of %d bytes", len(fault.Error()))
		}
	})
}
