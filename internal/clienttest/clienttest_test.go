package clienttest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestPythonHasItsRequirements(t *testing.T) {
	exe := Python(t, "six==1.17.0")
	if out, err := exec.Command(exe, "-c", "import six; print(six.__version__)").CombinedOutput(); err != nil || string(out) != "1.17.0\n" {
		t.Errorf("%v: %s", err, out)
	}
	if again := Python(t, "six==1.17.0"); again != exe {
		t.Errorf("%s, then %s", exe, again)
	}
}

func TestNodeHasItsPackages(t *testing.T) {
	dir := Node(t, "is-number@7.0.0")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "is-number", "package.json")); err != nil {
		t.Error(err)
	}
}

// The port can be listened on, and is none that a system gives away itself.
func TestPortIsFree(t *testing.T) {
	for range 20 {
		port := Port(t)
		if port < firstPort || port >= endPort {
			t.Errorf("port %d", port)
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}
