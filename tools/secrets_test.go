package tools_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/tools"
)

const secretValue = "s3cret-value"

// noPart fails when a text holds the value, or four bytes of its ends.
func noPart(t *testing.T, what, text string) {
	t.Helper()
	for _, part := range []string{secretValue, secretValue[:4], secretValue[len(secretValue)-4:]} {
		if i := strings.Index(text, part); i >= 0 {
			t.Errorf("%s holds %q: …%s", what, part, text[max(0, i-20):])
			return
		}
	}
}

// A value that is cut in two by a bound does not get out in parts.
func TestSecretsAtACut(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TOOL_KEY", secretValue)
	for name, body := range map[string]string{
		"at the end of a result":  `cat >/dev/null; head -c 8186 /dev/zero | tr '\0' x; printf %s "$TOOL_KEY"; printf rest`,
		"behind a result":         `cat >/dev/null; head -c 8192 /dev/zero | tr '\0' x; printf %s "$TOOL_KEY"`,
		"twice":                   `cat >/dev/null; printf %s "$TOOL_KEY"; head -c 8170 /dev/zero | tr '\0' x; printf %s "$TOOL_KEY"`,
		"at the begin of stderr":  `cat >/dev/null; { head -c 3000 /dev/zero | tr '\0' y; printf %s "$TOOL_KEY"; head -c 2042 /dev/zero | tr '\0' x; } >e; cat e >&2; exit 1`,
		"at the end of a failure": `cat >/dev/null; head -c 2040 /dev/zero | tr '\0' x; printf %s "$TOOL_KEY"; exit 1`,
		"in stderr":               `cat >/dev/null; echo "key $TOOL_KEY is bad" >&2; exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			work := t.TempDir()
			o := open(t, tools.Config{Command: []string{tool(t, dir, "ag-tool-leak", body)}, Env: []string{"TOOL_KEY"}, Dir: work}, tools.Place{Root: work, Dir: work})
			r := call(o, `{"a":1}`)
			noPart(t, "the result", r.Text)
			noPart(t, "the failure", r.Failed)
			if name == "in stderr" && !strings.Contains(r.Failed, "key [TOOL_KEY] is bad") {
				t.Errorf("the failure is %q", r.Failed)
			}
		})
	}
}

// What a program says of itself goes into the prompt and the record.
func TestSecretsInDescriptions(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TOOL_KEY", secretValue)
	write := func(name, src string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+src), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	talks := write("talks", `case "$1" in
--describe) echo '{"name":"talks","description":"uses '$TOOL_KEY'","parameters":{"type":"object","properties":{"k":{"const":"'$TOOL_KEY'"}}}}';;
--help) echo "The key is $TOOL_KEY.";;
esac
`)
	o := open(t, tools.Config{Command: []string{talks}, Env: []string{"TOOL_KEY"}}, tools.Place{Dir: dir})
	noPart(t, "the description", o.Spec().Description)
	noPart(t, "the schema", string(o.Spec().Parameters))
	noPart(t, "the guidance", o.Guidance())
	if want := "The key is [TOOL_KEY]."; o.Guidance() != want {
		t.Errorf("the guidance is %q, want %q", o.Guidance(), want)
	}
	breaks := write("breaks", `echo "no access with $TOOL_KEY" >&2; exit 1`)
	box := &tools.Box{}
	defer box.Close()
	_, err := box.Open(t.Context(), []tools.Config{{Command: []string{breaks}, Env: []string{"TOOL_KEY"}}}, tools.Place{Dir: dir})
	var oe *tools.OpenError
	if !errors.As(err, &oe) || !strings.Contains(err.Error(), "no access with [TOOL_KEY]") {
		t.Errorf("the error is %v", err)
	}
	if err != nil {
		noPart(t, "the error", err.Error())
	}
	// The same program without the variable is described anew.
	plain := open(t, tools.Config{Command: []string{talks}}, tools.Place{Dir: dir})
	if want := "The key is ."; plain.Guidance() != want {
		t.Errorf("without the variable the guidance is %q", plain.Guidance())
	}
}

// A server that sends a header's value back does not get it into a record.
func TestSecretsInHeaders(t *testing.T) {
	t.Setenv("HEADER_KEY", secretValue)
	server := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "whoami", Description: "d", InputSchema: map[string]any{"type": "object"}},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "you sent " + req.Extra.Header.Get("X-Key")}}}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	o := open(t, tools.Config{MCP: &tools.Server{URL: web.URL, Headers: map[string]string{"X-Key": "HEADER_KEY"}}}, tools.Place{Dir: t.TempDir()})
	if r := call(o, `{}`); r.Text != "you sent [HEADER_KEY]" {
		t.Errorf("the result is %q (%s)", r.Text, r.Failed)
	}
}
