package llg

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHeaderAgrees compiles our header after the crate's own: a declaration
// that differs is a compile error there. A copy with one changed signature
// must not compile, or the comparison compares nothing.
func TestHeaderAgrees(t *testing.T) {
	crate := crateHeader(t)
	cc, err := exec.LookPath("cc")
	if err != nil {
		skip(t, "no C compiler (cc) on this machine")
	}
	ours, err := os.ReadFile(filepath.Join("..", "..", "..", "native", "include", "agentgraph_llg.h"))
	if err != nil {
		t.Fatal(err)
	}
	// The callback's type has one name in both; its two definitions are
	// compared by passing a pointer of one to a pointer of the other.
	body := strings.Replace(string(ours), "(*LlgTokenizeFn)(", "(*OurTokenizeFn)(", 1)
	compile := func(body string) ([]byte, error) {
		dir := t.TempDir()
		src := "#include \"" + crate + "\"\n" + body +
			"\nLlgTokenizeFn theirs; OurTokenizeFn *same = &theirs;\nLlgTokenizeFn own = ag_llg_tokenize_single_bytes;\n"
		file := filepath.Join(dir, "both.c")
		if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.Command(cc, "-std=c11", "-fsyntax-only", "-Wall", "-Werror", file).CombinedOutput()
	}
	if out, err := compile(body); err != nil {
		t.Errorf("our header and the crate's differ: %v\n%s", err, out)
	}
	changed := strings.Replace(body, "int32_t llg_matcher_rollback(", "int64_t llg_matcher_rollback(", 1)
	if changed == body {
		t.Fatal("the header no longer declares llg_matcher_rollback")
	}
	if _, err := compile(changed); err == nil {
		t.Error("a changed signature compiles: the comparison is blind")
	}
}

// crateHeader finds the llguidance.h of the version that Cargo.lock pins.
func crateHeader(t *testing.T) string {
	lock, err := os.ReadFile(filepath.Join("..", "..", "..", "native", "Cargo.lock"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`name = "llguidance"\nversion = "([^"]+)"`).FindSubmatch(lock)
	if m == nil {
		t.Fatal("Cargo.lock does not name llguidance")
	}
	home := os.Getenv("CARGO_HOME")
	if home == "" {
		h, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		home = filepath.Join(h, ".cargo")
	}
	found, _ := filepath.Glob(filepath.Join(home, "registry", "src", "*", "llguidance-"+string(m[1]), "llguidance.h"))
	if len(found) == 0 {
		skip(t, "the crate llguidance "+string(m[1])+" is not unpacked in "+home)
	}
	return found[0]
}

func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}
