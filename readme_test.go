package agentgraph_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Links in what users read lead to files that are there.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	docs, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range append(docs, "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SCHEMA.md") {
		b, err := os.ReadFile(doc)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, m[1])
			}
		}
	}
}

// The README quotes the example as it is.
func TestReadmeQuotesTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	agent := "examples/reviews/agents/rater/"
	for _, f := range []string{"system/.schema-rating.json", "input/kettle.txt"} {
		b, err := os.ReadFile(agent + f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(readme), strings.TrimSpace(string(b))) {
			t.Errorf("README.md does not quote %s%s as it is", agent, f)
		}
	}
}
