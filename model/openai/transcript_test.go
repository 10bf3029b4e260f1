package openai

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"agentgraph/constraint"
	"agentgraph/model"
)

// oddSchema has its members in an order that no sorting makes, spaces that no
// encoder writes, and characters that encoders like to escape.
const oddSchema = `{ "type": "object",
  "properties": {"z": {"const": "<&>"},  "a": {"type": "integer"}},
  "required": ["z", "a"], "additionalProperties": false }`

// transcriptRequests are what is asked in transcripts, by name.
func transcriptRequests(t *testing.T) map[string]*model.Request {
	seed := uint64(7)
	user := model.Message{Role: model.User, Content: "How much is 2 + 3?"}
	ask := func(con *constraint.Constraint) *model.Request {
		return &model.Request{
			Messages:   []model.Message{{Role: model.System, Content: "Be short."}, user},
			Constraint: con, Sampling: model.Sampling{MaxTokens: 64},
		}
	}
	reqs := map[string]*model.Request{
		"json":    ask(compile(t, constraint.JSON, oddSchema, "")),
		"regex":   ask(compile(t, constraint.Regex, `[0-9]{1,3}`, "")),
		"refusal": ask(nil),
		"length":  ask(nil),
		"free":    ask(nil),
		"tools":   ask(nil),
	}
	for kind, source := range map[constraint.Kind]string{
		constraint.Lark: "start: \"<\" N \">\"\nN: /[0-9]+/\n",
		constraint.LLG:  `{"grammars": [{"lark_grammar": "start: /[0-9]+/"}]}`,
	} {
		c, err := constraint.Compile(constraint.Spec{Kind: kind, Source: []byte(source)}, constraint.Options{})
		if errors.Is(err, constraint.ErrNotBuilt) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		reqs[string(kind)] = ask(c)
	}
	reqs["free"].Sampling = model.Sampling{Temperature: 0.7, TopP: 0.9, Seed: &seed, MaxTokens: 64, Logprobs: 2}
	reqs["tools"].Tools = []model.Tool{{Name: "add", Description: "Adds.", Parameters: json.RawMessage(`{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"integer"}}}`)}}
	reqs["tools"].Messages = append(reqs["tools"].Messages,
		model.Message{Role: model.Assistant, ToolCalls: []model.ToolCall{{ID: "c1", Name: "add", Arguments: json.RawMessage(`{"b":3,"a":2}`)}}},
		model.Message{Role: model.ToolRole, ToolCallID: "c1", Name: "add", Content: "5"})
	return reqs
}

// summary is what of a reply transcripts compare.
type summary struct {
	Text      string               `json:"text"`
	Reasoning string               `json:"reasoning,omitempty"`
	Finish    model.FinishReason   `json:"finish"`
	Calls     []model.ToolCall     `json:"calls,omitempty"`
	Usage     []*int64             `json:"usage"` // input, output, read from a cache
	Held      bool                 `json:"held,omitempty"`
	Seed      *uint64              `json:"seed,omitempty"`
	Logprobs  []model.TokenLogprob `json:"logprobs,omitempty"`
}

// Transcripts are written from the servers' documentation: each file is one
// server, each case what is sent to it, byte by byte, what it replies, and what
// is read from that. AGENTGRAPH_UPDATE=1 writes requests and readings anew;
// replies are written by hand.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) != len(dialects) {
		t.Fatalf("%d transcripts of %d servers, %v", len(files), len(dialects), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) { transcript(t, file, name) })
	}
}

func transcript(t *testing.T, file, dialect string) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reqs := transcriptRequests(t)
	section := func(name string) *txtar.File {
		i := slices.IndexFunc(ar.Files, func(f txtar.File) bool { return f.Name == name })
		if i < 0 {
			return nil
		}
		return &ar.Files[i]
	}
	update := os.Getenv("AGENTGRAPH_UPDATE") != ""
	compare := func(name, got string) {
		t.Helper()
		f := section(name)
		if f == nil {
			if !update {
				t.Errorf("%s has no section %s", file, name)
				return
			}
			ar.Files = append(ar.Files, txtar.File{Name: name})
			f = section(name)
		}
		if update {
			f.Data = []byte(got + "\n")
		}
		if diff := cmp.Diff(strings.TrimSpace(string(f.Data)), got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, name := range []string{"free", "json", "regex", "lark", "llg", "tools", "refusal", "length"} {
		req := reqs[name]
		if req == nil {
			continue // needs the native library
		}
		reply := section(name + ".reply")
		var path string
		f := newFake(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
			path = r.URL.Path
			if reply == nil {
				t.Errorf("%s was sent and has no reply in %s", name, file)
				return
			}
			w.Write(reply.Data)
		})
		m := f.open(t, dialectOf(dialect))
		resp, err := m.Generate(t.Context(), req)
		if err != nil {
			if reply != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			compare(name+".refused", err.Error())
			continue
		}
		compare(name+".request", "POST "+path+"\n"+string(f.completions()[0]))
		s := summary{Text: resp.Text, Reasoning: resp.Reasoning, Finish: resp.Finish, Calls: resp.ToolCalls,
			Usage: []*int64{resp.Usage.InputTokens, resp.Usage.OutputTokens, resp.Usage.CacheReadTokens},
			Held:  resp.EnforcedBy == constraint.ByServerValidation, Seed: resp.Seed, Logprobs: resp.Logprobs}
		got, err := encode(s)
		if err != nil {
			t.Fatal(err)
		}
		compare(name+".read", string(got))
	}
	if update {
		if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Schemas travel as the bytes of the file, to every server that takes them.
func TestSchemaBytes(t *testing.T) {
	for _, name := range Dialects() {
		f := newFake(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
			if !strings.Contains(string(body), oddSchema) {
				t.Errorf("%s: the schema travels as %s", name, body)
			}
			if !json.Valid(body) {
				t.Errorf("%s: no JSON: %s", name, body)
			}
			if name == "ollama" {
				io.WriteString(w, `{"message":{"content":"x"},"done":true}`)
				return
			}
			stream(w, chunk("x"), stop)
		})
		if _, err := f.open(t, dialectOf(name)).Generate(t.Context(), question(compile(t, constraint.JSON, oddSchema, ""))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(f.completions()) != 1 {
			t.Errorf("%s was not asked", name)
		}
	}
}
