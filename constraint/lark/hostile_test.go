package lark

import (
	"fmt"
	"strings"
	"testing"
)

// TestHostile reads sources that are small and would be slow or deep for a
// careless reader: each takes a moment, or minutes when something is quadratic.
func TestHostile(t *testing.T) {
	const size = MaxSize / 16
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	chain := func(name string) string {
		var b strings.Builder
		b.WriteString("start: " + name + "0\n")
		i := 0
		for ; b.Len() < size; i++ {
			fmt.Fprintf(&b, "%s%d: %s%d \"x\"\n", name, i, name, i+1)
		}
		fmt.Fprintf(&b, "%s%d: \"y\"\n", name, i)
		return b.String()
	}
	for name, src := range map[string]string{
		"open groups":        "start: " + fill("("),
		"open brackets":      "start: " + fill("["),
		"open braces":        "start: " + fill("{"),
		"blocks":             "start: %json " + fill("{\"a\":"),
		"deep JSON":          "start: %json " + strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"nested grammars":    fill("start: %lark {\n"),
		"tildes":             "start: " + fill("~"),
		"quotes":             fill("'"),
		"double quotes":      "start: \"" + fill("\\\""),
		"slashes":            "start: /" + fill("\\/"),
		"mixed word":         "start: " + fill("aB"),
		"alternatives":       "start: " + fill("| "),
		"empty lines":        fill("\n"),
		"line ends":          "start: \"a\"" + fill(" \n"),
		"names":              "start: " + fill("a "),
		"groups of regex":    "start: /" + fill("(") + "/",
		"classes of regex":   "start: /" + fill("[") + "/",
		"repeats of regex":   "start: /a" + fill("{2}") + "/",
		"stars of regex":     "start: /a" + fill("*") + "/",
		"properties":         "start: /" + fill(`\pL`) + "/",
		"words":              "start: /" + fill(`\w`) + "/i",
		"words in a class":   "start: /[" + fill(`\w`) + "]/i",
		"letters in a class": "start: /[" + fill(`é`) + "]/i",
		"chain of rules":     chain("r"),
		"chain of terminals": chain("R"),
		"special":            "start: " + fill("<"),
		"numbers":            "start: \"a\"{" + fill("1"),
		"substring":          "start: %regex {\"substring_chars\": \"" + fill("a") + "\"}",
	} {
		t.Run(name, func(t *testing.T) {
			g, err := Parse([]byte(src))
			if err == nil {
				_ = g.String()
			}
			t.Logf("%d bytes: %.100v", len(src), err)
		})
	}
	// Terminals that double at every step: as text 2^200 letters.
	var b strings.Builder
	b.WriteString("start: A0\n")
	for i := range 200 {
		fmt.Fprintf(&b, "A%d: A%d A%d\n", i, i+1, i+1)
	}
	b.WriteString("A200: /x/\n")
	mustParse(t, b.String())
}
