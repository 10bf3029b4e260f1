//go:build cgo && !nonative

package local

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/model"
)

// goldenNow is the clock of testdata/golden.py.
const goldenNow = `{"year":2026,"month":3,"day":4,"hour":15,"minute":6,"second":7,"microsecond":89,"weekday":3,"yearday":63}`

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// TestTemplatesAsJinja2 compares with what Python's jinja2 wrote.
func TestTemplatesAsJinja2(t *testing.T) {
	var contexts map[string]map[string]json.RawMessage
	readJSON(t, "testdata/contexts.json", &contexts)
	var golden map[string]map[string]struct{ Text, Error string }
	readJSON(t, "testdata/golden.json", &golden)
	files, err := filepath.Glob("testdata/templates/*.jinja")
	if err != nil || len(files) != len(golden) {
		t.Fatalf("%d templates and golden texts of %d (%v); run testdata/golden.py", len(files), len(golden), err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".jinja")
		for context, fields := range contexts {
			t.Run(name+"/"+context, func(t *testing.T) {
				given := map[string]json.RawMessage{
					"tools": json.RawMessage("null"), "documents": json.RawMessage("null"),
					"bos_token": json.RawMessage(`"<s>"`), "eos_token": json.RawMessage(`"</s>"`), "now": json.RawMessage(goldenNow),
				}
				for k, v := range fields {
					given[k] = v
				}
				data, err := json.Marshal(given)
				if err != nil {
					t.Fatal(err)
				}
				want, ok := golden[name][context]
				if !ok {
					t.Fatal("no golden text; run testdata/golden.py")
				}
				got, _, err := renderTemplate(string(source), data)
				if (err != nil) != (want.Error != "") {
					t.Fatalf("error %v, and jinja2 has %q", err, want.Error)
				}
				if diff := cmp.Diff(want.Text, got); diff != "" {
					t.Errorf("not as jinja2 (-jinja2 +ours):\n%s", diff)
				}
				crlf, _, err := renderTemplate(strings.ReplaceAll(string(source), "\n", "\r\n"), data)
				if err == nil && crlf != got {
					t.Error("a template with CRLF line ends renders differently")
				}
			})
		}
	}
}

func TestTemplateErrors(t *testing.T) {
	for _, tt := range []struct{ name, source, want string }{
		{"raised", `{{ raise_exception('no system here') }}`, "the chat template refuses this conversation: no system here"},
		{"syntax", "a\n{% if %}", "line 2"},
		{"endless", `{% for i in range(100000) %}{% for j in range(100000) %}x{{ i }}{% endfor %}{% endfor %}`, "stopped"},
		{"undefined", `{{ messages[7].content.x }}`, "undefined"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := renderTemplate(tt.source, []byte(`{"messages":[]}`))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestTemplateRequest(t *testing.T) {
	read := func(name string) string {
		source, err := os.ReadFile("testdata/templates/" + name + ".jinja")
		if err != nil {
			t.Fatal(err)
		}
		return string(source)
	}
	now := time.Date(2026, 3, 4, 15, 6, 7, 0, time.UTC)
	talk := &model.Request{Messages: []model.Message{
		{Role: model.System, Content: "Be <brief>."}, {Role: model.User, Content: "Hi"},
	}}
	calls := &model.Request{
		Messages: []model.Message{
			{Role: model.User, Content: "Hi"},
			{Role: model.Assistant, ToolCalls: []model.ToolCall{{ID: "a", Name: "f", Arguments: json.RawMessage(`{"b":1,"a":2}`)}}},
			{Role: model.ToolRole, Content: "3", ToolCallID: "a"},
		},
		Tools: []model.Tool{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)}},
	}
	off := false
	for _, tt := range []struct {
		name, template string
		req            *model.Request
		want           string
		clock          bool
	}{
		{"a template that refuses system messages", "gemma", talk,
			"<s><start_of_turn>user\nBe <brief>.\n\nHi<end_of_turn>\n<start_of_turn>model\n", false},
		{"content in parts", "parts", talk, "System: Be <brief>.<end>\nUser: Hi<end>\nAssistant:", false},
		{"the clock", "llama3", talk,
			"<s><|start_header_id|>system<|end_header_id|>\n\nToday: 04 Mar 2026\n\nBe <brief>.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n", true},
		{"thinking off", "qwen", &model.Request{Messages: talk.Messages[1:], Thinking: &off},
			"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", false},
		{"tool calls", "qwen", calls, "<|im_start|>system\n# Tools\n\nFunctions you may call stand in <tools></tools>:\n<tools>\n" +
			`{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}}}` +
			"\n</tools>\n\nA call is a JSON object in <tool_call></tool_call>:\n<tool_call>\n{\"name\": <name>, \"arguments\": <object>}\n</tool_call><|im_end|>\n" +
			"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": 2}}\n</tool_call><|im_end|>\n" +
			"<|im_start|>user\n<tool_response>\n3\n</tool_response><|im_end|>\n<|im_start|>assistant\n", false},
		{"no template", "", talk, "<s>Be <brief>.\n\nQuestion: Hi\nAnswer:", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source := ""
			if tt.template != "" {
				source = read(tt.template)
			}
			tmpl := newTemplate(source, "<s>", "</s>", renderTemplate)
			got, clock, err := tmpl.apply(tt.req, now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if clock.IsZero() == tt.clock {
				t.Errorf("clock is %v", clock)
			}
		})
	}
}
