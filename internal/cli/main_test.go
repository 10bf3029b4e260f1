package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"agentgraph/constraint"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"agentgraph": func() {
			os.Exit(Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
		"fakeserver": fakeServer,
		"stubborn":   stubbornServer,
	})
}

// TestScripts runs testdata/*.txtar: the real commands in real folders.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "freeport": freePort},
		Condition:           condition,
		Setup: func(env *testscript.Env) error {
			// Nothing of the user's own settings or caches is seen.
			for _, k := range []string{"XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME"} {
				env.Setenv(k, env.WorkDir+"/.home")
			}
			// Under the race detector a process takes a second to end without this.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return os.MkdirAll(env.WorkDir+"/.home", 0o777)
		},
	})
}

// exits CODE PROGRAM ARG… runs a program that must end with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s ended with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// condition knows [native]: the native library is linked, so that answers can
// be masked.
func condition(name string) (bool, error) {
	if name == "native" {
		return constraint.LocalEngine("").Masks, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}
