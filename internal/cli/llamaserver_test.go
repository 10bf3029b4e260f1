package cli

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/internal/clienttest"
	"agentgraph/model"
	"agentgraph/model/openai"
	"agentgraph/record"
)

// llamaProgram is the path of llama.cpp's own server.
func llamaProgram(t *testing.T) string {
	t.Helper()
	program := os.Getenv("AGENTGRAPH_TEST_LLAMA_SERVER")
	if program == "" {
		program = filepath.Join(cacheDir(), "llama-server", "current", "llama-server")
	}
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("llama.cpp's server is not at %s; scripts/llama-server.sh builds it", program)
		}
		t.Skipf("llama.cpp's server is not at %s; scripts/llama-server.sh builds it", program)
	}
	return program
}

// llamaServer starts llama.cpp's own server on the small model and returns its
// address, or skips the test; where CI says that everything must run, its
// absence fails.
func llamaServer(t *testing.T) string {
	t.Helper()
	gguf := realModel(t)
	program := llamaProgram(t)
	port := strconv.Itoa(clienttest.Port(t))
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-m", gguf, "--host", "127.0.0.1", "--port", port,
		"-c", "4096", "-np", "2", "-t", "2", "--jinja", "--no-warmup")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	died := make(chan error, 1)
	go func() { died <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-died
		if t.Failed() {
			b, _ := os.ReadFile(log.Name())
			t.Logf("the server's log ends with:\n%s", b[max(0, len(b)-4000):])
		}
		log.Close()
	})
	url := "http://127.0.0.1:" + port
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(url + "/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return url
			}
		}
		select {
		case err := <-died:
			died <- err
			t.Fatalf("the server ended: %v", err)
		default:
		}
		if time.Now().After(end) {
			t.Fatal("the server does not answer")
		}
	}
}

// Everything that a server is for, against a real one.
func TestLlamaServer(t *testing.T) {
	url := llamaServer(t)
	dir := serverGraph(t, "models: {m: {server: llamacpp, url: '"+url+"'}}\n", "sampling: {max_tokens: 120}\n")
	write := func(path, text string) string {
		t.Helper()
		full := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return full
	}
	// respond answers one prompt and returns its record.
	respond := func(t *testing.T, args ...string) (int, *record.Record) {
		t.Helper()
		code, out, errs := command(t, append([]string{"respond", "--graph", dir, "--json"}, args...)...)
		var rec record.Record
		if err := json.Unmarshal([]byte(out), &rec); err != nil {
			t.Fatalf("%v in %s %s", err, out, errs)
		}
		return code, &rec
	}

	t.Run("probes", func(t *testing.T) {
		code, out, errs := command(t, "models", "--probe", "--json", dir)
		var doc struct{ Models []modelRow }
		if err := json.Unmarshal([]byte(out), &doc); err != nil || code != 0 || len(doc.Models) != 1 {
			t.Fatalf("exit %d, %v: %s %s", code, err, out, errs)
		}
		for _, k := range doc.Models[0].Kinds {
			if want := k.Kind != constraint.LLG; (k.Probed != nil && *k.Probed) != want {
				t.Errorf("%s is probed as %s, want held: %v (%s)", k.Kind, word(k.Probed), want, k.Detail)
			}
			if k.Probed != nil && !strings.HasPrefix(k.Version, "b") {
				t.Errorf("the server's version is %q", k.Version)
			}
		}
	})

	for _, tc := range []struct {
		name string
		args []string
		kind constraint.Kind
		text string
		ok   func(string) bool
	}{
		{"JSON Schema, members in the schema's order", []string{"--schema", `{"type":"object","properties":{"z":{"type":"integer","minimum":1,"maximum":5},"a":{"type":"string","maxLength":12}},"required":["z","a"],"additionalProperties":false}`}, constraint.JSON, "Rate the weather.",
			func(s string) bool {
				return strings.Index(s, `"z"`) >= 0 && strings.Index(s, `"z"`) < strings.Index(s, `"a"`)
			}},
		{"a constant no model would say", []string{"--schema", `{"const":"zq7"}`}, constraint.JSON, "Hello.", func(s string) bool { return s == `"zq7"` }},
		{"choice", []string{"--choice", "yes,no"}, constraint.Regex, "Is water wet?", func(s string) bool { return s == "yes" || s == "no" }},
		{"regular expression", []string{"--regex", `[0-9]{3}-[A-Fü]{2}`}, constraint.Regex, "A number plate, please.", func(s string) bool { return len(s) >= 6 }},
		{"Lark", []string{"--lark", write("g.lark", "start: \"<\" WORD (\", \" WORD){1,2} \">\"\nWORD: /[a-z]{2,8}/\n")}, constraint.Lark, "Three animals.", func(s string) bool { return strings.HasPrefix(s, "<") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, rec := respond(t, append(tc.args, tc.text)...)
			if code != 0 || rec.Outcome == nil || rec.Outcome.Output == nil || !tc.ok(*rec.Outcome.Output) {
				t.Fatalf("exit %d: %+v, %v", code, rec.Outcome, rec.Error)
			}
			if by := rec.OutputValidation.EnforcedBy; by == nil || *by != constraint.ByServerValidation || rec.OutputValidation.Status != record.Valid {
				t.Errorf("validation %+v", rec.OutputValidation)
			}
			if rec.Request.Constraint.Kind != tc.kind || rec.Request.Model.Server != url || rec.Request.Model.Engine != "llamacpp" {
				t.Errorf("the request is %+v", rec.Request.Model)
			}
			if n := rec.Accounting.Usage.OutputTokens; n == nil || *n == "0" {
				t.Errorf("the usage is %+v", rec.Accounting.Usage)
			}
		})
	}

	t.Run("what it does not take is refused where it stands", func(t *testing.T) {
		for _, tc := range []struct {
			args []string
			want string
		}{
			{[]string{"--llg", write("g.json", `{"grammars":[{"lark_grammar":"start: \"a\""}]}`)}, "takes no constraint of kind llg"},
			{[]string{"--lark", write("and.lark", "start: A\nA: /[a-z]+/ & /.{2}/\n")}, "and.lark:2:15: & cannot be written in a llama.cpp grammar"},
			{[]string{"--schema", `{"type":"number","multipleOf":7}`}, "schema at the top: 'multipleOf' is not enforced by llama.cpp server"},
		} {
			code, rec := respond(t, append(tc.args, "Hello.")...)
			if code != 2 || rec.Outcome != nil || rec.Error == nil || rec.Error.Code != record.CapabilityMissing || !strings.Contains(rec.Error.Error(), tc.want) {
				t.Errorf("exit %d: %v, want %s", code, rec.Error, tc.want)
			}
		}
	})

	t.Run("free text, with log probabilities and a seed", func(t *testing.T) {
		code, rec := respond(t, "--logprobs", "2", "--temperature", "0.8", "--seed", "11", "Name a colour.")
		if code != 0 || rec.Outcome == nil || rec.Outcome.Output == nil || *rec.Outcome.Output == "" {
			t.Fatalf("exit %d: %+v, %v", code, rec.Outcome, rec.Error)
		}
		// What the server has cached decides the last digits of its logits, so
		// that a seed repeats an answer nearly always; without one it never does.
		// The first answer's is another cache than that of those after it.
		answers, repeated := map[string]bool{*rec.Outcome.Output: true}, false
		for range 5 {
			_, again := respond(t, "--temperature", "0.8", "--seed", "11", "Name a colour.")
			if again.Outcome == nil || again.Outcome.Output == nil {
				t.Fatalf("the same again: %v", again.Error)
			}
			if repeated = answers[*again.Outcome.Output]; repeated {
				break
			}
			answers[*again.Outcome.Output] = true
		}
		if !repeated {
			t.Errorf("the same seed never gave the same answer: %q", slices.Collect(maps.Keys(answers)))
		}
		if len(rec.Outcome.Logprobs) == 0 || len(rec.Outcome.Logprobs[0].Top) != 2 {
			t.Errorf("log probabilities: %v", rec.Outcome.Logprobs)
		}
	})

	t.Run("too long a prompt is refused", func(t *testing.T) {
		code, rec := respond(t, strings.Repeat("word ", 6000))
		if code != 2 || rec.Error == nil || rec.Error.Code != record.ContextOverflow {
			t.Errorf("exit %d: %v", code, rec.Error)
		}
	})

	t.Run("the prompt is rendered by the server", func(t *testing.T) {
		code, out, errs := command(t, "render", filepath.Join(dir, "agents/rater"), filepath.Join(dir, "agents/rater/input/kettle.txt"))
		if code != 0 || !strings.Contains(out, "<|im_start|>user\nIt leaks.") || !strings.Contains(errs, " tokens of ") {
			t.Errorf("exit %d: %s%s", code, out, errs)
		}
	})

	t.Run("a graph, with a stream and tools", func(t *testing.T) {
		write("agents/rater/input/pot.txt", "A fine pot.\n")
		write("agents/rater/agent.yaml", "sampling: {max_tokens: 800}\ntools: [list_folder]\nmax_tool_rounds: 2\nstream_output: ../../live\nkeep_stream: true\nconcurrency: 2\n")
		if code, _, errs := command(t, "run", "--once", dir); code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		got := outputs(t, dir)
		if len(got) != 2 {
			t.Fatalf("output/ holds %v", got)
		}
		live, err := os.ReadDir(filepath.Join(dir, "live"))
		if err != nil || len(live) != 2 {
			t.Fatalf("stream_output holds %v, %v", live, err)
		}
		streamed := map[string]bool{}
		for _, e := range live {
			b, err := os.ReadFile(filepath.Join(dir, "live", e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			streamed[string(b)] = true
		}
		for name, text := range got {
			if !streamed[text] {
				t.Errorf("%s holds %q, which was not streamed: %v", name, text, streamed)
			}
		}
		c, err := constraint.Compile(constraint.Spec{Kind: constraint.JSON, Source: []byte(ratingSchema)}, constraint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range got {
			if v := c.Validate(t.Context(), text); !v.Valid {
				t.Errorf("%s holds %s: %v", name, text, v.Diagnostics)
			}
		}
	})

	t.Run("tools, calls and results travel", func(t *testing.T) { llamaTools(t, url) })
	t.Run("a call that is cancelled frees the server", func(t *testing.T) { llamaCancel(t, url) })
}

// llamaTools sends tools, and a conversation with a call and its result.
func llamaTools(t *testing.T, url string) {
	m, err := openai.Open(t.Context(), openai.Config{Dialect: "llamacpp", URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tools := []model.Tool{{Name: "add", Description: "Adds two integers.", Parameters: json.RawMessage(`{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"integer"}},"required":["b","a"]}`)}}
	req := &model.Request{
		Tools: tools, Sampling: model.Sampling{MaxTokens: 60},
		Messages: []model.Message{
			{Role: model.User, Content: "What is 2 + 3? Use the tool add."},
			{Role: model.Assistant, ToolCalls: []model.ToolCall{{ID: "c1", Name: "add", Arguments: json.RawMessage(`{"b":3,"a":2}`)}}},
			{Role: model.ToolRole, ToolCallID: "c1", Name: "add", Content: "5"},
		},
	}
	resp, err := m.Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Text == "" && len(resp.ToolCalls) == 0 {
		t.Errorf("the reply is %+v", resp)
	}
	for _, c := range resp.ToolCalls {
		if c.Name != "add" || !json.Valid(c.Arguments) || c.ID == "" {
			t.Errorf("the call is %+v", c)
		}
	}
}

// llamaCancel fills the server's slots with long answers, cancels them, and is
// answered at once.
func llamaCancel(t *testing.T, url string) {
	m, err := openai.Open(t.Context(), openai.Config{Dialect: "llamacpp", URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	long := func() error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pieces := 0
		_, err := m.Generate(ctx, &model.Request{
			Messages: []model.Message{{Role: model.User, Content: "Write a very long story about a lighthouse."}},
			Sampling: model.Sampling{MaxTokens: 1900, Temperature: 1},
			Progress: func(p model.Progress) {
				if pieces++; pieces == 3 {
					cancel()
				}
			},
		})
		return err
	}
	errs := make(chan error)
	for range 2 {
		go func() { errs <- long() }()
	}
	for range 2 {
		err := <-errs
		e, ok := err.(*model.Error)
		if !ok || e.Kind != model.Cancelled || e.Partial == nil || e.Partial.Text == "" {
			t.Fatalf("a cancelled call says %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := m.Generate(ctx, &model.Request{Messages: []model.Message{{Role: model.User, Content: "Hi"}}, Sampling: model.Sampling{MaxTokens: 4}}); err != nil {
		t.Errorf("after the cancelled calls: %v", err)
	}
}
