package constraint

import (
	"errors"
	"sync"
	"testing"
)

// TestCancelWhileMasking cancels from another goroutine at any moment, also
// beside Close.
func TestCancelWhileMasking(t *testing.T) {
	needNative(t)
	c := mustCompile(t, JSON, `{"type":"array","items":{"type":"object","additionalProperties":{"type":["string","number","null"]}}}`)
	v, err := ByteVocabulary()
	if err != nil {
		t.Fatal(err)
	}
	for round := range 50 {
		m, err := c.NewMatcher(v)
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			<-started
			for range round {
				_ = v.Size()
			}
			m.Cancel()
		})
		mask := make([]uint32, v.MaskWords())
		close(started)
		for range 10_000 {
			if err = m.Mask(mask); err != nil {
				break
			}
		}
		m.Close()
		wg.Wait()
		if err != nil && !errors.Is(err, ErrCancelled) {
			t.Fatalf("Mask beside Cancel: %v", err)
		}
		m.Cancel()
	}
}

// TestVocabularyClosesAfterItsMatchers: closing in the wrong order frees
// nothing too early.
func TestVocabularyClosesAfterItsMatchers(t *testing.T) {
	needNative(t)
	v := specialVocabulary(t)
	c := mustCompile(t, Regex, "ab")
	m, err := c.NewMatcher(v)
	if err != nil {
		t.Fatal(err)
	}
	v.Close()
	v.Close()
	if err := m.Accept('a', 'b'); err != nil || !m.Accepting() {
		t.Errorf("after the vocabulary's Close: %v", err)
	}
	if _, err := c.NewMatcher(v); err == nil {
		t.Error("a closed vocabulary gives a matcher")
	}
	m.Close()
	m.Close()
	defer func() {
		if recover() == nil {
			t.Error("use after Close must panic")
		}
	}()
	m.Accepting()
}

// TestCachesLetGo: more grammars than a vocabulary keeps are compiled again,
// and matchers of those that went live on.
func TestCachesLetGo(t *testing.T) {
	needNative(t)
	v := specialVocabulary(t)
	var first *Matcher
	for i := range 3 * keptPrototypes {
		m, err := mustCompile(t, Regex, "a{"+string(rune('1'+i%9))+","+string(rune('0'+i%7))+"5"+string(rune('0'+i%8))+"}").NewMatcher(v)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = m
			continue
		}
		m.Close()
	}
	defer first.Close()
	if err := first.Accept('a'); err != nil {
		t.Error(err)
	}
}
