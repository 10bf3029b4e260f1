package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// With a local model both ways give the same bytes, the rendered prompt among
// them.
func TestRebuildLocalModel(t *testing.T) {
	path := realModel(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", "reviews"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"charger.txt", "lamp.txt"} {
		if err := os.Remove(filepath.Join(dir, "agents/rater/input", name)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Main(context.Background(), args, strings.NewReader(""), &out, &errs); code != exitOK {
			t.Fatalf("%v ended with %d: %s%s", args, code, &out, &errs)
		}
		return out.String()
	}
	run("run", "--once", "--model", path, dir)
	answer := filepath.Join(dir, "agents/rater/output/rating_0.json")
	record := run("rebuild", "--json", answer)
	folder := run("rebuild", "--json", "--from", "folder", "--model", path, answer)
	if strings.Replace(record, `"from":"record"`, `"from":"folder"`, 1) != folder {
		t.Errorf("not the same bytes:\n%s%s", record, folder)
	}
	prompt := run("rebuild", "--prompt", answer)
	if !strings.HasPrefix(prompt, "<|im_start|>system\nYou rate product reviews") || !strings.HasSuffix(prompt, "<|im_start|>assistant\n") {
		t.Errorf("the prompt is %q", prompt)
	}
	run("verify", dir)
}
