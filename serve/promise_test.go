package serve_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/serve"
)

func TestPromise(t *testing.T) {
	for name, test := range map[string]struct {
		in       string
		spec     *constraint.Spec
		argument string
	}{
		"none":                 {in: `{"enforce": "mask"}`},
		"null":                 {in: `{"schema": null, "regex": null}`},
		"a schema as it came":  {in: `{"schema": {"z": 1,  "a": 2}}`, spec: &constraint.Spec{Kind: constraint.JSON, Source: []byte(`{"z": 1,  "a": 2}`)}},
		"a regex":              {in: `{"regex": "a+"}`, spec: &constraint.Spec{Kind: constraint.Regex, Source: []byte("a+")}},
		"Lark":                 {in: `{"lark": "start: \"a\""}`, spec: &constraint.Spec{Kind: constraint.Lark, Source: []byte(`start: "a"`)}},
		"llguidance":           {in: `{"llg": {"grammars": []}}`, spec: &constraint.Spec{Kind: constraint.LLG, Source: []byte(`{"grammars": []}`)}},
		"a schema as text":     {in: `{"schema": "{}"}`, argument: "schema"},
		"grammars as a list":   {in: `{"llg": []}`, argument: "llg"},
		"an empty regex":       {in: `{"regex": ""}`, argument: "regex"},
		"an empty grammar":     {in: `{"lark": ""}`, argument: "lark"},
		"two":                  {in: `{"regex": "a", "schema": {}}`, argument: "schema, regex"},
		"two of the same type": {in: `{"regex": "a", "lark": "start: \"a\""}`, argument: "regex, lark"},
	} {
		t.Run(name, func(t *testing.T) {
			var p serve.Promise
			if err := json.Unmarshal([]byte(test.in), &p); err != nil {
				t.Fatal(err)
			}
			spec, err := p.Spec()
			var argument string
			var wrong *serve.ArgumentError
			switch {
			case errors.As(err, &wrong):
				argument = wrong.Argument
			case err != nil:
				t.Fatalf("%v is no ArgumentError", err)
			}
			if argument != test.argument {
				t.Errorf("it is wrong with %q, want %q: %v", argument, test.argument, err)
			}
			if diff := cmp.Diff(test.spec, spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		`{"prompt": "x", "regex": "a"}`: "",
		`{"prompt": 7}`:                 "prompt: a JSON number stands where another type belongs",
		`{"regex": 7}`:                  "regex: a JSON number stands where another type belongs",
		`{"shema": {}}`:                 `unknown field "shema"`,
		`[]`:                            "a JSON array stands where an object belongs",
	} {
		var args struct {
			serve.Promise
			Prompt string `json:"prompt"`
		}
		got := ""
		if err := serve.Decode(json.RawMessage(in), &args); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
