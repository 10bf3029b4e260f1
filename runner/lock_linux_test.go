package runner

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A graph that cannot be written to is refused with the path once, and with
// what to do.
func TestGraphThatCannotBeWritten(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{syscall.EROFS, "mount the file system for writing, or run a copy of the graph elsewhere"},
		{syscall.EACCES, "let this user write to it"},
		{syscall.EPERM, "take the immutable flag off"},
		{syscall.ENOSPC, "free disk space"},
		{syscall.EIO, "see that it is a folder of a graph"},
	} {
		err := lockError("writing", "/g/lock", &os.PathError{Op: "open", Path: "/g/lock", Err: tt.err})
		if !errors.Is(err, tt.err) || strings.Count(err.Error(), "/g/lock") != 1 || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v; want %q", err, tt.want)
		}
	}

	for _, locked := range []bool{false, true} {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
			t.Skip("a small file system cannot be mounted here:", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		g := newGraphIn(t, dir, "agents/a/input/x", "one")
		if locked {
			// A graph that was worked before it became read-only.
			if s, _ := g.once(echo); s.Completed != 1 {
				t.Fatalf("%+v", s)
			}
		}
		if err := syscall.Mount("tmpfs", g.root, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Skip("no remounts here:", err)
		}
		_, err := New(g.config(echo, nil))
		if err == nil || !errors.Is(err, syscall.EROFS) || strings.Count(err.Error(), g.root) != 1 || !strings.Contains(err.Error(), "mount the file system for writing") {
			t.Errorf("worked before: %v: %v", locked, err)
		}
	}
}
