package constraint

import (
	"strings"
	"testing"
)

// prefer walks greedily: at each step the first allowed byte of order, else
// any allowed byte; it stops at an end token or after max bytes.
func prefer(t *testing.T, c *Constraint, order string, max int) (text string, ended bool) {
	t.Helper()
	m := byteMatcher(t, c)
	defer m.Close()
	mask := make([]uint32, m.v.MaskWords())
	var b strings.Builder
	for b.Len() < max && !m.Stopped() {
		if err := m.Mask(mask); err != nil {
			t.Fatalf("after %q: %v", b.String(), err)
		}
		next := -1
		for i := range len(order) {
			if has(mask, uint32(order[i])) {
				next = int(order[i])
				break
			}
		}
		if next < 0 {
			if has(mask, 256) {
				return b.String(), true
			}
			for i := range 256 {
				if has(mask, uint32(i)) {
					next = i
					break
				}
			}
		}
		if next < 0 {
			t.Fatalf("nothing may follow %q", b.String())
		}
		b.WriteByte(byte(next))
		if err := m.Accept(uint32(next)); err != nil {
			t.Fatal(err)
		}
	}
	return b.String(), m.Stopped() || m.Accepting()
}

func TestNumbersEnd(t *testing.T) {
	needNative(t)
	for _, c := range []struct{ schema, order, want string }{
		{`{"type":"object","properties":{"unit_price":{"type":"number","minimum":0}},"required":["unit_price"],"additionalProperties":false}`, "1", `{"unit_price":11111111111111111}`},
		{`{"type":"array","items":{"type":"number"},"minItems":1,"maxItems":1}`, ".10", `[1.1111111111111111]`},
		{`{"type":"array","items":{"type":"number"},"minItems":1,"maxItems":1}`, ".01", `[0.00000000000000000]`},
		{`{"type":"array","items":{"type":"number"},"minItems":1,"maxItems":1}`, "e1", `[1e111]`},
		{`{"type":"array","items":{"type":"number"},"minItems":1,"maxItems":1}`, "-.1", `[-1.1111111111111111]`},
		{`{"type":"integer"}`, "9", `99999999999999999`},
		{`{"type":"integer","minimum":0,"maximum":9223372036854775807}`, "9", `999999999999999999`},
		{`{"enum":[123456789012345678901]}`, "1", `111111111111111111111`},
		{`{"type":"string","maxLength":30}`, "1", `"111111111111111111111111111111"`},
	} {
		con := mustCompile(t, JSON, c.schema)
		if got, ended := prefer(t, con, c.order, 200); !ended || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: preferring %q gives %s (ended %v), want %s", c.schema, c.order, got, ended, c.want)
		}
	}
}

func TestDigitTokensOfSeveralBytes(t *testing.T) {
	needNative(t)
	cfg := VocabularyConfig{Greedy: true}
	for i := range 256 {
		cfg.Tokens = append(cfg.Tokens, []byte{byte(i)})
	}
	cfg.Tokens = append(cfg.Tokens, []byte("111"), []byte("11,"), []byte("</s>"))
	cfg.EOS = []uint32{258}
	v, err := NewVocabulary(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	m, err := mustCompile(t, JSON, `{"type":"array","items":{"type":"number"}}`).NewMatcher(v)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	mask := make([]uint32, v.MaskWords())
	if err := m.Accept('[', 256, 256, 256, 256, 256); err != nil { // 15 digits
		t.Fatal(err)
	}
	for _, step := range []struct {
		accept   uint32
		one, run bool // may "1" and "111" follow
	}{{'1', true, false}, {'1', false, false}} {
		if err := m.Accept(step.accept); err != nil {
			t.Fatal(err)
		}
		if err := m.Mask(mask); err != nil {
			t.Fatal(err)
		}
		if has(mask, '1') != step.one || has(mask, 256) != step.run || !has(mask, ',') {
			t.Errorf("after %d digits: 1 %v, 111 %v, ',' %v", m.num.digits, has(mask, '1'), has(mask, 256), has(mask, ','))
		}
	}
}
