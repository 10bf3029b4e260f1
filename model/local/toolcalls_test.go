//go:build cgo && !nonative

package local

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

func toolTalk() *model.Request {
	return &model.Request{
		Tools: []model.Tool{{Name: "add", Description: "Adds <numbers>.", Parameters: json.RawMessage(`{"type": "object"}`)}},
		Messages: []model.Message{
			{Role: model.System, Content: "Be kind."}, {Role: model.User, Content: "1+2?"},
			{Role: model.Assistant, ToolCalls: []model.ToolCall{{ID: "call00001", Name: "add", Arguments: json.RawMessage(`{"a":1}`)}}},
			{Role: model.ToolRole, Content: "3", ToolCallID: "call00001", Name: "add"},
		},
	}
}

// A template that says nothing of tools gets them as text.
func TestToolsWithoutATemplateForThem(t *testing.T) {
	plain := newTemplate("{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}", "", "", renderTemplate)
	for _, f := range constraint.CallFormats {
		req := toolTalk()
		req.CallFormat = f
		got, _, err := plain.apply(req, time.Unix(0, 0).UTC())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"[system]Be kind.\n\nYou can call tools.", `{"name":"add","description":"Adds <numbers>.","parameters":{"type":"object"}}`,
			"[assistant]" + model.WriteCall(f, req.Messages[2].ToolCalls[0]) + "\n", "[user]<tool_response>\n3\n</tool_response>\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in %q", f, want, got)
			}
		}
	}
}

// Real templates show tools in their own way.
func TestToolsOfRealTemplates(t *testing.T) {
	files, err := filepath.Glob("testdata/templates/*.jinja")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	native := 0
	for _, file := range files {
		if base := filepath.Base(file); base == "clock.jinja" || base == "oddities.jinja" {
			continue // not made for chats
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl := newTemplate(string(source), "<s>", "</s>", renderTemplate)
		got, _, err := tmpl.apply(toolTalk(), time.Unix(0, 0).UTC())
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if tmpl.tools {
			native++
		}
		for _, want := range []string{"add", "1+2?", "3"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in %q", file, want, got)
			}
		}
		t.Logf("%s: own tools %v, format %s", filepath.Base(file), tmpl.tools, model.DetectCallFormat(string(source)))
	}
	if native == 0 {
		t.Error("no template shows tools by itself")
	}
}
