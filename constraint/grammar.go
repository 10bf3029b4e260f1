package constraint

import (
	"bytes"
	"fmt"

	"agentgraph/constraint/internal/jsontree"
	"agentgraph/constraint/internal/llg"
)

// compileLark admits a Lark grammar.
func (c *compiled) compileLark(src []byte) *Refusal {
	if r := larkSource(src); r != nil {
		return r
	}
	c.grammar = grammarKey{llg.Lark, string(src)}
	c.judge = &grammarJudge{c, c.grammar}
	return c.engineOrRefusal(Lark, src)
}

// larkSource refuses what is no Lark text at all.
func larkSource(src []byte) *Refusal {
	trimmed := bytes.TrimLeft(src, " \t\r\n")
	if len(trimmed) == 0 {
		return &Refusal{Construct: "empty", Reason: "the grammar is empty", Hint: "write a rule named start, or remove the file"}
	}
	if trimmed[0] == '{' || trimmed[0] == '[' {
		return at(src, len(src)-len(trimmed), &Refusal{Construct: "JSON", Reason: "a Lark grammar cannot start with '" + string(trimmed[:1]) + "'",
			Hint: "for a JSON grammar name the file …@llg, for a JSON Schema …@json"})
	}
	if i := bytes.IndexByte(src, 0); i >= 0 {
		return at(src, i, &Refusal{Construct: "NUL", Reason: "a NUL byte", Hint: `write it as \x00 in a regular expression`})
	}
	return nil
}

// compileLLG admits a TopLevelGrammar of llguidance. It goes to the engine
// untouched; the checks are those the engine leaves out silently.
func (c *compiled) compileLLG(src []byte) *Refusal {
	trimmed := bytes.TrimLeft(src, " \t\r\n")
	if len(trimmed) == 0 {
		return &Refusal{Construct: "empty", Reason: "the grammar is empty", Hint: `write {"grammars": […]}, or remove the file`}
	}
	if trimmed[0] != '{' {
		return at(src, len(src)-len(trimmed), &Refusal{Construct: "JSON", Reason: "an llg grammar is a JSON object that starts with '{'",
			Hint: "for a Lark grammar name the file …@lark"})
	}
	tree, r := c.parseJSON(src)
	if r != nil {
		return r
	}
	if r := checkTopLevel(src, tree); r != nil {
		return r
	}
	c.grammar = grammarKey{llg.LLGuidance, string(src)}
	c.judge = &grammarJudge{c, c.grammar}
	return c.engineOrRefusal(LLG, src)
}

// checkTopLevel refuses members that llguidance would ignore.
func checkTopLevel(src []byte, tree *jsontree.Node) *Refusal {
	if r := onlyKeys(src, tree, "", "grammars", "max_tokens"); r != nil {
		return r
	}
	list := tree.Get("grammars")
	if list == nil || list.Kind != jsontree.Array || len(list.Items) == 0 {
		return at(src, tree.Start, &Refusal{Construct: "grammars", Reason: "'grammars' must be an array of at least one grammar"})
	}
	for i, g := range list.Items {
		path := jsontree.Index("/grammars", i)
		if g.Kind != jsontree.Object {
			return at(src, g.Start, &Refusal{Construct: "grammars", Path: path, Reason: "a grammar is an object, this is " + g.Kind.String()})
		}
		if r := onlyKeys(src, g, path, "name", "lark_grammar", "json_schema"); r != nil {
			return r
		}
		lark, schema := g.Get("lark_grammar"), g.Get("json_schema")
		if (lark == nil) == (schema == nil) {
			return at(src, g.Start, &Refusal{Construct: "grammars", Path: path,
				Reason: "a grammar has exactly one of 'lark_grammar' and 'json_schema'"})
		}
	}
	return nil
}

func onlyKeys(src []byte, n *jsontree.Node, path string, known ...string) *Refusal {
next:
	for _, m := range n.Members {
		for _, k := range known {
			if m.Key == k {
				continue next
			}
		}
		return at(src, m.KeyStart, &Refusal{Construct: m.Key, Path: path,
			Reason: fmt.Sprintf("unknown member '%s', which the engine would ignore", m.Key), Hint: "remove it"})
	}
	return nil
}
