package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestLive(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(100, 0)
	l := newLive(&out)
	l.on = true
	l.now = func() time.Time { return now }
	l.width = func() int { return 30 }

	l.update("a", "rater kettle.txt", 0)
	if got, want := out.String(), "rater kettle.txt  reading th…\n"; got != want {
		t.Errorf("first line = %q, want %q", got, want)
	}
	out.Reset()
	l.update("a", "rater kettle.txt", 1) // within the interval: not drawn
	if out.Len() > 0 {
		t.Errorf("drawn too often: %q", out.String())
	}
	now = now.Add(time.Second)
	l.width = func() int { return 80 }
	l.update("a", "rater kettle.txt", 50)
	if got, want := out.String(), "\x1b[1A\x1b[Jrater kettle.txt  50 tokens, 50.0 tokens/s\n"; got != want {
		t.Errorf("second line = %q, want %q", got, want)
	}
	out.Reset()
	l.print(&out, "done\n")
	if got := out.String(); !strings.HasPrefix(got, "\x1b[1A\x1b[Jdone\nrater kettle.txt") {
		t.Errorf("print = %q", got)
	}
	out.Reset()
	l.done("a")
	if got, want := out.String(), "\x1b[1A\x1b[J"; got != want {
		t.Errorf("done = %q, want %q", got, want)
	}
}

func TestLiveIsQuietInAPipe(t *testing.T) {
	var out bytes.Buffer
	l := newLive(&out)
	l.update("a", "x", 3)
	l.done("a")
	l.print(&out, "kept\n")
	if out.String() != "kept\n" {
		t.Errorf("a pipe got %q", out.String())
	}
}
