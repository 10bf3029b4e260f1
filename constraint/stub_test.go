//go:build !cgo || nonative

package constraint

import (
	"errors"
	"strings"
	"testing"
)

// TestWithoutNative: what needs no mask works; the rest says how to build it.
func TestWithoutNative(t *testing.T) {
	c := mustCompile(t, JSON, `{"type":"integer"}`)
	if !valid(c, "1") || valid(c, "x") {
		t.Error("validation of JSON")
	}
	if c := mustCompile(t, Regex, `a+`); !valid(c, "aa") || valid(c, "b") {
		t.Error("validation of a regular expression")
	}
	if by, err := c.Admit(Engine{Name: "vllm", Kinds: []Kind{JSON}, Declared: DeclaredServer}); by != ByServerValidation || err != nil {
		t.Errorf("a server: %v, %v", by, err)
	}
	checks := map[string]error{}
	_, checks["NewVocabulary"] = NewVocabulary(VocabularyConfig{Greedy: true})
	_, checks["ByteVocabulary"] = ByteVocabulary()
	_, checks["NewMatcher"] = c.NewMatcher(nil)
	_, checks["Admit"] = c.Admit(Engine{Name: "llguidance", Masks: true, Kinds: []Kind{JSON}})
	_, checks["Admit local"] = c.Admit(LocalEngine("models: a"))
	_, checks["Compile lark"] = Compile(Spec{Kind: Lark, Source: []byte("start: \"a\"\n")}, Options{})
	_, checks["Compile llg"] = Compile(Spec{Kind: LLG, Source: []byte(`{"grammars":[{"lark_grammar":"start: \"a\""}]}`)}, Options{})
	for name, err := range checks {
		if !errors.Is(err, ErrNotBuilt) || !strings.Contains(err.Error(), "make native") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
