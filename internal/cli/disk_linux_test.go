package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that fills up after some files of a graph leaves none of them.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system to fill")
	}
	// Two pages: two of the four files.
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Skip("no mounts here:", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := "models: {m: {provider: {type: plugin, name: mock}}}\nagents:\n"
	for _, name := range []string{"a", "b", "c"} {
		text += "  " + name + ": {inputs: [x], output: y, model: m}\n"
	}
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "deep/graph"}, {"import", config, "deep/graph"}} {
		cmd := program(t, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if exitCode(t, err) != 2 || !strings.Contains(string(out), "no space left on device; nothing is left of it") {
			t.Errorf("%s: %v: %s", args[0], err, out)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s leaves %v, %v", args[0], left, err)
		}
	}
}
