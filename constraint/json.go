package constraint

import (
	"errors"
	"fmt"

	"agentgraph/constraint/internal/jsontree"
	"agentgraph/constraint/internal/llg"
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
	switch tree.Kind {
	case jsontree.Object:
	case jsontree.True:
		tree = jsontree.Raw("{}")
	case jsontree.False:
		return at(src, tree.Start, &Refusal{Construct: "false", Reason: "the schema 'false' accepts no answer"})
	default:
		return at(src, tree.Start, &Refusal{Construct: "JSON", Reason: "a JSON Schema is an object, this is " + tree.Kind.String()})
	}
	l := c.opt.Limits
	v, err := validate.JSON(src, validate.Options{
		AssertFormats: c.opt.Formats == FormatsAssert,
		Limits:        validate.Limits{AnswerBytes: l.AnswerBytes, AnswerNodes: l.AnswerNodes, AnswerDepth: l.AnswerDepth, Work: l.ValidationWork},
	})
	if err != nil {
		return validateRefusal(err, "")
	}
	c.judge = localJudge{v}
	engine := tree.Clone()
	compact(engine)
	c.caps = capsOf(tree)
	c.grammar = grammarKey{llg.JSONSchema, string(engine.Bytes())}
	if !llg.Built {
		return nil
	}
	return c.engineOrRefusal(JSON, src)
}

// compact asks the engine for JSON without spaces, unless the schema says
// otherwise itself.
func compact(root *jsontree.Node) {
	x := root.Get("x-guidance")
	if x == nil || x.Kind != jsontree.Object {
		if x == nil {
			root.Set("x-guidance", jsontree.Raw(`{"whitespace_flexible":false}`))
		}
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
