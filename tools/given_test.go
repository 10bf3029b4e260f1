package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentgraph/tools"
)

// A server that somebody names in a call is looked for on the PATH it was given,
// has the variables it was given, and their values come back to nobody.
func TestGivenVariables(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "given-server"), []byte("#!/bin/sh\necho \"key $GIVEN_KEY in $GIVEN_DIR home $HOME\" >&2\nexec '"+exe+"' "+stdioServer+" \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	given := []tools.Variable{{"PATH", bin + string(os.PathListSeparator) + os.Getenv("PATH")}, {"GIVEN_KEY", secretValue}, {"GIVEN_DIR", bin}, {"HOME", "/given/home"}}
	box := &tools.Box{}
	defer box.Close()
	server := &tools.Server{Name: "theirs", Command: []string{"given-server"}}
	offers, err := box.Open(t.Context(), []tools.Config{{MCP: server, Given: given}}, tools.Place{Dir: bin})
	if err != nil || len(offers) != 3 {
		t.Fatalf("%v, %v", offers, err)
	}
	other := offers[0].Called("theirs_add")
	if other.Name() != "theirs_add" || offers[0].Name() != "add" || offers[0].Called("add") != offers[0] {
		t.Errorf("%q and %q", other.Name(), offers[0].Name())
	}
	if r := call(other, `{"a":2,"b":2}`); !strings.HasPrefix(r.Text, "++++") {
		t.Errorf("%+v", r)
	}
	if _, err := box.Open(t.Context(), []tools.Config{{MCP: server}}, tools.Place{Dir: bin}); err == nil || !strings.Contains(err.Error(), "MCP server theirs: there is no program given-server") {
		t.Errorf("without its PATH: %v", err)
	}
	broken := &tools.Server{Name: "broken", Command: []string{"sh", "-c", `echo "key $GIVEN_KEY in $GIVEN_DIR home $HOME" >&2; exit 1`}}
	_, err = box.Open(t.Context(), []tools.Config{{MCP: broken, Given: given}}, tools.Place{Dir: bin})
	if err == nil || !strings.Contains(err.Error(), "key [GIVEN_KEY] in "+bin+" home /given/home") {
		t.Errorf("%v", err)
	}
	noPart(t, "the error", err.Error())
}

// The address of such a server may be all that keeps others out.
func TestGivenAddress(t *testing.T) {
	box := &tools.Box{}
	defer box.Close()
	for _, path := range []string{"/mcp/" + secretValue + "/sse", "/?token=" + secretValue} {
		server := &tools.Server{Name: "theirs", URL: "http://127.0.0.1:1" + path, Given: []tools.Variable{{"Authorization", "Bearer " + secretValue}}}
		_, err := box.Open(t.Context(), []tools.Config{{MCP: server}}, tools.Place{})
		if err == nil || !strings.Contains(err.Error(), "MCP server theirs: ") {
			t.Fatal(err)
		}
		noPart(t, "the error", err.Error())
	}
}
