//go:build cgo && !nonative

package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"agentgraph/constraint"
	"agentgraph/model"
)

// local is a model.Model over one GGUF file.
type local struct {
	cfg      Config
	name     string
	parts    []string
	context  int
	weights  *weights
	tokens   *tokens
	vocab    func() (*vocabulary, error) // waits until it is there
	template *template
	calls    constraint.CallFormat // as the template writes them
	thinker  thinker
	engine   *engine

	hash  func() string
	close func() error
	// running counts Generates; Close waits for them.
	running sync.WaitGroup
	mu      sync.Mutex
	done    bool
}

var errClosed = errors.New("the model is closed")

// System names the instruction sets that the native library was built for.
func System() string { return systemInfo() }

// Open loads a GGUF file. The error is a *model.Error that says what is wrong
// with the file or the settings and what to do.
func Open(cfg Config) (model.Model, error) {
	m, err := open(cfg)
	if err != nil {
		return nil, &model.Error{Kind: model.Unavailable, Delivery: model.NotSent, Model: filepath.Base(cfg.Path), Err: err}
	}
	return m, nil
}

func open(cfg Config) (_ *local, err error) {
	if cfg.Path == "" {
		return nil, errors.New("no model file is named")
	}
	switch {
	case cfg.Context < 0 || cfg.Parallel < 0 || cfg.Threads < 0 || cfg.GPULayers < 0:
		return nil, errors.New("context, parallel, threads and gpu_layers cannot be negative")
	case cfg.Parallel > MaxParallel:
		return nil, fmt.Errorf("parallel is %d; at most %d answers run at once", cfg.Parallel, MaxParallel)
	case cfg.GPULayers > 0 && !gpuSupported():
		return nil, fmt.Errorf("gpu_layers is %d and this build of llama.cpp has no GPU backend; set gpu_layers to 0", cfg.GPULayers)
	}
	head, err := readGGUF(cfg.Path, rowSize)
	if err != nil {
		return nil, err
	}
	parts, size, err := head.parts(rowSize)
	if err != nil {
		return nil, err
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = 1
	}
	if cfg.Threads == 0 {
		cfg.Threads = physicalCores()
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	trained := int(head.hyper("context_length"))
	if cfg.Context == 0 {
		cfg.Context = DefaultContext
		if trained > 0 {
			cfg.Context = min(trained, DefaultContext)
		}
	}
	if err := head.fits(size, int64(cfg.Context)*int64(cfg.Parallel)); err != nil {
		return nil, err
	}

	// The token trie is built from a second, small load of the vocabulary
	// alone while the weights are read and the first prompt is decoded.
	l := &local{cfg: cfg, name: filepath.Base(cfg.Path), parts: parts, context: cfg.Context}
	l.vocab = inBackground(func() (*vocabulary, error) { return openVocabulary(cfg.Path) })
	defer func() {
		if err != nil {
			l.engine.stop()
			v, _ := l.vocab()
			v.free()
			l.weights.free()
		}
	}()
	w, err := loadWeights(cfg.Path, loadOptions{gpuLayers: cfg.GPULayers, repack: !cfg.Without.Repack, kernels: !cfg.Without.Kernels})
	if err != nil {
		return nil, err
	}
	l.weights = w
	if err := w.usable(); err != nil {
		return nil, err
	}
	if l.tokens = w.tokens(); len(l.tokens.ends) == 0 {
		return nil, errors.New("the file names no token that ends an answer (tokenizer.ggml.eos_token_id); convert the model again")
	}
	if l.engine, err = newEngine(w, cfg); err != nil {
		return nil, err
	}
	source := cfg.Template
	if source == "" {
		source = w.chatTemplate()
	}
	l.template = newTemplate(source, l.tokens.bosText, l.tokens.eosText, renderTemplate)
	l.calls = model.DetectCallFormat(l.template.source)
	if l.thinker, err = newThinker(l.template.source, l.tokens, l.weights.tokenize); err != nil {
		return nil, err
	}
	l.hash = sync.OnceValue(func() string {
		sum, _ := weightsSHA256(l.parts) // a file that is gone has no hash
		return sum
	})
	l.close = sync.OnceValue(l.shutdown)
	l.engine.start(l.tokens)
	return l, nil
}

// inBackground runs f at once; the function it returns waits for the result.
func inBackground[T any](f func() (T, error)) func() (T, error) {
	var v T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		v, err = f()
	}()
	return func() (T, error) {
		<-done
		return v, err
	}
}

// vocabulary is what the masks need of a model: its tokens, and llguidance's
// trie over them.
type vocabulary struct {
	weights   *weights // the vocabulary alone
	tokenizer *tokenizer
	bound     *constraint.Vocabulary
}

func openVocabulary(path string) (*vocabulary, error) {
	v := &vocabulary{}
	var err error
	if v.weights, err = loadWeights(path, loadOptions{vocabOnly: true}); err != nil {
		return v, err
	}
	if v.tokenizer, err = v.weights.newTokenizer(); err != nil {
		return v, err
	}
	t := v.weights.tokens()
	v.bound, err = constraint.NewVocabulary(constraint.VocabularyConfig{
		Tokens: t.pieces, EOS: t.ends,
		TokenizeFn: v.tokenizer.fn(), TokenizeData: v.tokenizer.data(),
	})
	return v, err
}

func (v *vocabulary) free() {
	if v == nil {
		return
	}
	if v.bound != nil {
		v.bound.Close()
	}
	v.tokenizer.free()
	v.weights.free()
}

func (l *local) shutdown() error {
	l.mu.Lock()
	l.done = true
	l.mu.Unlock()
	l.engine.stop()
	l.running.Wait()
	v, _ := l.vocab()
	v.free()
	l.weights.free()
	return nil
}

// enter registers a call; false after Close.
func (l *local) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return false
	}
	l.running.Add(1)
	return true
}

// Close implements model.Model. Running answers end as failed calls.
func (l *local) Close() error { return l.close() }

// Capabilities implements model.Model.
func (l *local) Capabilities() model.Capabilities {
	return model.Capabilities{
		Engine:     constraint.LocalEngine(l.cfg.Path),
		Tools:      true,
		CallFormat: l.calls,
		Streaming:  true,
		Context:    l.context,
		Parallel:   l.cfg.Parallel,
	}
}

// Identity implements model.Model. The first call may read the whole file.
func (l *local) Identity() model.Identity {
	return model.Identity{Engine: "llama.cpp", Name: l.name, WeightsSHA256: l.hash()}
}

func (l *local) fail(kind model.ErrorKind, delivery model.Delivery, err error) *model.Error {
	return &model.Error{Kind: kind, Delivery: delivery, Model: l.name, Err: err}
}

// ended is the error of a context that is done.
func (l *local) ended(ctx context.Context, delivery model.Delivery, partial *model.Response) *model.Error {
	err := l.fail(model.Cancelled, delivery, context.Cause(ctx))
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err.Kind = model.TimedOut
	}
	err.Partial = partial
	return err
}

// prompt renders and tokenizes a request.
func (l *local) prompt(req *model.Request) (model.Rendered, []int32, error) {
	if len(req.Messages) == 0 {
		return model.Rendered{}, nil, l.fail(model.Failed, model.NotSent, errors.New("a request needs at least one message"))
	}
	text, clock, err := l.template.apply(req, l.cfg.Clock())
	if err != nil {
		return model.Rendered{}, nil, l.fail(model.Failed, model.NotSent, err)
	}
	ids, err := l.weights.tokenize(text, true)
	if err != nil {
		return model.Rendered{}, nil, l.fail(model.Failed, model.NotSent, err)
	}
	if l.tokens.addBOS && (len(ids) == 0 || ids[0] != l.tokens.bos) {
		ids = append([]int32{l.tokens.bos}, ids...)
	}
	return model.Rendered{
		Prompt: text, Tokens: len(ids), Context: l.context,
		TemplateSHA256: l.template.sha256, Clock: clock,
	}, ids, nil
}

// Render implements model.Model.
func (l *local) Render(ctx context.Context, req *model.Request) (model.Rendered, error) {
	if !l.enter() {
		return model.Rendered{}, l.fail(model.Unavailable, model.NotSent, errClosed)
	}
	defer l.running.Done()
	if ctx.Err() != nil {
		return model.Rendered{}, l.ended(ctx, model.NotSent, nil)
	}
	rendered, _, err := l.prompt(req)
	return rendered, err
}

// Generate implements model.Model.
func (l *local) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	start := time.Now()
	if !l.enter() {
		return nil, l.fail(model.Unavailable, model.NotSent, errClosed)
	}
	defer l.running.Done()
	if ctx.Err() != nil {
		return nil, l.ended(ctx, model.NotSent, nil)
	}
	rendered, ids, err := l.prompt(req)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, l.fail(model.Failed, model.NotSent, errors.New("the rendered prompt is empty"))
	}
	if len(ids) >= l.context {
		return nil, l.fail(model.ContextOverflow, model.NotSent, fmt.Errorf(
			"the prompt has %d tokens and the context holds %d, prompt and answer together; shorten the input or the system prompt, or raise context", len(ids), l.context))
	}
	s := &sequence{
		ctx: ctx, start: start, prompt: ids, solo: req.Solo, progress: req.Progress,
		logprobs: min(max(req.Sampling.Logprobs, 0), MaxLogprobs), limit: l.context - len(ids), done: make(chan struct{}),
	}
	s.reasoning = l.thinker.start(rendered.Prompt, req.Thinking)
	if n := req.Sampling.MaxTokens; n > 0 {
		s.limit = min(s.limit, n)
	}
	if req.Sampling.Temperature > 0 {
		seed := rand.Uint64()
		if req.Sampling.Seed != nil {
			seed = *req.Sampling.Seed
		}
		s.seed = &seed
		s.sampler = newSampler(req.Sampling, seed)
	}
	if req.Constraint != nil {
		vocab, err := l.vocab()
		if err != nil {
			return nil, l.fail(model.Failed, model.NotSent, err)
		}
		if s.matcher, err = req.Constraint.NewMatcher(vocab.bound); err != nil {
			return nil, l.fail(model.Capability, model.NotSent, err)
		}
	}
	if len(req.Tools) > 0 && !req.NoCalls {
		s.marks = l.tokens.marks(req.CallFormat)
	}
	if !l.engine.submit(s) {
		s.release()
		return nil, l.fail(model.Unavailable, model.NotSent, errClosed)
	}
	<-s.done

	resp := s.response()
	resp.Rendered = rendered
	switch {
	case s.err == nil:
		l.takeCalls(req, resp)
		return resp, nil
	case errors.Is(s.err, errCancelled):
		return nil, l.ended(ctx, model.ResponseReceived, resp)
	case errors.Is(s.err, errClosed):
		e := l.fail(model.Unavailable, model.ResponseReceived, s.err)
		e.Partial = resp
		return nil, e
	default:
		e := l.fail(model.Failed, model.ResponseReceived, s.err)
		e.Partial = resp
		return nil, e
	}
}

// takeCalls takes the call of a tool out of a finished text.
func (l *local) takeCalls(req *model.Request, resp *model.Response) {
	if len(req.Tools) == 0 || req.NoCalls || resp.Finish != model.Stop {
		return
	}
	format := req.CallFormat
	if format == "" {
		format = l.calls
	}
	if c, ok := model.ParseCall(format, resp.Text, req.Tools); ok {
		resp.Text, resp.ToolCalls, resp.Finish = "", []model.ToolCall{c}, model.FinishToolUse
	}
}
