package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadFileHasABound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for size, wrong := range map[int64]bool{maxFileBytes: false, maxFileBytes + 1: true} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		_, err := readFile(t.Context(), "the prompt", path)
		if (err != nil) != wrong || wrong && !strings.Contains(err.Error(), "the prompt "+path+" has more than") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
