package model_test

import (
	"testing"

	"agentgraph/constraint"
	"agentgraph/model"
)

func TestCallsThereAndBack(t *testing.T) {
	tools := []model.Tool{{Name: "ad"}, {Name: "add"}}
	for _, f := range constraint.CallFormats {
		for _, args := range []string{`{}`, `{"a": 1, "text": "}\n</tool_call>]"}`} {
			text := model.WriteCall(f, model.ToolCall{Name: "add", Arguments: []byte(args)})
			got, ok := model.ParseCall(f, " \n"+text+"\n", tools)
			if !ok || got.Name != "add" || string(got.Arguments) != args {
				t.Errorf("%s: %q gives %+v, %v", f, text, got, ok)
			}
			for _, other := range []string{"", "hello", "so: " + text, text[:len(text)-1], text + text,
				model.WriteCall(f, model.ToolCall{Name: "sub", Arguments: []byte(args)}),
				model.WriteCall(f, model.ToolCall{Name: "add", Arguments: []byte(`[1]`)})} {
				if c, ok := model.ParseCall(f, other, tools); ok {
					t.Errorf("%s: %q is read as the call %+v", f, other, c)
				}
			}
		}
	}
}

func TestDetectCallFormat(t *testing.T) {
	for template, want := range map[string]constraint.CallFormat{
		"{% if tools %}<tool_call>{% endif %}":                                       constraint.HermesCalls,
		"{{ '[TOOL_CALLS][' }}":                                                      constraint.MistralCalls,
		"{{ '[TOOL_CALLS]' + name + '[ARGS]' }}":                                     constraint.MistralArgsCalls,
		"{{- '<|python_tag|>' }}":                                                    constraint.LlamaCalls,
		`<|start_header_id|>ipython {"name": x, "parameters": y}`:                    constraint.LlamaCalls,
		"{% for m in messages %}<|im_start|>{{ m.role }}{{ m.content }}{% endfor %}": constraint.HermesCalls,
	} {
		if got := model.DetectCallFormat(template); got != want {
			t.Errorf("%q: %s, want %s", template, got, want)
		}
	}
}
