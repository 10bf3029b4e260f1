package serve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
)

func ptr[T any](v T) *T { return &v }

const rating = `{"type":"object","properties":{"rating":{"type":"integer","minimum":1,"maximum":5}},"required":["rating"],"additionalProperties":false}`

func TestRespondWithoutGraph(t *testing.T) {
	s := newService(t)
	tokens := 0
	var began Started
	rec, err := s.Respond(within(t), Call{
		Prompt: "hello", System: "Be brief.", Model: plain(t, "default: {text: good morning}"),
		Progress: func(p model.Progress) { tokens = p.Tokens },
		Started:  func(b Started) { began = b },
	})
	must(t, err)
	if text, ok := rec.Answer(); !ok || text != "good morning" {
		t.Errorf("answer %q, %v", text, ok)
	}
	if m := rec.Request.Messages; len(m) != 2 || m[0].Content != "Be brief." || m[1].Content != "hello" {
		t.Errorf("messages: %+v", m)
	}
	if tokens == 0 || began.Shaped || began.Turn != *rec.TurnID {
		t.Errorf("%d tokens, began %+v", tokens, began)
	}
	if b, err := os.ReadFile(filepath.Join(s.cfg.StateDir, "log", "audit.jsonl")); err != nil || !strings.Contains(string(b), `"event":"prompt"`) {
		t.Errorf("audit: %v\n%s", err, b)
	}
}

func TestArgumentsOfCalls(t *testing.T) {
	s := newService(t, "agents/rater/system/role.md", "Rate.")
	m := plain(t, "default: {text: fine}")
	for _, tt := range []struct {
		name string
		call Call
		arg  string
	}{
		{"no prompt", Call{Prompt: " \n"}, "prompt"},
		{"enforce", Call{Enforce: "hope"}, "enforce"},
		{"formats", Call{Formats: "yes"}, "formats"},
		{"no tokens", Call{MaxOutputTokens: ptr(0)}, "max_output_tokens"},
		{"history without thread", Call{History: ptr(2)}, "history"},
		{"thread", Call{Thread: "../../etc/x"}, "thread"},
		{"timeout", Call{Timeout: ptr(-time.Second)}, "timeout"},
		{"temperature", Call{Temperature: ptr(-1.0)}, "temperature"},
		{"agent", Call{Agent: "../rater"}, "agent"},
		{"tools and none", Call{NoTools: true, Tools: []string{"x"}}, "no_tools"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.call.Prompt == "" {
				tt.call.Prompt = "hello"
			}
			tt.call.Model = m
			rec, err := s.Respond(within(t), tt.call)
			var wrong *ArgumentError
			if rec != nil || !errors.As(err, &wrong) || wrong.Argument != tt.arg {
				t.Errorf("record %v, error %v; want one about %s", rec, err, tt.arg)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	s := newService(t, "agentgraph.yaml", "limits: {input_bytes: 10}\ndefaults: {model: script:m.yaml}\n", "m.yaml", "default: {text: fine}\n", "agents/rater/system/role.md", "Rate.")
	m := plain(t, "default: {text: fine}")
	for _, tt := range []struct {
		name string
		call Call
		code record.Code
	}{
		{"long prompt", Call{Prompt: strings.Repeat("x", 11), Model: m}, record.InputTooLarge},
		{"long prompt of an agent", Call{Prompt: strings.Repeat("x", 11), Agent: "rater", Model: m}, record.InputTooLarge},
		{"not text", Call{Prompt: "a\xffb", Model: m}, record.InputNotText},
		{"no such model", Call{Prompt: "hello", Model: "elsewhere"}, record.ModelUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec, err := s.Respond(within(t), tt.call)
			must(t, err)
			if rec.Outcome != nil || rec.Error == nil || rec.Error.Code != tt.code {
				t.Errorf("outcome %v, error %v; want a refusal %s", rec.Outcome, rec.Error, tt.code)
			}
		})
	}
}

// A schema that is refused loads no model.
func TestEarlyRefusal(t *testing.T) {
	needNative(t)
	s := newService(t)
	rec, err := s.Respond(within(t), Call{
		Prompt: "List", Model: "/nowhere/model.gguf",
		Spec: &constraint.Spec{Kind: constraint.JSON, Source: []byte(`{"type":"strng"}`)},
	})
	must(t, err)
	if rec.Error == nil || rec.Error.Code != record.SchemaRefused || rec.Error.Path != "/type" {
		t.Errorf("error: %+v", rec.Error)
	}
}

func TestShapedCallInAThread(t *testing.T) {
	needNative(t)
	s := newService(t)
	path := filepath.Join(t.TempDir(), "m.yaml")
	must(t, os.WriteFile(path, []byte("replies:\n  - {match: Rate, text: '{\"rating\": 4}'}\ndefault: {text: in words}\n"), 0o666))
	ask := func(c Call) *record.Record {
		c.Model, c.Thread = "script:"+path, "t"
		rec, err := s.Respond(within(t), c)
		must(t, err)
		return rec
	}
	rec := ask(Call{Prompt: "Rate it", Spec: &constraint.Spec{Kind: constraint.JSON, Source: []byte(rating)}})
	if got := string(Structured(rec)); got != `{"rating":4}` {
		t.Errorf("structured: %s; error %v", got, rec.Error)
	}
	rec = ask(Call{Prompt: "Why?"})
	if Structured(rec) != nil || rec.OutputValidation.Status != record.NotRequested {
		t.Errorf("the thread kept the schema: %+v", rec.OutputValidation)
	}
	if m := rec.Request.Messages; len(m) != 3 || m[1].Content != `{"rating":4}` || *rec.SessionID != "t" {
		t.Errorf("messages: %+v", m)
	}
	list, err := s.Exchanges("t", 0)
	must(t, err)
	if len(list) != 2 || list[1].Answer != "in words" {
		t.Errorf("thread: %+v", list)
	}
}

// An agent lends its prompt, its schema file and its settings.
func TestCallOfAnAgent(t *testing.T) {
	s := newService(t,
		"agents/rater/system/role.md", "Rate the text.",
		"agents/rater/system/.schema-rating.json", rating,
		"agents/rater/agent.yaml", "model: script:answers.yaml\noutput: {enforce: validate}\n",
		"agents/rater/answers.yaml", "constraints: none\ndefault: {text: '{\"rating\":2}'}\n",
	)
	needNative(t)
	rec, err := s.Respond(within(t), Call{Prompt: "It leaks.", Agent: "rater"})
	must(t, err)
	if text, ok := rec.Answer(); !ok || text != `{"rating":2}` || *rec.Agent != "rater" {
		t.Fatalf("answer %q, error %v", text, rec.Error)
	}
	if !strings.HasPrefix(rec.Request.Messages[0].Content, "Rate the text.") || rec.Request.Constraint.File != ".schema-rating.json" || len(rec.Inputs) != 0 {
		t.Errorf("request: %+v, inputs %v", rec.Request, rec.Inputs)
	}
	for _, dir := range []string{"input", "output", "turns"} {
		if files, err := os.ReadDir(filepath.Join(s.Root(), "agents/rater", dir)); err == nil && len(files) > 0 {
			t.Errorf("the call left files in %s: %v", dir, files)
		}
	}
	free, err := s.Respond(within(t), Call{Prompt: "It leaks.", Agent: "rater", Free: true})
	must(t, err)
	if free.OutputValidation.Status != record.NotRequested {
		t.Errorf("validation: %+v", free.OutputValidation)
	}
}

func TestFallback(t *testing.T) {
	s := newService(t,
		"agentgraph.yaml", "models:\n  gone: {gguf: gone.gguf}\n  busy: {script: busy.yaml}\n  here: {script: here.yaml}\ndefaults: {model: gone, fallback: [busy, here]}\n",
		"busy.yaml", "constraints: none\ndefault: {error: {kind: unavailable, message: the line is busy}}\n",
		"here.yaml", "constraints: none\ndefault: {text: at last}\n",
		"agents/",
		"")
	rec, err := s.Respond(within(t), Call{Prompt: "hello"})
	must(t, err)
	if text, _ := rec.Answer(); text != "at last" {
		t.Errorf("answer %q, error %v", text, rec.Error)
	}
	rec, err = s.Respond(within(t), Call{Prompt: "hello", Model: "gone"})
	must(t, err)
	if rec.Error == nil || rec.Error.Code != record.ModelUnavailable {
		t.Errorf("a model that was asked for by name has a stand-in: %v", rec.Error)
	}
}

func TestCancelledCall(t *testing.T) {
	s := newService(t)
	ctx, cancel := context.WithCancel(within(t))
	rec, err := s.Respond(ctx, Call{
		Prompt: "hello", Model: plain(t, "default: {prefer: on and , token_delay: 5ms}"),
		Progress: func(p model.Progress) { cancel() },
	})
	must(t, err)
	if rec.Outcome == nil || rec.Outcome.Status != record.Cancelled || rec.Outcome.Output == nil || len(*rec.Outcome.Output) > 40 {
		t.Errorf("outcome: %+v", rec.Outcome)
	}
}

// A call that is cancelled before its model is asked leaves a record too:
// while the model is opened, and while another call has its thread.
func TestCancelledBeforeTheModel(t *testing.T) {
	s := newService(t)
	m := plain(t, "default: {text: hello}")
	for _, thread := range []string{"", "talk"} {
		ctx, cancel := context.WithCancel(within(t))
		cancel()
		rec, err := s.Respond(ctx, Call{Prompt: "hello", Model: m, Thread: thread})
		must(t, err)
		if rec.Outcome == nil || rec.Outcome.Status != record.Cancelled || rec.Error == nil || rec.Error.Code != record.CodeCancelled || rec.Accounting.ModelCalls != "0" {
			t.Errorf("thread %q: %+v, %v", thread, rec.Outcome, rec.Error)
		}
	}
}

// Close ends calls that run, and does not return before.
func TestCloseEndsCalls(t *testing.T) {
	s := newService(t)
	asked, release := make(chan bool), make(chan bool)
	done := make(chan *record.Record, 1)
	closed := make(chan error, 1)
	var once sync.Once
	m := plain(t, "default: {prefer: on and , token_delay: 5ms}")
	ctx := within(t)
	go func() {
		rec, _ := s.Respond(ctx, Call{Prompt: "hello", Model: m, Progress: func(model.Progress) {
			once.Do(func() { close(asked); <-release })
		}})
		done <- rec
	}()
	<-asked
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		t.Error("Close returned before the call")
		closed <- err
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if rec := <-done; rec == nil || rec.Outcome.Status != record.Cancelled {
		t.Errorf("record: %+v", rec)
	}
	must(t, <-closed)
	if _, err := s.Respond(ctx, Call{Prompt: "hello", Model: m}); err == nil {
		t.Error("a closed service answers")
	}
}

func TestFaultySettingsRefuse(t *testing.T) {
	s := newService(t, "agentgraph.yaml", "defaults: {modle: x}\n", "agents/", "")
	rec, err := s.Respond(within(t), Call{Prompt: "hello"})
	must(t, err)
	if e := rec.Error; e == nil || e.Code != record.SettingsInvalid || e.Line != 1 || !strings.Contains(e.Message, "modle") {
		t.Errorf("error: %+v", e)
	}
}

// A caller that is not trusted with paths has models of the graph alone.
func TestConfinedModels(t *testing.T) {
	outside := strings.TrimPrefix(plain(t, "default: {text: from outside}"), "script:")
	s := newService(t,
		"agentgraph.yaml", "models:\n  here: {script: here.yaml}\n  abroad: {script: "+outside+"}\ndefaults: {model: here}\n",
		"here.yaml", "constraints: none\ndefault: {text: from here}\n", "agents/", "")
	must(t, os.Symlink(outside, filepath.Join(s.Root(), "link.yaml")))
	for _, tt := range []struct {
		model string
		want  string // empty: refused
	}{
		{"", "from here"},
		{"here", "from here"},
		{"abroad", "from outside"}, // who wrote the settings named it
		{"script:here.yaml", "from here"},
		{"script:" + outside, ""},
		{"script:link.yaml", ""},
		{"script:../x.yaml", ""},
		{"script:/etc/passwd", ""},
		{"/etc/x.gguf", ""},
		{"nobody", ""},
	} {
		rec, err := s.Respond(within(t), Call{Prompt: "hello", Model: tt.model, Confined: true})
		if tt.want == "" {
			var wrong *ArgumentError
			if !errors.As(err, &wrong) || wrong.Argument != "model" {
				t.Errorf("%s: record %v, error %v", tt.model, rec, err)
			}
			continue
		}
		must(t, err)
		if text, _ := rec.Answer(); text != tt.want {
			t.Errorf("%s: answer %q, error %v", tt.model, text, rec.Error)
		}
	}
	if _, err := newService(t).Respond(within(t), Call{Prompt: "hello", Model: "script:" + outside, Confined: true}); err == nil {
		t.Error("without a graph a file was named")
	}
}
