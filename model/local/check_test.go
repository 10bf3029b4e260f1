package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckFile(t *testing.T) {
	whole := smallGGUF()
	if err := CheckFile(write(t, "m.gguf", whole)); err != nil {
		t.Error(err)
	}
	for n := range whole {
		path := filepath.Join(t.TempDir(), "cut.gguf")
		if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if err := CheckFile(path); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Fatalf("cut at %d of %d: error is %v", n, len(whole), err)
		}
	}
}
