package openai

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

//go:generate env AGENTGRAPH_UPDATE=1 go test -run TestServersDoc .

const serversDoc = "../../docs/servers.md"

// The tables of docs/servers.md are these dialects'.
func TestServersDoc(t *testing.T) {
	b, err := os.ReadFile(serversDoc)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	_, rest, ok := strings.Cut(doc, "AGENTGRAPH_UPDATE=1 -->\n")
	got, after, ok2 := strings.Cut(rest, "<!-- end -->")
	if !ok || !ok2 {
		t.Fatal("docs/servers.md has no place for the tables")
	}
	want := serverTables()
	if os.Getenv("AGENTGRAPH_UPDATE") != "" {
		before := strings.TrimSuffix(doc, rest)
		if err := os.WriteFile(serversDoc, []byte(before+want+"<!-- end -->"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("docs/servers.md is out of date; run the test with AGENTGRAPH_UPDATE=1. Want:\n%s", want)
	}
}

func serverTables() string {
	var b strings.Builder
	b.WriteString("\n| Server | Kind | Field | What stands in it |\n|---|---|---|---|\n")
	for _, r := range Travels() {
		server := fmt.Sprintf("%s (`%s`)", r.Title, r.Server)
		switch {
		case r.LLGuidance:
			server += " with `backend: llguidance`"
			fallthrough
		case r.Field != "":
			fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", server, r.Kind, r.Field, r.Form)
		default:
			fmt.Fprintf(&b, "| %s | %s | – | refused |\n", server, r.Kind)
		}
	}
	b.WriteString("\n| Server | Keywords of JSON Schema that it is known to skip |\n|---|---|\n")
	for _, name := range Dialects() {
		d := dialects[name]
		if len(d.keywords) == 0 {
			continue
		}
		var words []string
		for _, k := range d.keywords {
			w := "`" + k.name + "`"
			if k.why != "" {
				w += " " + k.why
			}
			words = append(words, w)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", d.title, strings.Join(words, ", "))
	}
	b.WriteString("\n")
	return b.String()
}
