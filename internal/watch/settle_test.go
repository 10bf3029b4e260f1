package watch

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestSettling(t *testing.T) {
	type look struct {
		at         time.Duration // since the first look
		size       int64
		open, know bool
		ready      bool
		again      time.Duration
	}
	ms := time.Millisecond
	rule := Rule{Quiet: 200 * ms, Max: 10 * time.Second}
	always := rule
	always.Always = true
	for _, tt := range []struct {
		name  string
		rule  Rule
		looks []look
	}{
		{"nobody writes", rule, []look{{0, 1, false, true, true, 0}}},
		{"a writer closes", rule, []look{{0, 1, true, true, false, 2 * ms}, {2 * ms, 9, true, true, false, 4 * ms}, {6 * ms, 9, false, true, true, 0}}},
		{"a writer pauses longer than settle", rule, []look{
			{0, 1, true, true, false, 2 * ms}, {500 * ms, 1, true, true, false, 4 * ms}, {900 * ms, 5, true, true, false, 8 * ms}, {time.Second, 5, false, true, true, 0}}},
		{"looks become rarer", rule, []look{
			{0, 1, true, true, false, 2 * ms}, {1, 1, true, true, false, 4 * ms}, {2, 1, true, true, false, 8 * ms}, {3, 1, true, true, false, 16 * ms},
			{4, 1, true, true, false, 32 * ms}, {5, 1, true, true, false, 64 * ms}, {6, 1, true, true, false, 100 * ms}, {7, 1, true, true, false, 100 * ms}}},
		{"nobody can tell", rule, []look{{0, 1, false, false, false, 200 * ms}, {100 * ms, 2, false, false, false, 200 * ms}, {250 * ms, 2, false, false, false, 50 * ms}, {300 * ms, 2, false, false, true, 0}}},
		{"never quiet", rule, []look{{0, 1, false, false, false, 200 * ms}, {9900 * ms, 2, false, false, false, 100 * ms}, {10 * time.Second, 3, false, false, true, 0}}},
		{"always open", rule, []look{{0, 1, true, true, false, 2 * ms}, {10 * time.Second, 1, true, true, true, 0}}},
		{"settle was set", always, []look{{0, 1, false, true, false, 200 * ms}, {199 * ms, 1, false, true, false, 1 * ms}, {200 * ms, 1, false, true, true, 0}}},
		{"settle was set and the file is open", always, []look{{0, 1, true, true, false, 2 * ms}, {300 * ms, 1, true, true, false, 4 * ms}}},
		{"settle is 0", Rule{Quiet: 0, Max: time.Second, Always: true}, []look{{0, 1, false, true, true, 0}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Settling
			start := time.Unix(1e9, 0)
			mod := start
			for i, l := range tt.looks {
				if i > 0 && l.size != tt.looks[i-1].size {
					mod = mod.Add(time.Second)
				}
				ready, again := s.See(tt.rule, start.Add(l.at), Look{Size: l.size, ModTime: mod, Open: l.open, Known: l.know})
				if ready != l.ready || again != l.again {
					t.Errorf("look %d: ready %v, again %v; want %v, %v", i, ready, again, l.ready, l.again)
				}
			}
		})
	}
	t.Run("same size, new time", func(t *testing.T) {
		var s Settling
		start := time.Unix(1e9, 0)
		s.See(rule, start, Look{Size: 1, ModTime: start})
		if ready, _ := s.See(rule, start.Add(200*ms), Look{Size: 1, ModTime: start.Add(ms)}); ready {
			t.Error("a file that was written again is not quiet")
		}
	})
}

func TestWriting(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("read leases are Linux'")
	}
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if open, known := Writing(path); !known || !open {
		t.Errorf("while a writer has it open: %v, %v", open, known)
	}
	f.Close()
	if open, known := Writing(path); !known || open {
		t.Errorf("after it closed: %v, %v", open, known)
	}
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if open, known := Writing(path); !known || open {
		t.Errorf("while a reader has it open: %v, %v", open, known)
	}
	if _, known := Writing(path + "x"); known {
		t.Error("nothing is known of a file that is missing")
	}
	// A look leaves nothing behind that would stop a writer.
	done := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			err = f.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a writer waits for a lease")
	}
}
