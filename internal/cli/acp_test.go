package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentgraph/record"
	"agentgraph/record/recordtest"
)

// The small model over ACP: free text comes token by token, a schema holds
// every token, and a cancel stops the model at its next one.
func TestACPWithAModel(t *testing.T) {
	gguf := realModel(t)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- Main(t.Context(), []string{"acp", "--model", gguf, examplePath(t, "reviews")}, inR, outW, os.Stderr)
		outW.Close()
	}()
	defer inW.Close()
	type message struct {
		ID     int
		Method string
		Params struct {
			Update struct {
				SessionUpdate string
				Content       struct{ Text string }
			}
		}
		Result struct {
			SessionID, StopReason string
			Meta                  map[string]struct{ Task *record.Record } `json:"_meta"`
		}
		Error json.RawMessage
	}
	lines := bufio.NewScanner(outR)
	lines.Buffer(nil, 4<<20)
	next := func() (m message) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the connection ended: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.Error != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		return m
	}
	id := 0
	send := func(method, params string) {
		id++
		fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
	}
	// answer reads up to the response and returns the texts before it.
	answer := func() (chunks []string, m message) {
		for {
			if m = next(); m.Method == "" {
				return chunks, m
			}
			if m.Params.Update.SessionUpdate == "agent_message_chunk" {
				chunks = append(chunks, m.Params.Update.Content.Text)
			}
		}
	}
	send("initialize", `{"protocolVersion":1,"clientCapabilities":{"_meta":{"agentgraph/v1":{}}}}`)
	next()
	send("session/new", `{"cwd":"/","mcpServers":[]}`)
	session := next().Result.SessionID
	prompt := func(text, meta string) {
		send("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}],"_meta":{"agentgraph/v1":%s}}`, session, text, meta))
	}
	task := func(m message) *record.Record {
		t.Helper()
		rec := m.Result.Meta["agentgraph/v1"].Task
		if rec == nil {
			t.Fatalf("no record in %+v", m)
		}
		recordtest.Check(t, rec)
		return rec
	}

	prompt("Name a river in France.", `{"max_output_tokens":20}`)
	chunks, m := answer()
	if text := strings.Join(chunks, ""); len(chunks) < 3 || text != *task(m).Outcome.Output {
		t.Errorf("%d chunks, %q", len(chunks), text)
	}

	prompt("The kettle leaks.", `{"schema":{"type":"object","properties":{"rating":{"type":"integer","minimum":1,"maximum":5}},"required":["rating"],"additionalProperties":false}}`)
	chunks, m = answer()
	rec := task(m)
	if text, ok := rec.Answer(); !ok || len(chunks) != 1 || chunks[0] != text || *rec.OutputValidation.EnforcedBy != "mask" {
		t.Errorf("%q: %+v", chunks, rec.OutputValidation)
	}

	prompt("Tell me everything about rivers.", `{"max_output_tokens":1500}`)
	for next().Params.Update.SessionUpdate != "agent_message_chunk" {
	}
	began := time.Now()
	fmt.Fprintf(inW, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", session)
	chunks, m = answer()
	if took := time.Since(began); m.Result.StopReason != "cancelled" || task(m).Outcome.Status != record.Cancelled || took > 20*time.Second {
		t.Errorf("%s after %v and %d more chunks", m.Result.StopReason, took, len(chunks))
	}
	if text := *task(m).Outcome.Output; len(text) > 2000 {
		t.Errorf("the model went on for %d bytes", len(text))
	}
	inW.Close()
	if code := <-exit; code != 0 {
		t.Errorf("exit %d", code)
	}
}

// examplePath is a copy of one of examples/.
func examplePath(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestACPArguments(t *testing.T) {
	t.Chdir(examplePath(t, "reviews"))
	for _, tt := range []struct {
		args string
		says string
	}{
		{"acp --agent nobody", "--agent"},
		{"acp nowhere", "nowhere"},
		{"acp one two", "does not take 2 arguments"},
	} {
		var stdout, stderr strings.Builder
		if code := Main(t.Context(), strings.Fields(tt.args), strings.NewReader(""), &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), tt.says) || stdout.Len() > 0 {
			t.Errorf("%s: exit %d, %s%s", tt.args, code, &stdout, &stderr)
		}
	}
}
