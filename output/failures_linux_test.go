package output

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// tmpfs mounts a small file system of its own, or skips.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system to fill")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skip("no mounts here:", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// failed publishes, wants one clear error with these words, and wants the
// folder as it was.
func failed(t *testing.T, f *Folder, cause error, words string) {
	t.Helper()
	before := names(t, f.path)
	path, err := f.Publish(context.Background(), rating, start, []byte(strings.Repeat("x", 100_000)))
	var e *Error
	if path != "" || !errors.As(err, &e) || !errors.Is(err, cause) {
		t.Fatalf("published %q, %v; want %v", path, err, cause)
	}
	text := err.Error()
	if !strings.Contains(text, words) || !strings.HasPrefix(text, f.path) || strings.Contains(text, "\n") || strings.Contains(text, tempPrefix) {
		t.Errorf("%q is not clear; it should say %q", text, words)
	}
	if after := names(t, f.path); strings.Join(before, " ") != strings.Join(after, " ") {
		t.Errorf("the folder held %v and now %v", before, after)
	}
}

func TestFullDisk(t *testing.T) {
	dir := tmpfs(t, "size=64k")
	f := Open(dir)
	if got := publish(t, f, rating, "small"); got != "rating_0.json" {
		t.Error(got)
	}
	failed(t, f, unix.ENOSPC, "no space left on device; free some space")
	if got := publish(t, f, rating, "small again"); got != "rating_1.json" {
		t.Error(got)
	}
}

func TestNoInodes(t *testing.T) {
	dir := tmpfs(t, "size=1m,nr_inodes=3")
	f := Open(dir)
	publish(t, f, rating, "one")
	publish(t, f, rating, "two")
	failed(t, f, unix.ENOSPC, "free some space")
	remove(t, dir, "rating_0.json")
	if got := publish(t, f, rating, "three"); got != "rating_2.json" {
		t.Error(got)
	}
}

func TestReadOnly(t *testing.T) {
	t.Run("mount", func(t *testing.T) {
		dir := tmpfs(t, "size=1m")
		f := Open(dir)
		publish(t, f, rating, "x")
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Skip("no remounts here:", err)
		}
		failed(t, f, unix.EROFS, "read-only file system; mount the file system for writing")
	})
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		words := "let this user write to the folder"
		if os.Getuid() == 0 {
			// Root may write anywhere but into an immutable folder.
			setImmutable(t, dir)
			words = "take the immutable or append-only flag off the folder"
		} else if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		failed(t, Open(dir), fs.ErrPermission, words)
	})
}

func TestFileInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path).Publish(context.Background(), rating, start, []byte("x"))
	if !errors.Is(err, unix.ENOTDIR) || !strings.Contains(err.Error(), "not a directory; replace the file by a folder") {
		t.Errorf("got %v", err)
	}
}

const immutableFlag = 0x10 // FS_IMMUTABLE_FL

func setImmutable(t *testing.T, dir string) {
	t.Helper()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	flags, err := unix.IoctlGetUint32(int(d.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(d.Fd()), unix.FS_IOC_SETFLAGS, int(flags|immutableFlag))
	}
	if err != nil {
		d.Close()
		t.Skip("this file system has no immutable folders:", err)
	}
	t.Cleanup(func() {
		if err := unix.IoctlSetPointerInt(int(d.Fd()), unix.FS_IOC_SETFLAGS, int(flags)); err != nil {
			t.Error(err)
		}
		d.Close()
	})
}

// The folder loses its rights between the steps.
func TestReadOnlyMidway(t *testing.T) {
	dir := t.TempDir()
	if os.Getuid() != 0 {
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	}
	f := Open(dir)
	pending, err := f.Prepare(t.Context(), "t", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("commit", func(t *testing.T) {
		if os.Getuid() == 0 {
			setImmutable(t, dir)
		} else if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		path, err := pending.Commit("rating_0.json")
		if path != "" || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "; ") {
			t.Errorf("%q, %v", path, err)
		}
	})
	if os.Getuid() != 0 {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// With the rights back, the same pending answer can be published.
	path, err := pending.Commit("rating_0.json")
	if err != nil || filepath.Base(path) != "rating_0.json" {
		t.Errorf("%q, %v", path, err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

const fileLimitEnv = "AGENTGRAPH_TEST_FILE_LIMIT"

// A limit on file sizes acts like a disk that fills up in the middle of an
// answer, and needs no rights. The limit is for a process of its own.
func TestFileSizeLimit(t *testing.T) {
	if dir := os.Getenv(fileLimitEnv); dir != "" {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: 4096}); err != nil {
			t.Fatal(err)
		}
		f := Open(dir)
		failed(t, f, unix.EFBIG, "file too large; raise the limit on file sizes")
		publish(t, f, rating, "small")
		return
	}
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestFileSizeLimit$")
	cmd.Env = append(os.Environ(), fileLimitEnv+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if got := names(t, dir); len(got) != 1 || got[0] != "rating_0.json" {
		t.Errorf("the folder holds %v", got)
	}
}
