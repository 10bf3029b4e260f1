// Package clienttest sets up, for tests, the programs that speak to this
// project in other languages: a Python environment or a folder of npm
// packages, installed once per content into the user's cache; and ports for
// programs that listen on one they are told.
package clienttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// installTime bounds one installation; the lock is waited for as long.
const installTime = 5 * time.Minute

// Python returns the interpreter of an environment that holds exactly these
// requirements ("mcp==1.2.3"). Where it cannot be had the test skips, under CI
// it fails.
func Python(t testing.TB, requirements ...string) string {
	t.Helper()
	exe, err := exec.LookPath("python3")
	if err != nil {
		lacking(t, "python3 is not installed")
	}
	version, err := exec.Command(exe, "-c", "import sys; print(sys.version_info[:2], sys.base_prefix)").Output()
	if err != nil {
		lacking(t, fmt.Sprintf("python3: %v", err))
	}
	dir := once(t, "python", append(requirements, string(version)), func(ctx context.Context, dir string) error {
		if err := run(ctx, dir, exe, "-m", "venv", dir); err != nil {
			return fmt.Errorf("%w (Debian: apt-get install python3-venv)", err)
		}
		if len(requirements) == 0 {
			return nil
		}
		return run(ctx, dir, interpreter(dir), append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check"}, requirements...)...)
	})
	return interpreter(dir)
}

func interpreter(dir string) string {
	if runtime.GOOS == "windows" {
		return filepath.Join(dir, "Scripts", "python.exe")
	}
	return filepath.Join(dir, "bin", "python")
}

// Node returns a folder whose node_modules holds these packages
// ("typescript@5.9.3") and no scripts of theirs were run.
func Node(t testing.TB, packages ...string) string {
	t.Helper()
	exe, err := exec.LookPath("npm")
	if err != nil {
		lacking(t, "npm is not installed")
	}
	return once(t, "node", packages, func(ctx context.Context, dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true}`), 0o666); err != nil {
			return err
		}
		return run(ctx, dir, exe, append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"}, packages...)...)
	})
}

// once runs install in a folder named after the content, when no earlier run
// finished it. The folder keeps its path: an environment holds it.
func once(t testing.TB, kind string, content []string, install func(ctx context.Context, dir string) error) string {
	t.Helper()
	sum := sha256.Sum256([]byte(strings.Join(content, "\n")))
	cache, err := os.UserCacheDir()
	if err != nil {
		lacking(t, err.Error())
	}
	dir := filepath.Join(cache, "agentgraph", "clients", kind+"-"+hex.EncodeToString(sum[:8]))
	done := filepath.Join(dir, ".installed")
	if _, err := os.Stat(done); err == nil {
		return dir
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		t.Fatal(err)
	}
	lock := flock.New(dir + ".lock")
	if ok, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil || !ok {
		t.Fatalf("%s.lock: %v", dir, err)
	}
	defer lock.Unlock()
	if _, err := os.Stat(done); err == nil {
		return dir
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := install(ctx, dir); err != nil {
		lacking(t, err.Error())
	}
	if err := os.WriteFile(done, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

func run(ctx context.Context, dir, exe string, args ...string) error {
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(exe), strings.Join(args, " "), err, out)
	}
	return nil
}

// lacking ends a test whose programs are not there: without them it shows
// nothing, so under CI it fails.
func lacking(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
