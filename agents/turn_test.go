package agents

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentgraph/record"
	"agentgraph/turn"
)

func TestTurnIsReadAnew(t *testing.T) {
	g := load(t, `
-- agents/a/agent.yaml --
prompt: And be kind.
sampling: {temperature: 0.5}
-- agents/a/system/20-second.md --
Two.


-- agents/a/system/10-first.md --
One.
-- agents/a/system/.hidden --
no
-- agents/a/system/backup~ --
no
-- agents/a/system/empty --
-- agents/a/system/folder/x --
no
-- agents/a/system/binary --
`+"a\x00b"+`
-- agents/a/system/out -> /etc/hostname --
-- agents/a/system/30-link -> ../../../shared.md --
-- shared.md --
Three.
`)
	a := g.Agents[0]
	in := []Input{{Path: "agents/a/input/x", Data: []byte("text\n")}}
	req, err := a.Turn(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"One.", "Two.", "Three."}, req.System); diff != "" {
		t.Errorf("system parts (-want +got):\n%s", diff)
	}
	if req.Agent != "a" || req.Prompt != "And be kind." || req.Sampling.Temperature != 0.5 || !req.SchemaInPrompt || req.User != "text\n" || req.Spec != nil {
		t.Errorf("%+v", req)
	}
	want := []record.FileRef{{Path: "agents/a/input/x", SHA256: "b9e68e1bea3e5b19ca6b2f98b73a54b73daafaa250484902e09982e07a12e733", Bytes: 5}}
	if diff := cmp.Diff(want, req.Inputs); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
	if _, _, ok := AnswerName(req); ok {
		t.Error("an answer's name without a schema file")
	}

	before := a.Fingerprint()
	schema := filepath.Join(a.SystemDir, ".schema-rating.json")
	if err := os.WriteFile(schema, []byte("\ufeff{\"type\": \"integer\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if a.Fingerprint() == before {
		t.Error("the fingerprint does not follow the schema")
	}
	req, err = a.Turn(in)
	if err != nil {
		t.Fatal(err)
	}
	if req.Spec == nil || req.Spec.Kind != "json" || string(req.Spec.Source) != "{\"type\": \"integer\"}\n" || req.Spec.File != "agents/a/system/.schema-rating.json" {
		t.Errorf("%+v", req.Spec)
	}
	if format, ext, ok := AnswerName(req); !ok || format != "rating" || ext != "json" {
		t.Errorf("answer name %q %q %v", format, ext, ok)
	}
}

func TestTurnRefusals(t *testing.T) {
	base := "-- agents/a/agent.yaml --\nlimits: {input_bytes: 10}\n"
	for _, tt := range []struct {
		name, files string
		in          []Input
		code        record.Code
		want        string
	}{
		{"no text", "", []Input{{Path: "in/x", Data: []byte("ab\xff")}}, record.InputNotText, "in/x: the input is not UTF-8: the byte at offset 2 is 0xFF; save it as UTF-8; if it is no text at all, it cannot be answered"},
		{"a zero byte", "", []Input{{Path: "in/x", Data: []byte("a\x00")}}, record.InputNotText, "binary, not text: the byte at offset 1 is zero"},
		{"too large", "", []Input{{Path: "in/x", Data: []byte("12345678901")}}, record.InputTooLarge, "in/x: the input has 11 bytes, more than input_bytes allows (10); split it, or raise limits: input_bytes"},
		{"too large to keep", "", []Input{{Path: "in/x", Size: 1 << 40}}, record.InputTooLarge, "1099511627776 bytes"},
		{"too large together", "", []Input{{Path: "x", Data: []byte("1")}, {Path: "y", Data: []byte("2")}}, record.InputTooLarge, "the input has 16 bytes"},
		{"two schemas", "-- agents/a/system/.schema-a.json --\n{}\n-- agents/a/system/.schema-b.json --\n{}\n", nil, record.SchemaRefused, "2 schema files"},
		{"no JSON", "-- agents/a/system/.schema-a.json --\n{\n \"type\": }\n", nil, record.SchemaRefused, "agents/a/system/.schema-a.json:2:"},
		{"schema outside", "-- agents/a/system/.schema-a.txt@regex -> /etc/hostname --\n", nil, record.OutsideGraph, "leads out of the graph"},
		{"settings", "-- agents/a/agent.yaml --\nfoo: 1\n", nil, record.SettingsInvalid, `unknown key "foo"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := load(t, base+tt.files)
			req, err := g.Agents[0].Turn(tt.in)
			var e *Error
			if !errors.As(err, &e) || e.Code != tt.code || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v; want %s with %q", err, tt.code, tt.want)
			}
			if rec := turn.Refuse(req, e.Record()); rec.Outcome != nil || rec.Error.Code != tt.code || len(rec.Inputs) != len(tt.in) {
				t.Errorf("record %+v", rec)
			}
		})
	}
}

func TestUserText(t *testing.T) {
	one := []Input{{Path: "p", Data: []byte(" as it is \r\n\n")}}
	if got := UserText(one); got != " as it is \r\n\n" {
		t.Errorf("one input: %q", got)
	}
	two := append(one, Input{Path: "q/r.txt", Data: []byte("x")})
	if got, want := UserText(two), "## p\n\n as it is \n\n## q/r.txt\n\nx"; got != want {
		t.Errorf("two inputs: %q, want %q", got, want)
	}
}

func TestModelNames(t *testing.T) {
	for name, want := range map[string]ModelSpec{
		"x.gguf":        {Name: "/base/x.gguf", GGUF: "/base/x.gguf"},
		"/a/X.GGUF":     {Name: "/a/X.GGUF", GGUF: "/a/X.GGUF"},
		"script:s.yaml": {Name: "script:/base/s.yaml", Script: "/base/s.yaml"},
	} {
		got, ok := ParseModel(name, "/base")
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, ok, diff)
		}
	}
	for _, name := range []string{"small", "script:", ""} {
		if _, ok := ParseModel(name, "/base"); ok {
			t.Errorf("%q is taken for a file", name)
		}
	}
}
