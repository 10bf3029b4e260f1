package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentgraph/agents"
)

func TestDoctorWatchesAndClock(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "agents", "a", "input"), 0o777); err != nil {
		t.Fatal(err)
	}
	proc := t.TempDir()
	for name, n := range map[string]string{"max_user_watches": "3\n", "max_user_instances": "1\n"} {
		if err := os.WriteFile(filepath.Join(proc, name), []byte(n), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	g, err := agents.LoadWith(dir, agents.LoadOptions{DefaultModel: "x.gguf"})
	if err != nil {
		t.Fatal(err)
	}
	d := doctor{g: g, now: func() time.Time { return time.Now().Add(-time.Hour) }}
	d.watches(proc)
	d.fileSystem()
	var text []string
	for _, f := range d.found {
		text = append(text, findingText(f))
	}
	all := strings.Join(text, "\n")
	for _, want := range []string{
		"the kernel allows 3 watches", "sudo sysctl fs.inotify.max_user_watches=8192",
		"sudo sysctl fs.inotify.max_user_instances=128", "clock differs from this machine's by 1h0m0s",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %q in\n%s", want, all)
		}
	}
}
