package agentgraph_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "agentgraph"

// mayImport is the whole table of arrows: which of our packages each package
// may import. A package that is not in it fails. "*" is everything but cmd.
var mayImport = map[string][]string{
	"schemafile":                     {},
	"output":                         {},
	"constraint":                     {"schemafile", "constraint/lark", "constraint/internal/llg", "constraint/internal/validate", "constraint/internal/jsontree", "constraint/internal/relax"},
	"constraint/lark":                {},
	"constraint/internal/llg":        {},
	"constraint/internal/bnftest":    {},
	"constraint/internal/ecma":       {},
	"constraint/internal/jsontree":   {"internal/plainjson"},
	"constraint/internal/relax":      {"constraint/internal/ecma", "constraint/internal/jsontree"},
	"constraint/internal/validate":   {"constraint/internal/ecma", "constraint/internal/jsontree"},
	"constraint/maskbench":           {"constraint", "constraint/internal/llg", "constraint/internal/jsontree", "constraint/internal/relax"},
	"model":                          {"constraint"},
	"model/local":                    {"model", "constraint"},
	"model/openai":                   {"model", "constraint", "constraint/lark", "internal/plainjson"},
	"model/plugin":                   {"model", "constraint", "internal/proc", "internal/plainjson"},
	"model/script":                   {"model", "constraint"},
	"record":                         {"model", "constraint", "internal/plainjson"},
	"record/recordtest":              {"record"},
	"tools":                          {"model", "constraint"},
	"turn":                           {"model", "tools", "record", "constraint"},
	"agents":                         {"schemafile", "constraint", "model", "tools", "record", "turn", "internal/plainjson"},
	"record/store":                   {"record", "output", "internal/plainjson"},
	"internal/watch":                 {},
	"internal/bench":                 {"constraint", "model", "model/script", "record", "turn", "agents", "runner"},
	"runner":                         {"agents", "turn", "output", "record", "record/store", "constraint", "model", "tools", "internal/watch", "runner/internal/ledger"},
	"runner/internal/ledger":         {"record"},
	"internal/clienttest":            {},
	"internal/loopback":              {},
	"internal/newfile":               {},
	"internal/plainjson":             {},
	"internal/server":                {"internal/proc", "internal/loopback"},
	"internal/proc":                  {},
	"internal/importer":              {"agents", "schemafile", "turn", "internal/loopback", "internal/newfile", "internal/plainjson"},
	"serve":                          {"runner", "turn", "agents", "record", "record/store", "output", "tools", "model", "constraint", "schemafile"},
	"distill":                        {"record", "record/store", "turn", "agents", "output", "schemafile", "constraint", "model", "model/openai", "internal/plainjson"},
	"serve/internal/frame":           {},
	"serve/internal/frame/frametest": {},
	"serve/mcp":                      {"serve", "serve/internal/frame", "internal/loopback", "runner", "turn", "agents", "record", "record/store", "output", "tools", "model", "constraint"},
	"serve/acp":                      {"serve", "serve/internal/frame", "runner", "turn", "agents", "record", "record/store", "output", "tools", "model", "constraint"},
	"internal/cli":                   {"*"},
	"cmd/agentgraph":                 {"internal/cli"},
}

// unsafeRooms are the only packages that may use cgo or unsafe.
var unsafeRooms = []string{"constraint/internal/llg", "model/local"}

type sourceFile struct {
	pkg  string // folder relative to the module; "" is the root
	path string
	test bool
	ast  *ast.File
}

// sources parses every Go file of the module, whatever its build tags.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			if path != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || path == "native") {
				return fs.SkipDir
			}
			// A module of its own (examples/embed) is none of ours.
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		if pkg == "." {
			pkg = ""
		}
		files = append(files, sourceFile{pkg, path, strings.HasSuffix(path, "_test.go"), f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files found")
	}
	return files
}

func imports(t *testing.T, f *ast.File) []string {
	t.Helper()
	var paths []string
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

func TestArrows(t *testing.T) {
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		allowed, known := mayImport[f.pkg]
		if !known {
			t.Errorf("%s: package %q is not in the table of arch_test.go; add it with what it may import", f.path, f.pkg)
			continue
		}
		for _, p := range imports(t, f.ast) {
			ours, ok := strings.CutPrefix(p, module+"/")
			if !ok {
				continue
			}
			if slices.Contains(allowed, "*") && !strings.HasPrefix(ours, "cmd/") && !strings.Contains(ours, "/internal/") {
				continue
			}
			if !slices.Contains(allowed, ours) {
				t.Errorf("%s: %s may not import %s (arch_test.go has the arrows)", f.path, f.pkg, ours)
			}
		}
	}
}

// The table itself must not hold a cycle, or it would allow one.
func TestArrowTableHasNoCycle(t *testing.T) {
	state := map[string]int{} // 1: on the path, 2: done
	var visit func(pkg string, path []string)
	visit = func(pkg string, path []string) {
		switch state[pkg] {
		case 1:
			t.Errorf("the table allows a cycle: %s", strings.Join(append(path, pkg), " → "))
			return
		case 2:
			return
		}
		state[pkg] = 1
		for _, next := range mayImport[pkg] {
			if next == "*" {
				continue
			}
			if _, ok := mayImport[next]; !ok {
				t.Errorf("%s may import %s, which the table does not have", pkg, next)
			}
			visit(next, append(path, pkg))
		}
		state[pkg] = 2
	}
	for pkg := range mayImport {
		visit(pkg, nil)
	}
}

func TestUnsafeStaysInItsRooms(t *testing.T) {
	for _, f := range sources(t) {
		if slices.Contains(unsafeRooms, f.pkg) {
			continue
		}
		for _, p := range imports(t, f.ast) {
			if p == "C" || p == "unsafe" {
				t.Errorf("%s imports %q; only %s may", f.path, p, strings.Join(unsafeRooms, " and "))
			}
		}
	}
}

func TestPackageComments(t *testing.T) {
	has := map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		doc := f.ast.Doc.Text()
		prefix := "Package " + f.ast.Name.Name + " "
		if f.ast.Name.Name == "main" {
			prefix = "Command "
		}
		has[f.pkg] = has[f.pkg] || strings.HasPrefix(doc, prefix)
	}
	for pkg, ok := range has {
		if !ok {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

// The module's name is spelled once in go.mod and once here.
func TestModuleName(t *testing.T) {
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(b), "\n"); first != "module "+module {
		t.Errorf("go.mod begins with %q, want module %s", first, module)
	}
}
