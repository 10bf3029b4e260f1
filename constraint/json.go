package constraint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentgraph/constraint/internal/jsontree"
	"agentgraph/constraint/internal/llg"
	"agentgraph/constraint/internal/relax"
	"agentgraph/constraint/internal/validate"
)

// parseJSON reads a source that has to be JSON, within its bounds.
func (c *compiled) parseJSON(src []byte) (*jsontree.Node, *Refusal) {
	l := c.opt.Limits
	tree, err := jsontree.Parse(src, jsontree.Bounds{Depth: l.SchemaDepth, Nodes: l.SchemaNodes})
	var bad *jsontree.Error
	var over *jsontree.BoundError
	switch {
	case err == nil:
		return tree, nil
	case errors.As(err, &bad):
		return nil, at(src, bad.Offset, &Refusal{Construct: "JSON", Reason: bad.Msg, Hint: "the file must hold one JSON value"})
	case errors.As(err, &over):
		name, n := "schema_depth", l.SchemaDepth
		if over.What == "nodes" {
			name, n = "schema_nodes", l.SchemaNodes
		}
		return nil, at(src, over.Offset, &Refusal{Construct: "size", Limit: name,
			Reason: fmt.Sprintf("more %s than %s: %d", over.What, name, n), Hint: "make the schema smaller, or raise limits: " + name})
	}
	return nil, &Refusal{Reason: err.Error()}
}

// compileJSON admits a JSON Schema.
func (c *compiled) compileJSON(src []byte) *Refusal {
	tree, r := c.parseJSON(src)
	if r != nil {
		return r
	}
	l := c.opt.Limits
	v, err := validate.JSON(src, validate.Options{
		AssertFormats: c.opt.Formats == FormatsAssert,
		Limits:        validate.Limits{AnswerBytes: l.AnswerBytes, AnswerNodes: l.AnswerNodes, AnswerDepth: l.AnswerDepth, Work: l.ValidationWork},
	})
	switch {
	case tree.Kind == jsontree.False:
		return at(src, tree.Start, &Refusal{Construct: "false", Reason: "the schema 'false' accepts no answer"})
	case tree.Kind != jsontree.Object && tree.Kind != jsontree.True:
		return at(src, tree.Start, &Refusal{Construct: "JSON", Reason: "a JSON Schema is an object, this is " + tree.Kind.String()})
	case err != nil:
		return validateRefusal(err, "")
	case tree.Kind == jsontree.True:
		tree = jsontree.Raw("{}")
	}
	c.judge = localJudge{v}
	c.caps = capsOf(tree)
	return c.maskJSON(src, tree)
}

// maskJSON makes the text for the engine and lists what it leaves out.
func (c *compiled) maskJSON(src []byte, tree *jsontree.Node) *Refusal {
	if r := c.guidance(src, tree); r != nil {
		return r
	}
	opt := relax.Options{
		IgnoreFormats: c.opt.Formats == FormatsIgnore, AssertFormats: c.opt.Formats == FormatsAssert,
		Asserted: func(f string) bool { return slices.Contains(validate.Formats(), f) }, Visits: c.opt.Limits.SchemaVisits,
		AnswerBytes: c.opt.Limits.AnswerBytes, AnswerNodes: c.opt.Limits.AnswerNodes,
	}
	if llg.Built {
		opt.Disjoint = func(patterns []string) bool {
			probe := jsontree.Raw(`{"type":"object","patternProperties":{},"additionalProperties":false}`)
			for _, p := range patterns {
				probe.Get("patternProperties").Set(p, jsontree.Raw("true"))
			}
			return c.tryEngine(grammarKey{llg.JSONSchema, string(probe.Bytes())}) == nil
		}
	}
	res, p := relax.Relax(tree, opt)
	if p != nil {
		return at(src, p.Offset, &Refusal{Construct: p.Construct, Path: p.Path, Limit: p.Limit,
			Reason: "schema at " + pathOrRoot(p.Path) + ": " + p.Reason, Hint: p.Hint})
	}
	refusal := c.fitEngine(src, res)
	for _, it := range res.Items {
		u := Unmasked{Construct: it.Construct, Path: it.Path, Reason: it.Reason}
		u.Line, u.Column = jsontree.Position(src, it.Offset)
		c.unmasked = append(c.unmasked, u)
	}
	return refusal
}

// text is the schema as the engine gets it.
func engineText(res *relax.Result) grammarKey {
	root := res.Root.Clone()
	compact(root)
	return grammarKey{llg.JSONSchema, string(root.Bytes())}
}

// fitEngine compiles the text and widens it until the engine takes it.
func (c *compiled) fitEngine(src []byte, res *relax.Result) *Refusal {
	takes := func() bool { return c.tryEngine(engineText(res)) == nil }
	one := func(schema string) bool { return c.tryEngine(grammarKey{llg.JSONSchema, schema}) == nil }
	tried := map[string]bool{}
	for {
		c.grammar = engineText(res)
		if !llg.Built || len(res.Items) > 0 && c.opt.Enforce == EnforceMask {
			return nil // Admit refuses it
		}
		err := c.tryEngine(c.grammar)
		if err == nil {
			return nil
		}
		var e *llg.Error
		if !errors.As(err, &e) {
			return &Refusal{Reason: err.Error()}
		}
		why := firstLine(e.Msg)
		if strings.Contains(why, "Unsatisfiable schema") {
			return unsatisfiable(src, res, why)
		}
		// Each way is tried once; the ways that fit the message come first.
		ways := []struct {
			name, hint string
			widen      func() bool
		}{
			{"counts", "min/maxProperties", func() bool { return res.DropCounts("other schemas add members") }},
			{"names", "patternProperty", func() bool { return res.WidenPatterns("a name may match two of them") }},
			{"cycle", "circular references", func() bool { return res.CutSiblings("a reference cycle with other keywords beside it") }},
			{"pattern", "regex", func() bool { return res.DropPatterns(why, false, one) }},
			{"combined", "stack level", func() bool { return res.CutCombined(why) }},
			{"patterns", "", func() bool { return res.DropPatterns(why, true, one) }},
			{"lengths", "", func() bool { return res.DropLengths(why) }},
			{"parts", "", func() bool { return res.OpenLargest(why, 8, takes) }},
			{"all", "", func() bool { res.Open(why); return true }},
		}
		done := false
		for _, exact := range []bool{true, false} {
			for _, w := range ways {
				if done || tried[w.name] || exact && (w.hint == "" || !strings.Contains(e.Msg, w.hint)) {
					continue
				}
				tried[w.name] = true
				done = w.widen()
			}
		}
		if !done {
			return engineRefusal(JSON, src, e)
		}
	}
}

// unsatisfiable words the engine's proof that no answer exists. The text
// accepts all that the schema accepts, so the proof holds for the schema.
func unsatisfiable(src []byte, res *relax.Result, why string) *Refusal {
	_, detail, _ := strings.Cut(why, "Unsatisfiable schema: ")
	r := &Refusal{Construct: "schema", Reason: "no answer can satisfy the schema: " + detail,
		Hint: "look for types, values or bounds that exclude each other"}
	if _, name, ok := strings.Cut(detail, "required property '"); ok {
		name, _, _ = strings.Cut(name, "'")
		if n := res.Root.At(jsontree.Step("/properties", name)); n != nil {
			r.Construct, r.Path = "required", jsontree.Step("/properties", name)
			return at(src, n.Start, r)
		}
	}
	return at(src, 0, r)
}

// guidanceKeys are the options of x-guidance that leave the meaning of the
// schema alone.
var guidanceKeys = map[string]bool{
	"whitespace_flexible": true, "whitespace_pattern": true, "item_separator": true, "key_separator": true,
	"json_allowed_escapes": true, "json_allow_general_unicode_escapes": true,
}

// guidance checks the engine's own options inside the schema.
func (c *compiled) guidance(src []byte, tree *jsontree.Node) *Refusal {
	x := tree.Get("x-guidance")
	if x == nil {
		return nil
	}
	if x.Kind != jsontree.Object {
		return at(src, x.Start, &Refusal{Construct: "x-guidance", Path: "/x-guidance", Reason: "'x-guidance' is an object of options"})
	}
	for _, m := range x.Members {
		if !guidanceKeys[m.Key] {
			reason := fmt.Sprintf("'%s' is no option of x-guidance", m.Key)
			if m.Key == "lenient" || m.Key == "coerce_one_of" {
				reason = fmt.Sprintf("'%s' would weaken the schema silently", m.Key)
			}
			return at(src, m.KeyStart, &Refusal{Construct: "x-guidance", Path: "/x-guidance", Reason: reason,
				Hint: "remove it; enforce: validate leaves what the mask cannot hold to validation"})
		}
	}
	return nil
}

// compact asks the engine for JSON without spaces, unless the schema says
// otherwise itself.
func compact(root *jsontree.Node) {
	x := root.Get("x-guidance")
	if x == nil {
		root.Set("x-guidance", jsontree.Raw(`{"whitespace_flexible":false}`))
		return
	}
	if !x.Has("whitespace_flexible") && !x.Has("whitespace_pattern") {
		x.Set("whitespace_flexible", jsontree.Raw("false"))
	}
}

// capsOf finds the longest numbers of the schema: where one is a bound or an
// allowed value, an answer may need its digits.
func capsOf(n *jsontree.Node) digitCaps {
	caps := digitCaps{significantDigits, significantDigits}
	var walk func(n *jsontree.Node)
	walk = func(n *jsontree.Node) {
		if n.Kind == jsontree.Number {
			s := numberState{}
			s.feed([]byte(n.Text()))
			if s.fraction || s.exp {
				caps.fraction = max(caps.fraction, s.digits)
			} else {
				caps.integer = max(caps.integer, s.digits)
			}
		}
		for _, v := range n.Items {
			walk(v)
		}
		for _, m := range n.Members {
			walk(m.Value)
		}
	}
	walk(n)
	return caps
}
