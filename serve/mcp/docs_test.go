package mcp

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

//go:generate go test -run TestDocs -update .

var update = flag.Bool("update", false, "write the generated parts of docs/mcp.md and constructs.txt")

const (
	tableBegin = "<!-- constructs: from docs/schema-support.md, by go generate ./serve/mcp -->\n"
	tableEnd   = "<!-- end of constructs -->\n"
)

// docs/schema-support.md is itself compared with what the code does; from it
// come the table of docs/mcp.md and the short form in respond's description.
func TestDocs(t *testing.T) {
	support := read(t, filepath.Join("..", "..", "docs", "schema-support.md"))
	at := strings.Index(support, "\n## ")
	if at < 0 {
		t.Fatal("docs/schema-support.md has no tables")
	}
	tables := strings.ReplaceAll(strings.TrimSpace(support[at:]), "\n## ", "\n### ")
	tables = "#" + tables

	path := filepath.Join("..", "..", "docs", "mcp.md")
	page := read(t, path)
	before, rest, ok1 := strings.Cut(page, tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok1 || !ok2 {
		t.Fatalf("docs/mcp.md lacks the lines\n%s%s", tableBegin, tableEnd)
	}
	compare(t, path, page, before+tableBegin+"\n"+tables+"\n\n"+tableEnd+after)
	compare(t, "constructs.txt", constructs, shortForm(t, tables))
}

func compare(t *testing.T, path, have, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(have, want); d != "" {
		t.Errorf("%s is out of date; run go generate ./serve/mcp\n%s", path, d)
	}
}

// shortForm says the table of a local model in three lines.
func shortForm(t *testing.T, tables string) string {
	t.Helper()
	lists := map[string][]string{}
	for line := range strings.Lines(tables) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 || !strings.HasPrefix(line, "| ") || strings.Contains(cells[0], "Construct") {
			continue
		}
		// A code span may hold a '|'; none does today.
		name := strings.ReplaceAll(strings.TrimSpace(cells[0]), "`", "")
		key := strings.TrimSpace(cells[1]) + ", " + strings.TrimSpace(cells[2])
		lists[key] = append(lists[key], name)
	}
	var b strings.Builder
	for _, l := range []struct{ key, text string }{
		{"mask, mask", "Held while generating by a local model"},
		{"refused, mask+validation", "Only with enforce: validate"},
		{"refused, refused", "Always refused"},
	} {
		if len(lists[l.key]) == 0 {
			t.Fatalf("no construct of the table is %q", l.key)
		}
		fmt.Fprintf(&b, "%s: %s.\n", l.text, strings.Join(lists[l.key], "; "))
		delete(lists, l.key)
	}
	if len(lists) > 0 {
		t.Fatalf("the short form does not know these rows: %v", lists)
	}
	return b.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
