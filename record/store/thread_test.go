package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestThread(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "threads")
	th, err := OpenThread(dir, "trip")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := th.Exchanges(0); err != nil || got != nil {
		t.Fatalf("a new thread has %v, %v", got, err)
	}
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := Exchange{when, "t1", "first\n<line> & more", "one"}
	b := Exchange{when, "t2", "second", "two"}
	for _, e := range []Exchange{a, b} {
		if err := th.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	// What a crash cut off is no exchange and in nobody's way.
	path := filepath.Join(dir, "trip.jsonl")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"user":"cut o`)
	f.Close()
	got, err := th.Exchanges(0)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Exchange{a, b}, got); d != "" {
		t.Error(d)
	}
	c := Exchange{when, "t3", "third", "three"}
	if err := th.Append(c); err != nil {
		t.Fatal(err)
	}
	got, err = th.Exchanges(2)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Exchange{b, c}, got); d != "" {
		t.Error(d)
	}
}

func TestThreadNames(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "a.b-c_1": true, "": false, ".a": false, "../a": false, "a/b": false, "ä": false} {
		if _, err := OpenThread("x", name); (err == nil) != ok {
			t.Errorf("OpenThread(%q): %v", name, err)
		}
	}
}

func TestThreadLock(t *testing.T) {
	dir := t.TempDir()
	first, _ := OpenThread(dir, "a")
	second, _ := OpenThread(dir, "a")
	unlock, err := first.Lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := second.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second user got the thread: %v", err)
	}
	unlock()
	unlock2, err := second.Lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	unlock2()
}
