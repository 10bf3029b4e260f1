package constraint

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"agentgraph/constraint/internal/jsontree"
	"agentgraph/constraint/internal/llg"
	"agentgraph/constraint/lark"
)

// compileLark admits a Lark grammar.
func (c *compiled) compileLark(src []byte) *Refusal {
	if r := larkSource(src); r != nil {
		return r
	}
	g, r := readLark(src)
	if r != nil {
		return r
	}
	c.grammar = grammarKey{llg.Lark, string(src)}
	judged := c.grammar
	if countsTokens(g) {
		judged.text = g.String()
	}
	c.judge = &grammarJudge{c, judged}
	return c.engineOrRefusal(Lark, src)
}

// readLark reads and checks a grammar; among are the names of the grammars it
// is sent with.
func readLark(src []byte, among ...string) (*lark.Grammar, *Refusal) {
	g, err := lark.ParseAmong(src, among...)
	if err != nil {
		var e *lark.Error
		if !errors.As(err, &e) {
			return nil, &Refusal{Reason: err.Error()}
		}
		return nil, &Refusal{Line: e.Line, Column: e.Col, Construct: e.Construct, Reason: e.Msg, Hint: e.Hint}
	}
	if special := g.SpecialTokens(); len(special) > 0 {
		r := &Refusal{Construct: "special token", Reason: "the special token " + special[0] + " is no text and cannot stand in an answer",
			Hint: "write the characters in quotes, or leave it out: an answer ends by itself"}
		if i := bytes.Index(src, []byte(special[0])); i >= 0 {
			at(src, i, r)
		}
		return nil, r
	}
	return g, nil
}

// manyTokens stands in for max_tokens where text is judged: there a token is
// a byte, and the text was already cut where the model's tokens ran out.
const manyTokens = 1 << 30

// countsTokens lifts max_tokens in every rule and reports whether there was
// one. With max_tokens=0 a rule is empty, in bytes as in tokens.
func countsTokens(g *lark.Grammar) bool {
	found := false
	g.Rules(func(rule *lark.Rule) {
		for i := range rule.Attrs {
			if a := &rule.Attrs[i]; a.Key == "max_tokens" && a.Tokens > 0 {
				a.Tokens, found = manyTokens, true
			}
		}
	})
	return found
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
	judged := tree.Clone()
	judged.Drop("max_tokens")
	if r := c.checkGrammars(src, tree, judged); r != nil {
		return r
	}
	c.grammar = grammarKey{llg.LLGuidance, string(src)}
	c.judge = &grammarJudge{c, grammarKey{llg.LLGuidance, string(judged.Bytes())}}
	return c.engineOrRefusal(LLG, src)
}

// checkGrammars reads each grammar of the list as if it stood alone, and
// lifts max_tokens in judged.
func (c *compiled) checkGrammars(src []byte, tree, judged *jsontree.Node) *Refusal {
	var names []string
	for _, g := range tree.Get("grammars").Items {
		if n := g.Get("name"); n != nil && n.Kind == jsontree.String {
			names = append(names, n.Str)
		}
	}
	for i, g := range tree.Get("grammars").Items {
		path := jsontree.Index("/grammars", i)
		text := g.Get("lark_grammar")
		if text == nil {
			continue
		}
		if text.Kind != jsontree.String {
			return at(src, text.Start, &Refusal{Construct: "lark_grammar", Path: path, Reason: "'lark_grammar' is a string, this is " + text.Kind.String()})
		}
		read, r := readLark([]byte(text.Str), names...)
		if r != nil {
			if r.Line > 0 {
				r.Reason += " (line " + strconv.Itoa(r.Line) + ", column " + strconv.Itoa(r.Column) + " of the grammar)"
			}
			r.Path = jsontree.Step(path, "lark_grammar")
			return at(src, text.Start, r)
		}
		if countsTokens(read) {
			judged.Get("grammars").Items[i].Set("lark_grammar", jsontree.Raw(jsontree.Quote(read.String())))
		}
	}
	return nil
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
