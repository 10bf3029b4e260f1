package agentgraph_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentgraph/internal/clienttest"
	"agentgraph/record"
)

const typescript = "typescript@7.0.2"

// The TypeScript client is built and packed as npm does it, installed into an
// empty folder, and used from there: its types hold for whole records, and its
// functions find what is to be found.
func TestClientsTypeScript(t *testing.T) {
	if raceDetector {
		t.Skip("runs no Go code; it runs without the race detector")
	}
	compiler := clienttest.Node(t, typescript)
	work := t.TempDir()
	source := filepath.Join(work, "source")
	if err := os.CopyFS(source, os.DirFS(filepath.Join("clients", "typescript"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(compiler, "node_modules"), filepath.Join(source, "node_modules")); err != nil {
		t.Fatal(err)
	}
	tell := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "npm_config_offline=true", "npm_config_update_notifier=false")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	tell(source, "npm", "pack", "--pack-destination", work)
	packed, err := filepath.Glob(filepath.Join(work, "agentgraph-client-*.tgz"))
	if err != nil || len(packed) != 1 {
		t.Fatalf("npm pack left %v (%v)", packed, err)
	}
	listing := tell(work, "tar", "-tzf", packed[0])
	for _, want := range []string{"package/dist/index.js", "package/dist/index.d.ts", "package/README.md"} {
		if !strings.Contains(listing, want+"\n") {
			t.Errorf("the package lacks %s:\n%s", want, listing)
		}
	}
	if strings.Contains(listing, "/src/") || strings.Contains(listing, "/test/") {
		t.Errorf("the package holds more than it needs:\n%s", listing)
	}

	user := filepath.Join(work, "user")
	if err := os.Mkdir(user, 0o777); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(user, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("package.json", `{"private": true, "type": "module"}`)
	tell(user, "npm", "install", "--no-audit", "--no-fund", packed[0])
	if entries, err := filepath.Glob(filepath.Join(user, "node_modules", "[^.]*")); err != nil || len(entries) != 1 {
		t.Errorf("the package brought dependencies: %v (%v)", entries, err)
	}
	use, err := os.ReadFile(filepath.Join("clients", "typescript", "test", "use.ts"))
	if err != nil {
		t.Fatal(err)
	}
	cases := answerCases(t)
	put("use.ts", string(use))
	put("cases.ts", "export const cases: { name: string; response: string; task: string | null; text: string | null; value: string | null }[] = "+asJSON(t, cases)+";\n")
	var literals []string
	records := answerRecords(t)
	for _, name := range slices.Sorted(maps.Keys(records)) {
		b, err := record.Marshal(records[name])
		if err != nil {
			t.Fatal(err)
		}
		literals = append(literals, string(b))
	}
	put("records.ts", "import type { TurnRecord } from \"agentgraph-client\";\nexport const records: TurnRecord[] = [\n"+strings.Join(literals, ",\n")+"\n];\n")
	put("tsconfig.json", `{"compilerOptions": {"strict": true, "exactOptionalPropertyTypes": true, "noUncheckedIndexedAccess": true,
		"target": "es2022", "lib": ["es2022"], "types": [], "module": "nodenext", "skipLibCheck": false}, "files": ["use.ts", "console.d.ts"]}`)
	put("console.d.ts", "declare const console: { log(...what: unknown[]): void; error(...what: unknown[]): void };\n")
	tell(user, filepath.Join(compiler, "node_modules", ".bin", "tsc"), "-p", ".")
	if got, want := tell(user, "node", "use.js"), fmt.Sprintf("%d cases\n", len(cases)); got != want {
		t.Errorf("the client printed %q, want %q", got, want)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
