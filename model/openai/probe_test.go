package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentgraph/constraint"
	"agentgraph/model"
)

// obedient answers constrained requests by their constraint and others with a
// greeting, as far as tests need it.
func obedient(w http.ResponseWriter, r *http.Request, body []byte) {
	text := "Hello there!"
	switch s := string(body); {
	case strings.Contains(s, `{"json":{"const":"zq7"}}`):
		text = `"zq7"`
	case strings.Contains(s, `{"regex":"zq7-[0-9]{3}"}`), strings.Contains(s, `{"grammar":`):
		text = "zq7-123"
	case strings.Contains(s, `"structured_outputs"`):
		text = `{"a":1}`
	}
	says(text)(w, r, body)
}

// versioned is a server that also tells its version.
func versioned(t *testing.T, version *atomic.Value, answer func(http.ResponseWriter, *http.Request, []byte)) *fake {
	f := newFake(t, answer)
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			json.NewEncoder(w).Encode(map[string]any{"version": version.Load()})
		case "/v1/models":
			io.WriteString(w, `{"data":[{"id":"some/model","max_model_len":8192}]}`)
		default:
			f.serve(w, r)
		}
	})
	return f
}

const openObject = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`

func TestProbeThenAnswer(t *testing.T) {
	f := newFake(t, obedient)
	m := f.open(t, undeclared)
	con := compile(t, constraint.JSON, openObject, "")
	for range 3 {
		resp, err := m.Generate(context.Background(), question(con))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Text != `{"a":1}` || resp.EnforcedBy != constraint.ByServerValidation {
			t.Errorf("got %q, %s", resp.Text, resp.EnforcedBy)
		}
	}
	bodies := f.completions()
	if len(bodies) != 4 {
		t.Fatalf("asked %d times, want a probe and three questions", len(bodies))
	}
	probe := mustJSON(t, bodies[0])
	if got := string(probe["structured_outputs"]); got != `{"json":{"const":"zq7"}}` {
		t.Errorf("the probe asks with %s", got)
	}
	if strings.Contains(string(probe["messages"]), "zq7") {
		t.Error("the probe tells the model what to answer")
	}
}

// A server that takes a constraint and ignores it is found out, and refused
// before it is asked anything of a user.
func TestServerIgnoresConstraints(t *testing.T) {
	f := newFake(t, says("Hello there!"))
	m := f.open(t, undeclared, func(c *Config) { c.Where = "models: big in agentgraph.yaml" })
	for _, tc := range []struct {
		kind   constraint.Kind
		source string
	}{{constraint.JSON, openObject}, {constraint.Regex, "[ab]+"}} {
		_, err := m.Generate(context.Background(), question(compile(t, tc.kind, tc.source, "")))
		e := modelError(t, err)
		var r *constraint.Refusal
		if e.Kind != model.Capability || e.Delivery != model.NotSent || !errors.As(err, &r) || !r.Capability {
			t.Fatalf("got %s, %s: %v", e.Kind, e.Delivery, err)
		}
		for _, want := range []string{"server vLLM has not shown that it constrains " + string(tc.kind), "without regard to the constraint", "agentgraph models --probe", "constraints: [" + string(tc.kind) + "]", "models: big in agentgraph.yaml", "enforce: validate"} {
			if !strings.Contains(r.Error(), want) {
				t.Errorf("%q does not say %q", r.Error(), want)
			}
		}
		if m.Capabilities().Holds(tc.kind) {
			t.Errorf("%s still counts as held", tc.kind)
		}
	}
	if n := len(f.completions()); n != 2 {
		t.Errorf("asked %d times, want the two probes", n)
	}
	// With enforce: validate it is asked, without the constraint, and nothing
	// is claimed.
	resp, err := m.Generate(context.Background(), question(compile(t, constraint.JSON, openObject, constraint.EnforceValidate)))
	if err != nil || resp.EnforcedBy != "" {
		t.Errorf("got %+v, %v", resp, err)
	}
	if last := f.completions()[2]; strings.Contains(string(last), "structured_outputs") {
		t.Errorf("a field that is ignored is sent: %s", last)
	}
}

func TestServerRefusesProbe(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.WriteHeader(400)
		io.WriteString(w, `{"error":{"message":"structured outputs are off"}}`)
	})
	m := f.open(t, undeclared)
	_, err := m.Generate(context.Background(), question(compile(t, constraint.JSON, openObject, "")))
	if e := modelError(t, err); e.Kind != model.Capability || !strings.Contains(e.Error(), "structured outputs are off") {
		t.Errorf("got %s: %v", e.Kind, e)
	}
}

// An answer to a probe that is cut off shows nothing good.
func TestProbeIsCutOff(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		stream(w, chunk(`"zq7"`), `{"choices":[{"delta":{},"finish_reason":"length"}]}`)
	})
	states, err := f.open(t, undeclared).Probe(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	if p := states[1].Probe; p == nil || p.Held {
		t.Errorf("the expression's probe is %+v", p)
	}
}

// A server that cannot be asked has shown nothing, and is asked again.
func TestServerComesBack(t *testing.T) {
	var up atomic.Bool
	f := newFake(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if !up.Load() {
			w.WriteHeader(503)
			return
		}
		obedient(w, r, body)
	})
	m := f.open(t, undeclared)
	con := compile(t, constraint.JSON, openObject, "")
	_, err := m.Generate(context.Background(), question(con))
	if e := modelError(t, err); e.Kind != model.Unavailable || e.Delivery != model.NotSent {
		t.Fatalf("got %s, %s: %v", e.Kind, e.Delivery, e)
	}
	if !m.Capabilities().Holds(constraint.JSON) {
		t.Error("a server that was away counts as one that does not constrain")
	}
	up.Store(true)
	if resp, err := m.Generate(context.Background(), question(con)); err != nil || resp.Text != `{"a":1}` {
		t.Fatal(resp, err)
	}
}

func TestProbeCache(t *testing.T) {
	var version atomic.Value
	version.Store("0.11.0")
	f := versioned(t, &version, obedient)
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	cache := filepath.Join(t.TempDir(), "probes")
	reopen := func() *Model {
		return f.open(t, undeclared, func(c *Config) {
			c.ProbeCache, c.Clock, c.Key = cache, func() time.Time { return now }, NewSecret(key)
		})
	}
	con := compile(t, constraint.JSON, openObject, "")
	ask := func(m *Model, wantProbes int) {
		t.Helper()
		before := len(f.completions())
		if _, err := m.Generate(context.Background(), question(con)); err != nil {
			t.Fatal(err)
		}
		if n := len(f.completions()) - before - 1; n != wantProbes {
			t.Errorf("%d probes, want %d", n, wantProbes)
		}
	}
	ask(reopen(), 1)
	m := reopen()
	if s := m.States()[0]; s.Probe == nil || !s.Probe.Held || s.Probe.Version != "0.11.0" || !s.Probe.Seen.Equal(now) {
		t.Errorf("a new model knows %+v", s.Probe)
	}
	ask(m, 0)
	if n := m.Capabilities().Context; n != 8192 {
		t.Errorf("the server's context is %d", n)
	}
	version.Store("0.12.0")
	ask(reopen(), 1)
	now = now.Add(probeLife + time.Minute)
	ask(reopen(), 1)
	files, _ := os.ReadDir(cache)
	if len(files) != 1 {
		t.Fatalf("the cache holds %v", files)
	}
	path := filepath.Join(cache, files[0].Name())
	b, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(b), key) {
		t.Errorf("the cache says %s, %v", b, err)
	}
	for name, damaged := range map[string]string{"torn": string(b[:len(b)/2]), "of another server": strings.Replace(string(b), f.URL, "http://other", 1), "empty": ""} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { ask(reopen(), 1) })
	}
	if _, err := reopen().Probe(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	version.Store("0.13.0")
	states, err := reopen().Probe(context.Background(), true)
	if err != nil || states[0].Probe.Version != "0.13.0" {
		t.Errorf("a probe on request says %+v, %v", states[0].Probe, err)
	}
}

// Many turns that need one kind send one probe.
func TestProbesAreShared(t *testing.T) {
	f := newFake(t, obedient)
	m := f.open(t, undeclared)
	con := compile(t, constraint.JSON, openObject, "")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := m.Generate(context.Background(), question(con)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	probes := 0
	for _, b := range f.completions() {
		if strings.Contains(string(b), "zq7") {
			probes++
		}
	}
	if probes != 1 {
		t.Errorf("%d probes were sent", probes)
	}
}

// What the settings declare is not probed.
func TestDeclared(t *testing.T) {
	f := newFake(t, obedient)
	m := f.open(t, func(c *Config) { c.Declared = []constraint.Kind{constraint.JSON} })
	if diff := cmp.Diff([]constraint.Kind{constraint.JSON}, m.Capabilities().Kinds); diff != "" {
		t.Error(diff)
	}
	if _, err := m.Generate(context.Background(), question(compile(t, constraint.JSON, openObject, ""))); err != nil {
		t.Fatal(err)
	}
	_, err := m.Generate(context.Background(), question(compile(t, constraint.Regex, "[ab]+", "")))
	if e := modelError(t, err); e.Kind != model.Capability || !strings.Contains(e.Error(), "constraints: does not list it") {
		t.Errorf("got %s: %v", e.Kind, e)
	}
	if n := len(f.completions()); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	none := f.open(t, func(c *Config) { c.Declared = []constraint.Kind{} })
	if k := none.Capabilities().Kinds; len(k) != 0 {
		t.Errorf("constraints: [] leaves %v", k)
	}
}

// Kinds that a server has no field for are refused by name, or left to
// validation.
func TestKindsThatDoNotTravel(t *testing.T) {
	f := newFake(t, says("ab"))
	m := f.open(t, dialectOf("ollama"), undeclared)
	con := compile(t, constraint.Regex, "[ab]+", "")
	err := m.Admit(context.Background(), con)
	if e := modelError(t, err); e.Kind != model.Capability || !strings.Contains(e.Error(), "Ollama takes no constraint of kind regex") {
		t.Errorf("got %s: %v", e.Kind, e)
	}
	if _, err := m.Render(context.Background(), question(con)); err == nil || errors.Is(err, model.ErrNotRendered) {
		t.Errorf("Render says %v", err)
	}
	if _, err := m.Render(context.Background(), question(nil)); !errors.Is(err, model.ErrNotRendered) {
		t.Errorf("Render of free text says %v", err)
	}
	if n := len(f.completions()); n != 0 {
		t.Errorf("asked %d times", n)
	}
}
