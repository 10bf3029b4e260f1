package turn_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/tools"
	"agentgraph/turn"
)

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// The record has of each call what was asked, what the model read of it, and
// size and hash of the whole, which the model did not read.
func TestCallsInTheRecord(t *testing.T) {
	whole := strings.Repeat("x", 5000) + "the end"
	long := program(t, "long", `{"type":"object"}`, `i=0; while [ $i -lt 50 ]; do printf %0100d 0 | tr 0 x; i=$((i+1)); done; printf "the end"`)
	long.OutputBytes = 100
	bad := program(t, "bad", `{"type":"object"}`, `printf "some of it"; echo broken >&2; exit 7`)
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := scripted(t, "tools: true\nconstraints: none\nreplies:\n  - match: go\n    tool_calls: [{name: long, arguments: {z: 1.50, a: ü}}, {name: bad, arguments: {}}, {name: gone, arguments: {}}]\n  - text: done\n")
	var read []string
	rec := run(t, t.Context(), &turn.Request{User: "go", Model: m, Tools: []tools.Config{long, bad},
		Clock:      func() time.Time { clock = clock.Add(1500 * time.Millisecond); return clock },
		ToolResult: func(c record.ToolCall) error { read = append(read, *c.Result); return nil }})
	if text, ok := rec.Answer(); !ok || text != "done" || len(rec.ToolCalls) != 3 {
		t.Fatalf("%q, %v, %+v", text, rec.Error, rec.ToolCalls)
	}
	cut := strings.Repeat("x", 100) + "\n[cut after 100 of 5007 bytes]"
	c := rec.ToolCalls[0]
	if *c.Result != cut || *c.ResultBytes != 5007 || *c.ResultSHA256 != sha(whole) || *c.ExitStatus != 0 || c.Error != "" || c.Milliseconds != 1500 {
		t.Errorf("%+v: %q, %d bytes", c, *c.Result, *c.ResultBytes)
	}
	if got := strings.ReplaceAll(string(c.Arguments), " ", ""); got != `{"z":1.50,"a":"ü"}` && got != `{"z":1.5,"a":"ü"}` {
		t.Errorf("arguments %s", got)
	}
	c = rec.ToolCalls[1]
	if *c.Result != "error: it failed with exit status 7: broken" || *c.ExitStatus != 7 || *c.ResultBytes != 10 || *c.ResultSHA256 != sha("some of it") {
		t.Errorf("%+v: %q", c, *c.Result)
	}
	c = rec.ToolCalls[2]
	if !strings.Contains(c.Error, `there is no tool "gone"; there are long, bad`) || c.ResultSHA256 != nil || c.ExitStatus != nil {
		t.Errorf("%+v", c)
	}
	// tool_output gets what the model read.
	if len(read) != 3 || read[0] != cut || read[1] != *rec.ToolCalls[1].Result {
		t.Errorf("%q", read)
	}
}

// Reasoning is kept in the record, per round, and is in no answer: neither in
// the file nor in what is shown of it, for each kind of constraint and for none.
func TestReasoning(t *testing.T) {
	native(t)
	for _, tt := range []struct {
		name, head string
		kind       constraint.Kind
		src, text  string
		opt        constraint.Options
	}{
		{"json", "", constraint.JSON, sumSchema, `{"sum":42}`, constraint.Options{}},
		{"regex", "", constraint.Regex, `is [0-9]+`, "is 42", constraint.Options{}},
		{"lark", "", constraint.Lark, `start: "ok"`, "ok", constraint.Options{}},
		{"llg", "", constraint.LLG, `{"grammars":[{"json_schema":{"type":"integer"}}]}`, "42", constraint.Options{}},
		{"free", "", "", "", "it is 42", constraint.Options{}},
		{"validated", "constraints: none\n", constraint.JSON, sumSchema, `{"sum":42}`, validate},
	} {
		for _, thinking := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, thinking %v", tt.name, thinking), func(t *testing.T) {
				m := scripted(t, "tools: true\n"+tt.head+"replies:\n  - match: sum\n    reasoning: let me add\n    tool_calls: [{name: add, arguments: {a: 20, b: 22}}]\n  - tool_result: '42'\n    reasoning: '42, then'\n    text: '"+tt.text+"'\n"+
					"  - tool_result: '42'\n    reasoning: '42, then'\n    text: '"+tt.text+"'\n")
				var shown, thought strings.Builder
				req := &turn.Request{User: "sum", Model: m, Tools: []tools.Config{adder(t)}, ConstraintOptions: tt.opt, Thinking: &thinking,
					Progress: func(p model.Progress) { shown.WriteString(p.Text); thought.WriteString(p.Reasoning) }}
				if tt.kind != "" {
					req.Spec = spec(tt.kind, tt.src)
				}
				rec := run(t, t.Context(), req)
				text, ok := rec.Answer()
				if !ok || text != tt.text {
					t.Fatalf("%q, %v", text, rec.Error)
				}
				want := [2]string{"let me add", "42, then"}
				if !thinking {
					want = [2]string{}
				}
				if got := [2]string{rec.ToolRounds[0].Reasoning, rec.Outcome.Reasoning}; got != want {
					t.Errorf("reasoning %q, want %q", got, want)
				}
				file, _ := rec.FileText()
				if strings.Contains(file+shown.String(), "let me") || strings.Contains(file+shown.String(), "then") {
					t.Errorf("the file %q, shown %q", file, shown.String())
				}
				if tt.kind != "" && file != tt.text {
					t.Errorf("the file holds %q", file)
				}
				if thinking != strings.Contains(thought.String(), "then") {
					t.Errorf("shown of the reasoning: %q", thought.String())
				}
			})
		}
	}
}

// Waiting for approval counts against the turn's time; nothing waits after it,
// and the tool did not run.
func TestNobodyApproves(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	c := program(t, "add", addParameters, "touch "+ran)
	c.Policy = tools.Ask
	desk := &tools.Desk{}
	m := scripted(t, "tools: true\nconstraints: none\nreplies:\n  - match: sum\n    tool_calls: [{name: add, arguments: {a: 1, b: 2}}]\n  - text: done\n")
	rec := run(t, t.Context(), &turn.Request{User: "sum", Model: m, Tools: []tools.Config{c}, Approver: desk, Timeout: 3 * time.Second})
	if rec.Outcome.Status != record.TimedOut || len(rec.ToolCalls) != 1 || rec.ToolCalls[0].Result != nil || !strings.Contains(rec.ToolCalls[0].Error, "nobody decided") {
		t.Errorf("%+v, %v, %+v", rec.Outcome, rec.Error, rec.ToolCalls)
	}
	if _, err := os.Stat(ran); err == nil || len(desk.Waiting()) > 0 {
		t.Errorf("the tool ran (%v), or its call still waits: %+v", err == nil, desk.Waiting())
	}
}

// However a tool cannot be held, it alone is switched off, and the reason names
// construct and place.
func TestWhyToolsAreDisabled(t *testing.T) {
	native(t)
	huge := `{"type":"object","properties":{` + strings.Repeat(`"p":{"type":"string"},`, 70000) + `"q":{}}}`
	tests := []struct{ name, parameters, want string }{
		{"items", `{"type":"object","properties":{"l":{"type":"array","uniqueItems":true}}}`, `at /properties/l: 'uniqueItems'`},
		{"remote", `{"type":"object","properties":{"r":{"$ref":"http://127.0.0.1:1/x.json"}}}`, `$ref`},
		{"typo", `{"type":"object","properties":{"s":{"type":"strng"}}}`, `/properties/s`},
		{"pattern", `{"type":"object","properties":{"s":{"type":"string","pattern":"(?=a)b"}}}`, `/properties/s`},
		{"never", `{"type":"object","properties":{"s":false},"required":["s"]}`, `the schema of its arguments`},
		{"endless", `{"type":"object","properties":{"s":{"$ref":"#/properties/s"}},"required":["s"]}`, `/properties/s`},
		{"twice", `{"type":"object","type":"object"}`, `the schema of its arguments`},
		{"huge", huge, `the schema of its arguments`},
		{"no name", `{"type":"object"}`, "the name has characters that no call can carry"},
		{"text", `{"type":"string"}`, "arguments are an object"},
		{"list", `[]`, "the parameters are no JSON object"},
	}
	var list []string
	for _, tt := range tests {
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, tt.name, tt.parameters))
	}
	list = append(list, `{"name":"add","inputSchema":`+addParameters+`}`)
	url := toolServer(t, list)
	m := scripted(t, "tools: true\nreplies:\n  - match: sum\n    tool_calls: [{name: add, arguments: {a: 20, b: 22}}]\n  - tool_result: '42'\n    text: '{\"sum\":42}'\n")
	rec := run(t, t.Context(), &turn.Request{User: "sum", Model: m, Tools: []tools.Config{{MCP: &tools.Server{URL: url}}}, Spec: spec(constraint.JSON, sumSchema)})
	if text, ok := rec.Answer(); !ok || text != `{"sum":42}` || len(rec.ToolCalls) != 1 || len(rec.Request.Tools) != 1 {
		t.Fatalf("%q, %v, %+v", text, rec.Error, rec.ToolCalls)
	}
	why := map[string]string{}
	for _, d := range rec.Request.DisabledTools {
		why[d.Name] = d.Reason
	}
	for _, tt := range tests {
		if !strings.Contains(why[tt.name], tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, why[tt.name], tt.want)
		}
	}
	// Without any tool left the turn has none.
	rec = run(t, t.Context(), &turn.Request{User: "hello", Model: scripted(t, "tools: true\ndefault: {text: '{\"sum\":1}'}\n"),
		Tools: []tools.Config{{MCP: &tools.Server{URL: url}, Only: []string{"items", "text"}}}, Spec: spec(constraint.JSON, sumSchema)})
	if text, ok := rec.Answer(); !ok || text != `{"sum":1}` || len(rec.Request.DisabledTools) != 2 || rec.Accounting.ModelCalls != "1" {
		t.Errorf("%q, %v, %+v", text, rec.Error, rec.Request.DisabledTools)
	}
}

// Tools whose schemas the engine holds one by one but not all at once: those that
// go beyond are switched off.
func TestToolsThatDoNotFitTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles large grammars")
	}
	native(t)
	list := []string{`{"name":"add","inputSchema":` + addParameters + `}`}
	for i := range 3 {
		var items []string
		for k := range 550 {
			items = append(items, fmt.Sprintf(`{"type":"array","minItems":%d,"maxItems":%d,"items":{"const":"v%d_%d"}}`, 900+k, 1900+k, i, k))
		}
		list = append(list, fmt.Sprintf(`{"name":"large%d","inputSchema":{"type":"object","properties":{"s":{"type":"array","prefixItems":[%s]}}}}`, i, strings.Join(items, ",")))
	}
	url := toolServer(t, list)
	m := scripted(t, "tools: true\nreplies:\n  - match: sum\n    tool_calls: [{name: add, arguments: {a: 20, b: 22}}]\n  - tool_result: '42'\n    text: it is 42\n")
	rec := run(t, t.Context(), &turn.Request{User: "sum", Model: m, Tools: []tools.Config{{MCP: &tools.Server{URL: url}}}})
	if text, ok := rec.Answer(); !ok || text != "it is 42" || len(rec.ToolCalls) != 1 {
		t.Fatalf("%q, %v, %+v", text, rec.Error, rec.ToolCalls)
	}
	d := rec.Request.DisabledTools
	if len(d) == 0 || len(d)+len(rec.Request.Tools) != len(list) || !strings.Contains(d[0].Reason, "larger than the engine can hold") {
		t.Errorf("disabled %+v of %d", d, len(rec.Request.Tools))
	}
}

// toolServer is an MCP server with these tools, each of which answers 42.
func toolServer(t *testing.T, list []string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || json.Unmarshal(body, &m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`,
			"tools/list": `{"tools":[` + strings.Join(list, ",") + `]}`,
			"tools/call": `{"content":[{"type":"text","text":"42"}]}`,
		}[m.Method]
		w.Header().Set("Content-Type", "application/json")
		if result == "" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}
