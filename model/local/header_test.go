//go:build cgo && !nonative

package local

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHeaderAgainstLlama compiles our header together with llama.h of the
// pinned crate: a declaration that differs is an error of the C compiler.
func TestHeaderAgainstLlama(t *testing.T) {
	lock, err := os.ReadFile("../../native/Cargo.lock")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`name = "llama-cpp-sys-2"\nversion = "([^"]+)"`).FindSubmatch(lock)
	if m == nil {
		t.Fatal("native/Cargo.lock does not name llama-cpp-sys-2")
	}
	home := os.Getenv("CARGO_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		home = filepath.Join(user, ".cargo")
	}
	found, _ := filepath.Glob(filepath.Join(home, "registry", "src", "*", "llama-cpp-sys-2-"+string(m[1]), "llama.cpp"))
	if len(found) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the source of llama-cpp-sys-2 %s is not in %s", m[1], home)
		}
		t.Skipf("the source of llama-cpp-sys-2 %s is not in %s; make native fetches it", m[1], home)
	}
	header, err := filepath.Abs("../../native/include")
	if err != nil {
		t.Fatal(err)
	}
	compile := func(t *testing.T, ours string) ([]byte, error) {
		dir := t.TempDir()
		src := fmt.Sprintf("#include <llama.h>\n#include <ggml.h>\n%s\nint main(void) { return 0; }\n", ours)
		file := filepath.Join(dir, "both.c")
		if err := os.WriteFile(file, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
		return exec.Command("cc", "-std=gnu11", "-fsyntax-only", "-I"+filepath.Join(found[0], "include"),
			"-I"+filepath.Join(found[0], "ggml", "include"), "-I"+header, file).CombinedOutput()
	}
	if out, err := compile(t, `#include "agentgraph_llama.h"`); err != nil {
		t.Errorf("agentgraph_llama.h does not agree with llama.h: %v\n%s", err, out)
	}
	// The check itself: a wrong declaration must be found.
	if out, err := compile(t, "int64_t llama_model_n_ctx_train(const struct llama_model *model);"); err == nil || !strings.Contains(string(out), "conflicting") {
		t.Errorf("a wrong declaration was not found: %v\n%s", err, out)
	}
}

func TestStructSizes(t *testing.T) {
	c, rust := structSizes()
	for name, size := range c {
		if rust[name] != size {
			t.Errorf("%s has %d bytes in the header and %d in the library", name, size, rust[name])
		}
	}
}
