package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentgraph/constraint"
	"agentgraph/internal/clienttest"
	"agentgraph/record"
)

// llamaCommand is a server_command for llama.cpp's server on a GGUF file, and
// the address it listens on.
func llamaCommand(t *testing.T, gguf string) (command []string, url string) {
	t.Helper()
	program := llamaProgram(t)
	port := clienttest.Port(t)
	return []string{program, "-m", gguf, "--host", "127.0.0.1", "--port", fmt.Sprint(port), "-c", "2048", "-t", "2", "--no-warmup"},
		fmt.Sprintf("http://127.0.0.1:%d", port)
}

// A real server is started, held to a schema, probed and ended; one that
// cannot start gives way to a model in this process, under the same promise.
func TestServerCommandWithARealServer(t *testing.T) {
	gguf := realModel(t)
	good, url := llamaCommand(t, gguf)
	bad, badURL := llamaCommand(t, filepath.Join(t.TempDir(), "no-such.gguf"))
	words := func(list []string) string {
		b, _ := json.Marshal(list)
		return string(b)
	}
	dir := serverGraph(t, fmt.Sprintf("models:\n  m: {server: llamacpp, url: %q, server_command: %s}\n  broken: {server: llamacpp, url: %q, server_command: %s}\n  here: {gguf: %q}\n",
		url, words(good), badURL, words(bad), gguf), "sampling: {max_tokens: 120}\nmodel: m\n")
	code, out, errs := command(t, "models", "--probe", "--json", dir)
	if code != 0 && !strings.Contains(errs, "broken") {
		t.Fatalf("exit %d: %s %s", code, out, errs)
	}
	var doc struct{ Models []modelRow }
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	for _, row := range doc.Models {
		switch row.Name {
		case "broken":
			if !strings.Contains(row.Error, "the server ended (exit status 1)") {
				t.Errorf("the broken server: %q", row.Error)
			}
		case "m":
			if k := row.Kinds[0]; row.Error != "" || k.Kind != constraint.JSON || k.Probed == nil || !*k.Probed {
				t.Errorf("the probe of the started server: %+v", row)
			}
		}
	}
	if code, _, errs = command(t, "run", "--once", dir); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	check := func(text string) {
		t.Helper()
		c, err := constraint.Compile(constraint.Spec{Kind: constraint.JSON, Source: []byte(ratingSchema)}, constraint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if v := c.Validate(t.Context(), text); !v.Valid {
			t.Errorf("the answer %s: %v", text, v.Diagnostics)
		}
	}
	for _, text := range outputs(t, dir) {
		check(text)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		c.Close()
		t.Error("the server outlived the run")
	}
	if _, err := os.Stat(filepath.Join(dir, ".agentgraph", "servers", "m.log")); err != nil {
		t.Error(err)
	}

	file := filepath.Join(dir, "agentgraph.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), "{model: m, ", "{model: broken, fallback: [here], sampling: {max_tokens: 120}, ", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs = command(t, "respond", "--json", "--graph", dir, "--schema", ratingSchema, "It leaks.")
	var rec record.Record
	if err := json.Unmarshal([]byte(out), &rec); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s %s", code, err, out, errs)
	}
	check(*rec.Outcome.Output)
	if rec.Request.Model.Alias != "here" || *rec.OutputValidation.EnforcedBy != constraint.ByMask || len(rec.Request.PassedOver) != 1 ||
		rec.Request.PassedOver[0].Model.Alias != "broken" || !strings.Contains(rec.Request.PassedOver[0].Message, "the server ended (exit status 1)") {
		t.Errorf("answered by %+v, %s; passed over: %+v", rec.Request.Model, *rec.OutputValidation.EnforcedBy, rec.Request.PassedOver)
	}
}
