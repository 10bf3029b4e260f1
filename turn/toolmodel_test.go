package turn_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agentgraph/constraint"
	"agentgraph/model"
	"agentgraph/model/local"
	"agentgraph/record"
	"agentgraph/tools"
	"agentgraph/turn"
)

// smallModel opens the model of the examples, or ends the test.
func smallModel(t testing.TB) model.Model {
	t.Helper()
	path := os.Getenv("AGENTGRAPH_TEST_MODEL")
	if path == "" {
		if dir, err := os.UserCacheDir(); err == nil {
			path = filepath.Join(dir, "agentgraph", "SmolLM2-135M-Instruct.Q4_1.gguf")
		}
	}
	skip := func(why string) {
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	if _, err := os.Stat(path); err != nil {
		skip("the small model is missing; run make model")
	}
	m, err := local.Open(local.Config{Path: path, Context: 2048})
	if errors.Is(err, constraint.ErrNotBuilt) {
		t.Skip("needs the native library")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// runsOfTheSmallModel is how often the model is asked; AGENTGRAPH_TOOL_RUNS
// asks for more.
func runsOfTheSmallModel(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("AGENTGRAPH_TOOL_RUNS")); err == nil && n > 0 {
		return n
	}
	if testing.Short() {
		return 2
	}
	return 10
}

// A small model at temperature 1 is as careless as a model can be: every call
// is well-formed, every answer keeps its schema, none holds a call.
func TestSmallModelWithToolsAndSchema(t *testing.T) {
	m := smallModel(t)
	weather := program(t, "weather", `{"type":"object","properties":{"city":{"type":"string","minLength":1,"maxLength":20},"days":{"type":"integer","minimum":1,"maximum":7}},"required":["city","days"],"additionalProperties":false}`, `echo "sunny, 21 degrees"`)
	schema := `{"type":"object","properties":{"summary":{"type":"string","maxLength":40},"degrees":{"type":"integer","minimum":-50,"maximum":60}},"required":["summary","degrees"],"additionalProperties":false}`
	box := &tools.Box{}
	defer box.Close()
	called, answered := 0, 0
	for i := range runsOfTheSmallModel(t) {
		seed := uint64(i + 1)
		req := &turn.Request{
			System: []string{"You look things up with tools before you answer."}, User: "What is the weather in Oslo? Call the tool weather first.",
			Model: m, Tools: []tools.Config{weather, adder(t)}, Toolbox: box, MaxToolRounds: 2,
			Spec: spec(constraint.JSON, schema), SchemaInPrompt: i%2 == 0,
			Sampling: model.Sampling{Temperature: 1, Seed: &seed, MaxTokens: 3 * 96},
		}
		if i%2 == 1 { // one that has seen how it is done
			req.History = []turn.Exchange{{User: "What is the weather in Rome?", Answer: model.WriteCall(constraint.HermesCalls,
				model.ToolCall{Name: "weather", Arguments: json.RawMessage(`{"city": "Rome", "days": 1}`)})}}
		}
		rec := run(t, t.Context(), req)
		text, ok := rec.Answer()
		switch {
		case ok:
			answered++
			file, _ := rec.FileText()
			if file != text || strings.Contains(text, "tool_call>") || strings.Contains(text, `"arguments"`) {
				t.Errorf("seed %d: the answer holds a call: %q", seed, file)
			}
		case rec.Outcome.Limit != "output_tokens":
			t.Errorf("seed %d: %+v, %v", seed, rec.Outcome, rec.Error)
		}
		for _, c := range rec.ToolCalls {
			called++
			if c.Error != "" || c.Result == nil || !json.Valid(c.Arguments) {
				t.Errorf("seed %d: the call %s %s: %s", seed, c.Name, c.Arguments, c.Error)
			}
		}
		if rec.OutputValidation.EnforcedBy == nil || *rec.OutputValidation.EnforcedBy != constraint.ByMask {
			t.Errorf("seed %d: enforced by %v", seed, rec.OutputValidation.EnforcedBy)
		}
		t.Logf("seed %d: %d calls, %q", seed, len(rec.ToolCalls), text)
	}
	if called == 0 || answered == 0 {
		t.Errorf("%d calls, %d answers: the test shows nothing", called, answered)
	}
}

// In free text the same holds for what begins like a call.
func TestSmallModelWithToolsInFreeText(t *testing.T) {
	m := smallModel(t)
	seed := uint64(7)
	rec := run(t, t.Context(), &turn.Request{User: "What is 20 + 22? Use the tool.", Model: m, Tools: []tools.Config{adder(t)}, MaxToolRounds: 1,
		Sampling: model.Sampling{Temperature: 1, Seed: &seed, MaxTokens: 96}})
	if rec.Outcome.Status != record.Completed && rec.Outcome.Limit != "output_tokens" {
		t.Errorf("%+v, %v", rec.Outcome, rec.Error)
	}
	for _, c := range rec.ToolCalls {
		if c.Error != "" {
			t.Errorf("%+v", c)
		}
	}
	if text, ok := rec.Answer(); ok && strings.HasPrefix(strings.TrimSpace(text), "<tool_call>") {
		t.Errorf("%q", text)
	}
}
