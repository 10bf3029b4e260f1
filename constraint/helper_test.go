package constraint

import (
	"context"
	"os"
	"testing"

	"agentgraph/constraint/internal/llg"
)

// needNative skips a test that needs masks, unless this is CI.
func needNative(t testing.TB) {
	t.Helper()
	if llg.Built {
		return
	}
	if os.Getenv("CI") == "true" && os.Getenv("CGO_ENABLED") != "0" {
		t.Fatal("the native library is not linked")
	}
	t.Skip("the native library is not linked (make native)")
}

func mustCompile(t testing.TB, kind Kind, src string, opt ...Options) *Constraint {
	t.Helper()
	var o Options
	if len(opt) > 0 {
		o = opt[0]
	}
	c, err := Compile(Spec{Kind: kind, Source: []byte(src), File: "system/.schema-t." + string(kind)}, o)
	if err != nil {
		t.Fatalf("%s %s: %v", kind, src, err)
	}
	return c
}

func byteMatcher(t testing.TB, c *Constraint) *Matcher {
	t.Helper()
	v, err := ByteVocabulary()
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.NewMatcher(v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// maskTakes feeds text byte by byte through the mask and says whether all of
// it was allowed and an end token was at its end.
func maskTakes(t testing.TB, c *Constraint, text string) bool {
	t.Helper()
	m := byteMatcher(t, c)
	defer m.Close()
	mask := make([]uint32, m.v.MaskWords())
	for i := range len(text) {
		if m.Stopped() {
			return false
		}
		if err := m.Mask(mask); err != nil {
			t.Fatalf("mask at %q: %v", text[:i], err)
		}
		if !has(mask, uint32(text[i])) {
			return false
		}
		if err := m.Accept(uint32(text[i])); err != nil {
			t.Fatalf("accept at %q: %v", text[:i], err)
		}
	}
	if err := m.Mask(mask); err != nil {
		t.Fatal(err)
	}
	return has(mask, 256) && m.Accepting()
}

func has(mask []uint32, tok uint32) bool { return mask[tok/32]>>(tok%32)&1 == 1 }

func valid(c *Constraint, text string) bool { return c.Validate(context.Background(), text).Valid }
