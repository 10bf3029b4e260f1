package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"agentgraph/constraint"
	"agentgraph/record"
	"agentgraph/record/recordtest"
	"agentgraph/record/store"
)

// command runs one command line and returns what it printed.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

type answerFunc func(w http.ResponseWriter, body string)

// anyServer is a server of the OpenAI API whose behaviour can be changed. It
// answers probes as it answers everything else.
type anyServer struct {
	*httptest.Server
	answer atomic.Value // answerFunc
	asked  atomic.Int32
	auth   atomic.Value
}

func newAnyServer(t *testing.T, answer answerFunc) *anyServer {
	s := &anyServer{}
	s.answer.Store(answer)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		s.asked.Add(1)
		s.auth.Store(r.Header.Get("Authorization"))
		s.answer.Load().(answerFunc)(w, string(body))
	}))
	t.Cleanup(s.Close)
	return s
}

// reply is an answer in one piece, for OpenAI's API and for Ollama's.
func reply(text string) answerFunc {
	return func(w http.ResponseWriter, _ string) {
		b, _ := json.Marshal(text)
		fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":%[1]s},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":5},"message":{"content":%[1]s},"done":true}`, b)
	}
}

// pieces is a stream of these events.
func pieces(events ...string) answerFunc {
	return func(w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
	}
}

const ratingSchema = `{"type":"object","properties":{"rating":{"type":"integer","minimum":1,"maximum":5},"about":{"type":"string","maxLength":20}},"required":["rating","about"],"additionalProperties":false}`

// serverGraph is a graph with one agent whose answers are ratings.
func serverGraph(t *testing.T, models, agent string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "cache"))
	for path, text := range map[string]string{
		"agentgraph.yaml":                         models + "defaults: {model: m, retries: 0}\n",
		"agents/rater/agent.yaml":                 agent,
		"agents/rater/system/.schema-rating.json": ratingSchema,
		"agents/rater/input/kettle.txt":           "It leaks.\n",
		"agents/rater/system/role.md":             "Rate the review.\n",
	} {
		full := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// onlyRecord is the record of the graph's one turn.
func onlyRecord(t *testing.T, dir string) *record.Record {
	t.Helper()
	var all []*record.Record
	s := store.Open(filepath.Join(dir, "agents", "rater", "turns"))
	if err := s.Each(func(_ string, r *record.Record) error {
		recordtest.Check(t, r)
		all = append(all, r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("%d records, want one", len(all))
	}
	return all[0]
}

func outputs(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(dir, "agents", "rater", "output"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, "agents", "rater", "output", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(b)
	}
	return found
}

// Whatever a server does, output/ holds nothing but valid answers, the input
// stays, its record says what happened, and a server that has come to its
// senses answers it.
func TestServersThatMisbehave(t *testing.T) {
	const good = `{"rating":2,"about":"kettle"}`
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	delta := func(raw string) string { return `{"choices":[{"index":0,"delta":{"content":` + raw + `}}]}` }
	const stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	for _, tc := range []struct {
		name   string
		answer answerFunc
		code   record.Code // empty: completed
		output string
	}{
		{"keeps the constraint", reply(good), "", good},
		{"re-sorts keys", reply(`{"about":"kettle","rating":2}`), "", `{"about":"kettle","rating":2}`},
		{"writes spaces", reply("\n{\"rating\": 2,\n \"about\": \"kettle\"}\n"), "", "\n{\"rating\": 2,\n \"about\": \"kettle\"}\n"},
		{"ignores the constraint", reply("Two stars, I think."), record.OutputValidationFailed, ""},
		{"holds it in part", reply(`{"rating":7,"about":"kettle"}`), record.OutputValidationFailed, ""},
		{"says it twice", reply(good + good), record.OutputValidationFailed, ""},
		{"names a member twice", reply(`{"rating":2,"rating":2,"about":"kettle"}`), record.OutputValidationFailed, ""},
		{"truncates", pieces(delta(quoted(good[:20])), `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`), record.Truncated, ""},
		{"truncates and calls it a stop", pieces(delta(quoted(good[:20])), stop), record.OutputValidationFailed, ""},
		{"truncates where it is valid by chance", pieces(delta(quoted(good))), record.ModelError, ""},
		{"200 with an error body", func(w http.ResponseWriter, _ string) { io.WriteString(w, `{"error":{"message":"no memory"}}`) }, record.ModelError, ""},
		{"200 with a web page", func(w http.ResponseWriter, _ string) { io.WriteString(w, `<html>hello</html>`) }, record.ModelError, ""},
		{"200 with nothing", func(w http.ResponseWriter, _ string) {}, record.ModelError, ""},
		{"halves of a character", pieces(delta("\"{\\\"rating\\\":2,\\\"about\\\":\\\"\xf0\x9f\""), delta("\"\x98\x80\\\"}\""), stop), "", `{"rating":2,"about":"😀"}`},
		{"half a character", pieces(delta("\"{\\\"rating\\\":2,\\\"about\\\":\\\"\xf0\x9f\\\"}\""), stop), record.ModelError, ""},
		{"half a surrogate pair", pieces(delta(`"{\"rating\":2,\"about\":\"\ud83d\"}"`), stop), record.ModelError, ""},
		{"a line of ten megabytes", pieces(delta(quoted(`{"rating":2,"about":"`+strings.Repeat("x", 10<<20)+`"}`)), stop), record.OutputValidationFailed, ""},
		{"closes early", func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Length", "5000")
			pieces(delta(quoted(good)))(w, "")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, record.ModelError, ""},
		{"two choices", pieces(`{"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"stop"}]}`, delta(quoted(good)), stop), "", good},
		{"calls a tool that was not offered", pieces(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"rm","arguments":"{}"}}]}}]}`, `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`), record.ToolFailed, ""},
		{"refuses", pieces(`{"choices":[{"delta":{"refusal":"no"}}]}`, stop), record.ServerRefusal, ""},
		{"is away", func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusUnauthorized) }, record.ModelUnavailable, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newAnyServer(t, tc.answer)
			dir := serverGraph(t, "models: {m: {server: vllm, url: "+s.URL+", model: x, constraints: [json]}}\n", "")
			code, _, errs := command(t, "run", "--once", dir)
			rec := onlyRecord(t, dir)
			if tc.code == "" {
				if got := outputs(t, dir); code != 0 || len(got) != 1 || got["rating_0.json"] != tc.output {
					t.Fatalf("exit %d, output %v, want %q\n%s", code, got, tc.output, errs)
				}
				if by := rec.OutputValidation.EnforcedBy; by == nil || *by != constraint.ByServerValidation {
					t.Errorf("enforced by %v", by)
				}
				return
			}
			if got := outputs(t, dir); len(got) != 0 {
				t.Fatalf("output/ holds %v", got)
			}
			if code != 1 || rec.Error == nil || rec.Error.Code != tc.code {
				t.Errorf("exit %d, error %+v, want %s\n%s", code, rec.Error, tc.code, errs)
			}
			if b, err := os.ReadFile(filepath.Join(dir, "agents/rater/input/kettle.txt")); err != nil || string(b) != "It leaks.\n" {
				t.Errorf("the input is %q, %v", b, err)
			}
			s.answer.Store(answerFunc(reply(good)))
			if code, _, errs := command(t, "retry", "--graph", dir, "rater"); code != 0 {
				t.Fatalf("retry ended with %d: %s", code, errs)
			}
			if code, _, errs := command(t, "run", "--once", dir); code != 0 || outputs(t, dir)["rating_0.json"] != good {
				t.Errorf("after retry: exit %d, output %v\n%s", code, outputs(t, dir), errs)
			}
		})
	}
}

// A server that hangs costs the turn its time and nothing else.
func TestServerThatHangs(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	s := newAnyServer(t, func(w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"{\\\"rating\\\"\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-over
	})
	dir := serverGraph(t, "models: {m: {server: vllm, url: "+s.URL+", model: x, constraints: [json]}}\n", "timeout: 3s\n")
	if code, _, errs := command(t, "run", "--once", dir); code != 1 {
		t.Errorf("exit %d: %s", code, errs)
	}
	if rec := onlyRecord(t, dir); rec.Outcome == nil || rec.Outcome.Status != record.TimedOut || rec.Outcome.Output == nil || *rec.Outcome.Output != `{"rating"` {
		t.Errorf("the outcome is %+v", rec.Outcome)
	}
	if got := outputs(t, dir); len(got) != 0 {
		t.Errorf("output/ holds %v", got)
	}
}

// A model that has not shown that it constrains a kind is refused before it is
// asked anything of a user, in the words of whoever declares it; with enforce:
// validate it answers and the record says what held the answer.
func TestModelsThatDoNotConstrain(t *testing.T) {
	s := newAnyServer(t, reply(`{"rating":2,"about":"kettle"}`))
	script := filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(script, []byte("constraints: []\nreplies:\n  - text: '{\"rating\":2,\"about\":\"kettle\"}'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Join(t.TempDir(), "ag-provider-plain")
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\ncat >/dev/null\necho 'T:{\"rating\":2,\"about\":\"kettle\"}'\necho D\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, model string
		want        []string
	}{
		{"server", "{server: vllm, url: " + s.URL + ", model: x}",
			[]string{"server vLLM has not shown that it constrains json", "without regard to the constraint", "agentgraph models --probe", "constraints: [json]", "models: m in agentgraph.yaml"}},
		{"server that is declared to", "{server: vllm, url: " + s.URL + ", model: x, constraints: [regex]}",
			[]string{"server vLLM has not shown that it constrains json", "constraints: does not list it"}},
		{"script", "{script: " + script + "}", []string{"declares no json constraint", "constraints: in the script"}},
		{"plug-in", "{plugin: " + plugin + "}", []string{"plug-in", "declares no json constraint", "constraints: [json]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := serverGraph(t, "models: {m: "+tc.model+"}\n", "")
			code, _, errs := command(t, "run", "--once", dir)
			rec := onlyRecord(t, dir)
			if code != 1 || rec.Outcome != nil || rec.Error == nil || rec.Error.Code != record.CapabilityMissing {
				t.Fatalf("exit %d, outcome %+v, error %+v\n%s", code, rec.Outcome, rec.Error, errs)
			}
			for _, w := range append(tc.want, "enforce: validate") {
				if !strings.Contains(rec.Error.Error(), w) {
					t.Errorf("the error %q does not say %q", rec.Error.Error(), w)
				}
			}
			if got := outputs(t, dir); len(got) != 0 {
				t.Errorf("output/ holds %v", got)
			}
			if err := os.WriteFile(filepath.Join(dir, "agents/rater/agent.yaml"), []byte("output: {enforce: validate}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			// The turn was refused, so the change makes it pending again.
			if code, _, errs := command(t, "run", "--once", dir); code != 0 {
				t.Fatalf("with enforce: validate: exit %d: %s", code, errs)
			}
			var by []constraint.EnforcedBy
			if err := store.Open(filepath.Join(dir, "agents/rater/turns")).Each(func(_ string, r *record.Record) error {
				if r.Outcome != nil && r.OutputValidation.EnforcedBy != nil {
					by = append(by, *r.OutputValidation.EnforcedBy)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if len(by) != 1 || by[0] != constraint.ByValidation || len(outputs(t, dir)) != 1 {
				t.Errorf("enforced by %v, output %v", by, outputs(t, dir))
			}
		})
	}
	// A local engine always masks what it declares; one that declares nothing
	// is worded by the same table.
	c, err := constraint.Compile(constraint.Spec{Kind: constraint.JSON, Source: []byte(`{"type":"object"}`)}, constraint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Admit(constraint.Engine{Name: "small.gguf", Declared: constraint.DeclaredLocal}); err == nil || !strings.Contains(err.Error(), "enforce: validate") {
		t.Errorf("a local engine that declares nothing: %v", err)
	}
}

// models says of each kind what is declared, what was shown and when.
func TestModelsCommand(t *testing.T) {
	ignoring := newAnyServer(t, reply("Hello!"))
	obeying := newAnyServer(t, func(w http.ResponseWriter, body string) {
		if strings.Contains(body, `{"const":"zq7"}`) {
			reply(`"zq7"`)(w, body)
			return
		}
		reply("zq7-123")(w, body)
	})
	dir := serverGraph(t, fmt.Sprintf("models:\n  m: {server: vllm, url: '%s', model: x}\n  good: {server: sglang, url: '%s', model: x, constraints: [json, regex]}\n  few: {server: ollama, url: '%s', model: x}\n",
		ignoring.URL, obeying.URL, ignoring.URL), "")
	list := func(args ...string) (rows []modelRow) {
		t.Helper()
		_, out, errs := command(t, append(append([]string{"models", "--json"}, args...), dir)...)
		var doc struct{ Models []modelRow }
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("%v in %s %s", err, out, errs)
		}
		return doc.Models
	}
	table := func(rows []modelRow) string {
		var b strings.Builder
		for _, r := range rows {
			fmt.Fprintf(&b, "%s:", r.Name)
			for _, k := range r.Kinds {
				fmt.Fprintf(&b, " %s %s %s %v", k.Kind, word(k.Declared), word(k.Probed), k.Seen != nil)
			}
			b.WriteString("\n")
		}
		return b.String()
	}
	native := constraint.LocalEngine("").Masks
	before := table(list())
	if want := "few: json – – false regex no – false lark no – false llg no – false\n" +
		"good: json yes – false regex yes – false lark no – false llg no – false\n" +
		"m: json – – false regex – – false lark – – false llg no – false\n"; before != want {
		t.Errorf("before a probe:\n%swant\n%s", before, want)
	}
	if n := ignoring.asked.Load() + obeying.asked.Load(); n != 0 {
		t.Errorf("models asked the servers %d times", n)
	}
	lark := func(word string) string {
		if !native {
			return "– false"
		}
		return word + " true"
	}
	want := "few: json – no true regex no – false lark no – false llg no – false\n" +
		"good: json yes yes true regex yes yes true lark no " + lark("yes") + " llg no – false\n" +
		"m: json – no true regex – no true lark – " + lark("no") + " llg no – false\n"
	if after := table(list("--probe")); after != want && native {
		t.Errorf("after a probe:\n%swant\n%s", after, want)
	}
	asked := ignoring.asked.Load()
	if again := table(list()); again != want && native {
		t.Errorf("remembered:\n%swant\n%s", again, want)
	}
	if ignoring.asked.Load() != asked {
		t.Error("models without --probe asked again")
	}
	code, out, _ := command(t, "models", dir)
	if code != 0 || !strings.Contains(out, "MODEL") || !strings.Contains(out, "without regard to the constraint") {
		t.Errorf("the table, exit %d:\n%s", code, out)
	}
	ignoring.Close()
	code, _, errs := command(t, "models", "--probe", dir)
	if code != 1 || !strings.Contains(errs, "model m: the server at "+ignoring.URL+" cannot be reached") {
		t.Errorf("a server that is down: exit %d: %s", code, errs)
	}
}

// A key from a variable or a file reaches the server and nothing that is kept
// or printed, whether the turn works or fails.
func TestKeyIsInNoFile(t *testing.T) {
	const key = "sk-cli-0123456789abcdef"
	t.Setenv("MY_SERVER_KEY", key)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	leak := func(w http.ResponseWriter, _ string) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"bad key %s"}}`, key)
	}
	for name, from := range map[string]string{"env": "{env: MY_SERVER_KEY}", "file": "{file: " + file + "}"} {
		for what, answer := range map[string]answerFunc{"works": reply(`{"rating":2,"about":"kettle"}`), "fails": leak} {
			t.Run(name+" "+what, func(t *testing.T) {
				s := newAnyServer(t, answer)
				dir := serverGraph(t, "models: {m: {server: vllm, url: "+s.URL+", model: x, key: "+from+"}}\n", "output: {enforce: validate}\n")
				_, out, errs := command(t, "run", "--once", dir)
				_, out2, errs2 := command(t, "models", "--probe", dir)
				_, out3, errs3 := command(t, "check", dir)
				_, out4, errs4 := command(t, "respond", "--graph", dir, "--json", "hello")
				if got := s.auth.Load(); got != "Bearer "+key {
					t.Errorf("the server got %v", got)
				}
				if all := out + errs + out2 + errs2 + out3 + errs3 + out4 + errs4; strings.Contains(all, key) {
					t.Errorf("the key is printed: %s", all)
				}
				files := 0
				for _, root := range []string{dir, os.Getenv("XDG_CACHE_HOME")} {
					_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
						if err != nil || d.IsDir() {
							return err
						}
						files++
						b, err := os.ReadFile(path)
						if err == nil && bytes.Contains(b, []byte(key)) {
							t.Errorf("the key is in %s", path)
						}
						return nil
					})
				}
				if files < 8 {
					t.Errorf("only %d files were looked at", files)
				}
			})
		}
	}
	for from, want := range map[string]string{
		"{env: NO_SUCH_VARIABLE}": "NO_SUCH_VARIABLE is not set", "{file: nowhere}": "cannot be read", "{file: agentgraph.yaml}": "holds more than a key",
	} {
		dir := serverGraph(t, "models: {m: {server: vllm, url: 'http://127.0.0.1:1', model: x, key: "+from+"}}\n", "")
		if code, out, errs := command(t, "check", dir); code != 2 || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d: %s%s; want %q", from, code, out, errs, want)
		}
	}
}

// A key that would travel in the clear is warned of, one that stays on this
// machine or travels encrypted is not.
func TestKeyInTheClear(t *testing.T) {
	t.Setenv("MY_SERVER_KEY", "sk-cli-0123456789abcdef")
	for url, code := range map[string]int{"http://models.example:8000": 1, "https://models.example": 0, "http://127.0.0.1:8000": 0, "http://localhost:8000": 0, "http://[::1]:8000": 0} {
		dir := serverGraph(t, "models: {m: {server: vllm, url: '"+url+"', model: x, key: {env: MY_SERVER_KEY}}}\n", "")
		got, out, errs := command(t, "check", dir)
		if got != code || strings.Contains(out, "unencrypted") != (code == 1) {
			t.Errorf("%s: exit %d: %s%s", url, got, out, errs)
		}
	}
}

// doctor asks whether a server is there; check does not.
func TestDoctorReachesServers(t *testing.T) {
	s := newAnyServer(t, reply("Hello!"))
	dir := serverGraph(t, "models: {m: {server: vllm, url: '"+s.URL+"', model: x}}\n", "")
	_, out, _ := command(t, "doctor", dir)
	if strings.Contains(out, s.URL) {
		t.Errorf("a server that is there: %s", out)
	}
	s.Close()
	code, out, _ := command(t, "doctor", dir)
	if code != 2 || !strings.Contains(out, "the server at "+s.URL+" cannot be reached") {
		t.Errorf("a server that is away: exit %d: %s", code, out)
	}
	if code, out, _ := command(t, "check", dir); code != 0 {
		t.Errorf("check: exit %d: %s", code, out)
	}
}
