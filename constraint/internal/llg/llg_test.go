//go:build cgo && !nonative

package llg

import (
	"errors"
	"strings"
	"testing"
)

// byteConfig is 256 one-byte tokens and the given number of end tokens.
func byteConfig(eos int) TokenizerConfig {
	cfg := TokenizerConfig{SingleBytes: true}
	for i := range 256 {
		cfg.Tokens = append(cfg.Tokens, []byte{byte(i)})
	}
	for i := range eos {
		cfg.Tokens = append(cfg.Tokens, []byte("\xff<end"+string(rune('a'+i))+">"))
		cfg.EOS = append(cfg.EOS, uint32(256+i))
	}
	return cfg
}

func newTokenizer(t testing.TB, eos int) *Tokenizer {
	t.Helper()
	tok, err := NewTokenizer(byteConfig(eos))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tok.Close)
	return tok
}

func newMatcher(t testing.TB, tok *Tokenizer, kind, data string) *Matcher {
	t.Helper()
	m, err := tok.NewMatcher(kind, []byte(data), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func tokens(s string) []uint32 {
	out := make([]uint32, len(s))
	for i := range len(s) {
		out[i] = uint32(s[i])
	}
	return out
}

func has(mask []uint32, tok uint32) bool { return mask[tok/32]>>(tok%32)&1 == 1 }

func TestABI(t *testing.T) {
	if header, library := ABI(); header != library {
		t.Errorf("AgLlgLimits is %d bytes in the header and %d in the library", header, library)
	}
	if v := Version(); !strings.HasPrefix(v, "llguidance 1.") {
		t.Errorf("Version() = %q", v)
	}
}

func TestKinds(t *testing.T) {
	tok := newTokenizer(t, 1)
	for _, c := range []struct{ kind, data, yes, no string }{
		{Regex, `[a-c]+`, "abc", "abd"},
		{JSONSchema, `{"type":"boolean"}`, "true", "maybe"},
		{Lark, "start: \"a\" /b+/\n", "abb", "ac"},
		{LLGuidance, `{"grammars":[{"lark_grammar":"start: \"x\""}]}`, "x", "y"},
	} {
		m := newMatcher(t, tok, c.kind, c.data)
		if n, err := m.Count(tokens(c.no)); err != nil || n == len(c.no) {
			t.Errorf("%s: Count(%q) = %d, %v", c.kind, c.no, n, err)
		}
		if err := m.Consume(tokens(c.yes)); err != nil || !m.Accepting() {
			t.Errorf("%s: %q: %v, accepting %v", c.kind, c.yes, err, m.Accepting())
		}
	}
}

func TestErrorsAreErrors(t *testing.T) {
	tok := newTokenizer(t, 1)
	for _, c := range []struct{ kind, data, want string }{
		{Regex, `(a`, "unclosed"},
		{JSONSchema, `{"type":"strng"}`, "strng"},
		{JSONSchema, `{`, "EOF"},
		{Lark, "start: / \"x\"", "lexer error"},
		{LLGuidance, `[1]`, "expecting rule"},
		{Regex, "a\x00b", "NUL"},
		{"nonsense", "x", "nonsense"},
	} {
		m, err := tok.NewMatcher(c.kind, []byte(c.data), Limits{})
		if err == nil || m != nil {
			t.Errorf("%s %q: no error", c.kind, c.data)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q in it", c.kind, c.data, err, c.want)
		}
	}
	m := newMatcher(t, tok, Regex, "ab")
	if err := m.Consume(tokens("x")); err == nil {
		t.Fatal("a token outside the mask was consumed")
	}
	if err := m.Consume(tokens("a")); err == nil || m.Err() == nil || !m.Stopped() {
		t.Error("an error must stick")
	}
}

func TestMaskHoldsEveryEndToken(t *testing.T) {
	tok := newTokenizer(t, 2)
	m := newMatcher(t, tok, Regex, "ab?")
	mask := make([]uint32, m.MaskWords())
	if err := m.Mask(mask); err != nil {
		t.Fatal(err)
	}
	if has(mask, 256) || has(mask, 257) || !has(mask, 'a') {
		t.Error("at the start only 'a' may come")
	}
	if err := m.Consume(tokens("a")); err != nil {
		t.Fatal(err)
	}
	if err := m.Mask(mask); err != nil {
		t.Fatal(err)
	}
	if !has(mask, 256) || !has(mask, 257) || !has(mask, 'b') {
		t.Error("after 'a', 'b' and both end tokens may come")
	}
	if err := m.Mask(mask[:1]); err == nil {
		t.Error("a short mask must be refused")
	}
}

func TestForced(t *testing.T) {
	tok := newTokenizer(t, 1)
	m := newMatcher(t, tok, Regex, "abc[de]")
	buf := make([]uint32, 8)
	if n, err := m.Forced(buf); err != nil || n != 3 || buf[2] != 'c' {
		t.Errorf("Forced = %v, %v", buf[:n], err)
	}
}

func TestCancel(t *testing.T) {
	tok := newTokenizer(t, 1)
	proto := newMatcher(t, tok, Regex, "a*")
	m, err := proto.Clone()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { m.Cancel(); close(done) }()
	<-done
	if err := m.Mask(make([]uint32, m.MaskWords())); !errors.Is(err, ErrCancelled) {
		t.Errorf("Mask after Cancel: %v", err)
	}
	if err := proto.Consume(tokens("a")); err != nil {
		t.Errorf("cancelling a copy reached the original: %v", err)
	}
	m.Close()
	m.Close()
	m.Cancel()
}

func TestUseAfterClosePanics(t *testing.T) {
	tok := newTokenizer(t, 1)
	m := newMatcher(t, tok, Regex, "a")
	m.Close()
	defer func() {
		if s, _ := recover().(string); !strings.Contains(s, "after Close") {
			t.Errorf("recovered %q", s)
		}
	}()
	m.Accepting()
}

func TestTokenizerOutlivesItsMatchers(t *testing.T) {
	tok, err := NewTokenizer(byteConfig(1))
	if err != nil {
		t.Fatal(err)
	}
	m := newMatcher(t, tok, Regex, "ab")
	tok.Close()
	tok.Close()
	if err := m.Consume(tokens("ab")); err != nil || !m.Accepting() {
		t.Errorf("after the vocabulary's Close: %v", err)
	}
	if _, err := tok.NewMatcher(Regex, []byte("a"), Limits{}); err == nil {
		t.Error("a closed vocabulary gives no matcher")
	}
}

func TestLimitHasItsOwnMark(t *testing.T) {
	tok := newTokenizer(t, 1)
	_, err := tok.NewMatcher(Regex, []byte("("+strings.Repeat("[a-z]{1,400}x", 40)+"){1,40}"), Limits{InitialLexerFuel: 100})
	var e *Error
	if !errors.As(err, &e) || !e.Limit {
		t.Errorf("got %v", err)
	}
}

func BenchmarkClone(b *testing.B) {
	tok := newTokenizer(b, 1)
	m := newMatcher(b, tok, JSONSchema, `{"type":"object","properties":{"a":{"type":"string","maxLength":100}},"required":["a"]}`)
	for b.Loop() {
		c, err := m.Clone()
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
