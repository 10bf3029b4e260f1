//go:build cgo && !nonative

package local

import (
	"context"
	"strings"
	"testing"

	"agentgraph/constraint"
	"agentgraph/model"
)

// thoughtVocabulary is the bytes, the two markers and an end.
func thoughtVocabulary(t *testing.T) (*tokens, *constraint.Vocabulary) {
	t.Helper()
	tk := &tokens{}
	for i := range 256 {
		tk.pieces = append(tk.pieces, []byte{byte(i)})
	}
	tk.pieces = append(tk.pieces, []byte(model.ThoughtOpens), []byte(model.ThoughtCloses), []byte("\xff<end>"))
	tk.special = make([]bool, len(tk.pieces))
	tk.special[258], tk.ends = true, []uint32{258}
	v, err := constraint.NewVocabulary(constraint.VocabularyConfig{Tokens: tk.pieces, EOS: tk.ends, Greedy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return tk, v
}

func TestThinkingIsOutsideTheConstraint(t *testing.T) {
	tk, v := thoughtVocabulary(t)
	no := false
	bytesOf := func(text string, _ bool) ([]int32, error) {
		var ids []int32
		for _, b := range []byte(text) {
			ids = append(ids, int32(b))
		}
		return ids, nil
	}
	for _, tt := range []struct {
		name, template, prompt string
		wanted                 *bool
		says                   []any // text, or a token
		text, thought          string
		free                   bool
	}{
		{name: "the model opens it", template: "<think>", says: []any{256, "what now? no", 257}, thought: "what now? no"},
		{name: "the template opened it", template: "<think>", prompt: "<|assistant|><think>\n", says: []any{"hm", 257}, thought: "hm"},
		{name: "the marker in several tokens", template: "<think>", prompt: "<think>", says: []any{"hm </think>"}, thought: "hm"},
		{name: "no thought", template: "<think>"},
		{name: "switched off", template: "<think>", wanted: &no},
		{name: "the template closed it", template: "<think>", prompt: "<think>\n\n</think>\n\n"},
		{name: "no thinking model", template: "plain", prompt: "<think>"},
		{name: "free text", template: "<think>", free: true, says: []any{256, "hm", 257, "\n\n yes"}, text: "yes", thought: "hm"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			th, err := newThinker(tt.template, tk, bytesOf)
			if err != nil {
				t.Fatal(err)
			}
			s := &sequence{limit: 200, reasoning: th.start(tt.prompt, tt.wanted)}
			if !tt.free {
				con, err := constraint.Compile(constraint.Spec{Kind: constraint.Lark, Source: []byte(`start: "ok" | "no"`)}, constraint.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if s.matcher, err = con.NewMatcher(v); err != nil {
					t.Fatal(err)
				}
				defer s.release()
				s.mask = make([]uint32, v.MaskWords())
			}
			takes := func(id int32) bool {
				if s.matcher == nil || s.thinking == inThought {
					return true
				}
				s.allowed()
				return s.mask[id/32]&(1<<(id%32)) != 0
			}
			for _, say := range tt.says {
				ids := []int32{}
				switch x := say.(type) {
				case int:
					ids = append(ids, int32(x))
				case string:
					ids, _ = bytesOf(x, false)
				}
				for _, id := range ids {
					if !takes(id) {
						t.Fatalf("token %d is not allowed", id)
					}
					if s.accept(tk, id) {
						t.Fatalf("the answer ended after token %d: %v", id, s.err)
					}
				}
			}
			want := tt.text
			if !tt.free {
				want = "ok"
				if takes('x') || (tt.thought == "" && tt.wanted != nil && takes(256)) {
					t.Error("what the grammar does not want is allowed in the answer")
				}
				s.accept(tk, 'o')
				if s.text.all() == "o" {
					s.accept(tk, 'k')
				}
			}
			if got := s.response(); got.Text != want || got.Reasoning != tt.thought {
				t.Errorf("text %q, reasoning %q; want %q, %q", got.Text, got.Reasoning, want, tt.thought)
			}
		})
	}
}

// A small model copies what it is shown, here a thought that ends.
func TestThinkingRealModel(t *testing.T) {
	shot := "<|im_start|>user\n2+2<|im_end|>\n<|im_start|>assistant\n<think>add</think>\n\n{\"n\":4}<|im_end|>\n"
	m := sharedModel(t, Config{Context: 1024, Template: strings.Repeat(shot, 5) +
		"{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n<think>"})
	c := compile(t, constraint.JSON, `{"type":"object","properties":{"n":{"type":"integer","maximum":99}},"required":["n"],"additionalProperties":false}`)
	var text, thought strings.Builder
	r, err := m.Generate(context.Background(), &model.Request{Messages: []model.Message{{Role: model.User, Content: "2+2"}}, Constraint: c,
		Sampling: model.Sampling{MaxTokens: 64}, Progress: func(p model.Progress) { text.WriteString(p.Text); thought.WriteString(p.Reasoning) }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Reasoning == "" || strings.Contains(r.Reasoning+r.Text, "think>") || !c.Validate(t.Context(), r.Text).Valid {
		t.Errorf("text %q, reasoning %q, finish %s", r.Text, r.Reasoning, r.Finish)
	}
	if text.String() != r.Text {
		t.Errorf("shown %q", text.String())
	}
}
