//go:build cgo && !nonative

package local

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

func modelError(t *testing.T, err error, kind model.ErrorKind) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error is %v, want kind %s", err, kind)
	}
	return e
}

func TestCancelWithinOneStep(t *testing.T) {
	m := sharedModel(t, Config{Context: 4096})
	ctx, cancel := context.WithCancel(t.Context())
	steps, after := 0, 0
	_, err := m.Generate(ctx, &model.Request{Messages: ask("Tell long stories.", "A story."), Sampling: model.Sampling{MaxTokens: 1000}, Progress: func(model.Progress) {
		steps++
		if ctx.Err() != nil {
			after++
		}
		if steps == 3 {
			cancel()
		}
	}})
	e := modelError(t, err, model.Cancelled)
	if steps != 3 || after > 0 {
		t.Errorf("%d steps, %d after the cancel", steps, after)
	}
	if e.Partial == nil || e.Partial.Text == "" || *e.Partial.Usage.OutputTokens != 3 {
		t.Errorf("partial is %+v", e.Partial)
	}
}

// TestCancelDuringPrefill: a long prompt is given up in the middle of a step.
func TestCancelDuringPrefill(t *testing.T) {
	m := sharedModel(t, Config{Context: 4096})
	long := &model.Request{Messages: ask("Summarise.", strings.Repeat("The quick brown fox jumps over the lazy dog. ", 350)), Sampling: model.Sampling{MaxTokens: 1}, Solo: true}
	whole := generate(t, m, long)
	ctx, cancel := context.WithTimeout(t.Context(), whole.Stats.Prefill/10)
	defer cancel()
	began := time.Now()
	_, err := m.Generate(ctx, long)
	took := time.Since(began)
	modelError(t, err, model.TimedOut)
	// Not to the end of the step it was in: the prompt has about seven.
	if took > whole.Stats.Prefill/2 {
		t.Errorf("gave up after %v, the whole prompt takes %v", took, whole.Stats.Prefill)
	}
	if again := generate(t, m, long); again.Text != whole.Text {
		t.Errorf("before %q, after %q", whole.Text, again.Text)
	}
}

func TestCutOffIsLength(t *testing.T) {
	m := sharedModel(t, Config{Context: 1024})
	for _, tt := range []struct {
		name string
		c    *constraint.Constraint
	}{
		{"free text", nil},
		{"an endless expression", compile(t, constraint.Regex, `[a-z ]{900,}`)},
		{"an unbounded string", compile(t, constraint.JSON, `{"type":"object","properties":{"s":{"type":"string","minLength":4000}},"required":["s"],"additionalProperties":false}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := generate(t, m, &model.Request{Messages: ask("Write without an end.", "Go on about the sea."), Constraint: tt.c, Sampling: model.Sampling{MaxTokens: 20}})
			if r.Finish != model.Length || *r.Usage.OutputTokens != 20 || r.Text == "" {
				t.Errorf("finish %q after %d tokens: %q", r.Finish, *r.Usage.OutputTokens, r.Text)
			}
		})
	}
}

// TestContextFillsUp: with no limit asked for, the context is the limit.
func TestContextFillsUp(t *testing.T) {
	m := sharedModel(t, Config{Context: 128})
	r := generate(t, m, &model.Request{Messages: ask("Write without an end.", "Go on about the sea."), Constraint: compile(t, constraint.Regex, `[a-z ]{900,}`)})
	if r.Finish != model.Length || *r.Usage.InputTokens+*r.Usage.OutputTokens != 128 {
		t.Errorf("finish %q with %d + %d tokens of 128", r.Finish, *r.Usage.InputTokens, *r.Usage.OutputTokens)
	}
}

func TestContextOverflow(t *testing.T) {
	m := sharedModel(t, Config{Context: 128})
	called := false
	_, err := m.Generate(t.Context(), &model.Request{Messages: ask("Be brief.", strings.Repeat("word ", 200)), Progress: func(model.Progress) { called = true }})
	e := modelError(t, err, model.ContextOverflow)
	rendered, rerr := m.Render(t.Context(), &model.Request{Messages: ask("Be brief.", strings.Repeat("word ", 200))})
	if rerr != nil {
		t.Fatal(rerr)
	}
	if e.Delivery != model.NotSent || called || !strings.Contains(e.Error(), "128") || rendered.Tokens <= 128 || rendered.Context != 128 {
		t.Errorf("error %v, rendered %d of %d", e, rendered.Tokens, rendered.Context)
	}
}

// TestEveryEndToken: each of the model's end tokens is masked where the
// grammar allows no end, and allowed where it does.
func TestEveryEndToken(t *testing.T) {
	m := sharedModel(t, Config{Context: 1024})
	if len(m.tokens.ends) < 2 {
		t.Fatalf("the model has %d end tokens; this test needs two", len(m.tokens.ends))
	}
	vocab, err := m.vocab()
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := compile(t, constraint.Regex, `ab*`).NewMatcher(vocab.bound)
	if err != nil {
		t.Fatal(err)
	}
	defer matcher.Close()
	mask := make([]uint32, vocab.bound.MaskWords())
	allowed := func(id uint32) bool { return mask[id/32]>>(id%32)&1 == 1 }
	for step, want := range []bool{false, true} {
		if err := matcher.Mask(mask); err != nil {
			t.Fatal(err)
		}
		for _, id := range m.tokens.ends {
			if allowed(id) != want {
				t.Errorf("step %d: end token %d (%s) allowed is %v", step, id, m.tokens.pieces[id][1:], !want)
			}
			if !m.engine.tokens.isEnd(int32(id)) {
				t.Errorf("the engine does not end at token %d", id)
			}
		}
		if step == 0 {
			ids, err := m.weights.tokenize("a", false)
			if err != nil || len(ids) != 1 {
				t.Fatal(ids, err)
			}
			if err := matcher.Accept(uint32(ids[0])); err != nil {
				t.Fatal(err)
			}
		}
	}
	for id, special := range m.tokens.special {
		if special && allowed(uint32(id)) && !m.engine.tokens.isEnd(int32(id)) {
			t.Errorf("special token %d (%s) is allowed as text", id, m.tokens.pieces[id][1:])
		}
	}
}

// TestNoSpecialTokenInText: a grammar that allows everything ends cleanly.
func TestNoSpecialTokenInText(t *testing.T) {
	m := sharedModel(t, Config{Context: 1024})
	for _, c := range []*constraint.Constraint{
		compile(t, constraint.Lark, `start: /[\S\s]*/`), compile(t, constraint.Regex, `[\S\s]*`), nil,
	} {
		r := generate(t, m, &model.Request{Messages: ask("Answer with one word.", "What is the capital of France?"), Constraint: c, Sampling: model.Sampling{MaxTokens: 200}})
		if r.Finish != model.Stop || strings.Contains(r.Text, "<|") || r.Text == "" {
			t.Errorf("finish %q: %q", r.Finish, r.Text)
		}
	}
}

func TestSampling(t *testing.T) {
	m := sharedModel(t, Config{Context: 1024})
	one, two := uint64(1), uint64(2)
	get := func(s model.Sampling) *model.Response {
		s.MaxTokens = 24
		return generate(t, m, &model.Request{Messages: ask("You are inventive.", "Invent a name for a ship and describe it."), Sampling: s, Solo: true})
	}
	greedy := get(model.Sampling{})
	hot := get(model.Sampling{Temperature: 1.2, Seed: &one})
	if again := get(model.Sampling{Temperature: 1.2, Seed: &one}); again.Text != hot.Text {
		t.Errorf("seed 1 gives %q and %q", hot.Text, again.Text)
	}
	if other := get(model.Sampling{Temperature: 1.2, Seed: &two}); other.Text == hot.Text {
		t.Errorf("seeds 1 and 2 both give %q", hot.Text)
	}
	for _, s := range []model.Sampling{
		{Temperature: 1, TopK: 1, Seed: &one}, {Temperature: 1, TopP: 1e-6, Seed: &one},
		{Temperature: 1, MinP: 1, Seed: &one}, {Temperature: 1e-4, Seed: &one},
	} {
		if r := get(s); r.Text != greedy.Text {
			t.Errorf("%+v gives %q, greedy %q", s, r.Text, greedy.Text)
		}
	}
	drawn := get(model.Sampling{Temperature: 1.2})
	if drawn.Seed == nil {
		t.Fatal("no seed in the response")
	}
	if again := get(model.Sampling{Temperature: 1.2, Seed: drawn.Seed}); again.Text != drawn.Text {
		t.Errorf("the seed that was drawn gives %q and %q", drawn.Text, again.Text)
	}
	if greedy.Seed != nil {
		t.Error("a greedy answer has a seed")
	}
}

func TestSecondTurnReusesThePrompt(t *testing.T) {
	m := sharedModel(t, Config{Context: 1024})
	system := strings.Repeat("You are a careful editor of short notices. ", 10)
	first := generate(t, m, &model.Request{Messages: ask(system, "The lift is out of order."), Sampling: model.Sampling{MaxTokens: 8}})
	second := generate(t, m, &model.Request{Messages: ask(system, "The stairs are wet."), Sampling: model.Sampling{MaxTokens: 8}})
	if second.Stats.ReusedTokens < 80 || *second.Usage.CacheReadTokens != int64(second.Stats.ReusedTokens) {
		t.Errorf("reused %d of %d tokens", second.Stats.ReusedTokens, *second.Usage.InputTokens)
	}
	solo := generate(t, m, &model.Request{Messages: ask(system, "The stairs are wet."), Sampling: model.Sampling{MaxTokens: 8}, Solo: true})
	if solo.Stats.ReusedTokens != 0 {
		t.Errorf("solo reused %d tokens", solo.Stats.ReusedTokens)
	}
	t.Logf("prefill %v, then %v", first.Stats.Prefill, second.Stats.Prefill)
}

func TestProgressAddsUp(t *testing.T) {
	m := sharedModel(t, Config{Context: 1024})
	var text strings.Builder
	last := 0
	r := generate(t, m, &model.Request{Messages: ask("You like emoji.", "Write 🎉 and ü."), Constraint: compile(t, constraint.Regex, `(🎉|ü|☃){6}`), Progress: func(p model.Progress) {
		text.WriteString(p.Text)
		last = p.Tokens
	}})
	if text.String() != r.Text || int64(last) != *r.Usage.OutputTokens {
		t.Errorf("progress %q (%d tokens), answer %q (%d)", text.String(), last, r.Text, *r.Usage.OutputTokens)
	}
	if strings.Contains(text.String(), "\ufffd") {
		t.Errorf("a character was cut: %q", text.String())
	}
}

func TestClose(t *testing.T) {
	m, err := open(Config{Path: testModel(t), Context: 512, Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{}, 1000)
	ended := make(chan error, 1)
	go func() {
		_, err := m.Generate(context.Background(), &model.Request{Messages: ask("x", "Tell me everything."), Progress: func(model.Progress) { started <- struct{}{} }, Sampling: model.Sampling{MaxTokens: 400}})
		ended <- err
	}()
	<-started
	for range 2 {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	modelError(t, <-ended, model.Unavailable)
	_, err = m.Generate(t.Context(), &model.Request{Messages: ask("x", "y")})
	if e := modelError(t, err, model.Unavailable); !strings.Contains(e.Error(), "closed") {
		t.Errorf("error is %v", e)
	}
	if _, err = m.Render(t.Context(), &model.Request{Messages: ask("x", "y")}); err == nil {
		t.Error("Render works after Close")
	}
}

// TestGarbageCollectorAtWork: memory that C reads is not moved or freed.
func TestGarbageCollectorAtWork(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	m, err := Open(Config{Path: testModel(t), Context: 512})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, r := range requests(t)[:4] {
		if generate(t, m, r).Text == "" {
			t.Error("no text")
		}
	}
}

func TestOpenRefusals(t *testing.T) {
	path := testModel(t)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head := make([]byte, 3<<20)
	if _, err := f.Read(head); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, want string
		cfg        Config
	}{
		{"missing", "does not exist", Config{Path: "nowhere/none.gguf"}},
		{"unnamed", "no model file is named", Config{}},
		{"cut in the header", "cut short", Config{Path: write(t, "a.gguf", head[:1000])}},
		{"cut in the weights", "cut short", Config{Path: write(t, "b.gguf", head)}},
		{"too large a context", "does not fit in memory", Config{Path: path, Context: 1 << 30}},
		{"too many at once", "at most 64", Config{Path: path, Parallel: 1000}},
		{"negative", "cannot be negative", Config{Path: path, Threads: -1}},
		{"no GPU", "no GPU backend", Config{Path: path, GPULayers: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.cfg.GPULayers > 0 && gpuSupported() {
				t.Skip("this build has a GPU backend")
			}
			m, err := Open(tt.cfg)
			if err == nil {
				m.Close()
				t.Fatal("it opens")
			}
			if e := modelError(t, err, model.Unavailable); !strings.Contains(e.Error(), tt.want) || e.Delivery != model.NotSent {
				t.Errorf("error is %v, want %q in it", e, tt.want)
			}
		})
	}
}

// TestDamagedWeights: llama.cpp's own refusal comes through as an error.
func TestDamagedWeights(t *testing.T) {
	_, err := Open(Config{Path: write(t, "m.gguf", smallGGUF())})
	if e := modelError(t, err, model.Unavailable); !strings.Contains(e.Error(), "llama.cpp cannot load") {
		t.Errorf("error is %v", e)
	}
}

func TestIdentityAndCapabilities(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path := testModel(t)
	first, err := weightsSHA256([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	again, err := weightsSHA256([]string{path})
	if err != nil || again != first || len(first) != 64 {
		t.Errorf("%s, then %s (%v)", first, again, err)
	}
	t.Logf("from the cache in %v", time.Since(began))
	copied := write(t, "other.gguf", []byte("other"))
	if sum, err := weightsSHA256([]string{copied}); err != nil || sum == first {
		t.Errorf("another file has %s (%v)", sum, err)
	}

	m := sharedModel(t, Config{Context: 1024})
	if id := m.Identity(); id.Engine != "llama.cpp" || id.WeightsSHA256 != first {
		t.Errorf("identity is %+v", id)
	}
	caps := m.Capabilities()
	if !caps.Masks || !caps.Holds(constraint.Lark) || caps.Context != 1024 || caps.Parallel != 1 {
		t.Errorf("capabilities are %+v", caps)
	}
}

// TestTokensSpellTheText: the pieces of a tokenized text are the text.
func TestTokensSpellTheText(t *testing.T) {
	m := sharedModel(t, Config{Context: 1024})
	for _, text := range []string{"plain words", "  two spaces", "ü ☃ 🎉", "{\"a\": [1, 2.5]}\n", "<|im_start|>"} {
		ids, err := m.weights.tokenize(text, false)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, id := range ids {
			if m.tokens.special[id] {
				t.Errorf("%q becomes special token %d", text, id)
			}
			got += string(m.tokens.pieces[id])
		}
		if got != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	}
	ids, err := m.weights.tokenize("<|im_start|>", true)
	if err != nil || len(ids) != 1 || !m.tokens.special[ids[0]] {
		t.Errorf("the prompt's special token is %v (%v)", ids, err)
	}
}
